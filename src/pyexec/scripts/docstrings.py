"""The docstring of a script: read, and put in."""

import ast
import re
import sys
from dataclasses import dataclass

from pyexec.domain.errors import InvalidArgumentError

LARGEST_PARSED = 256 * 1024
"""Parsing a larger source, bytes, would hold up everything else for too long when there are many to list."""

_LINE_LENGTH = 100
_ENCODING = re.compile(r"#.*coding[:=]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """What our own Python makes of a script; `fault` says why it cannot read it."""

    module: ast.Module | None = None
    fault: str | None = None

    @property
    def docstring(self) -> str | None:
        """The script's docstring."""
        return (ast.get_docstring(self.module) or None) if self.module is not None else None


def parse(source: bytes | str) -> Parsed:
    """Parse a script without running anything of it."""
    try:
        return Parsed(module=ast.parse(source))
    except SyntaxError as error:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        where = f"Line {error.lineno}" if error.lineno else "It cannot be read"
        return Parsed(fault=f"{where}: {error.msg} (read as Python {version}).")
    except ValueError:
        return Parsed(fault="It holds a NUL character.")
    except (MemoryError, RecursionError):
        return Parsed(fault="It is nested too deeply to be read.")


def with_docstring(source: str, text: str) -> str:
    """Return the source, whose lines end with LF, with this docstring, in place of the one it has.

    Raises:
        InvalidArgumentError: The source cannot be parsed, so there is no telling where a docstring goes.
    """
    parsed = parse(source)
    if parsed.module is None:
        raise InvalidArgumentError(
            f"description cannot be put into source as its docstring. {parsed.fault}",
            hint="Mend the source, or leave description out.",
        )
    if parsed.docstring == text:
        return source
    lines = source.split("\n")
    first = parsed.module.body[0] if parsed.module.body else None
    if first is not None and ast.get_docstring(parsed.module, clean=False) is not None:
        start, end = first.lineno - 1, first.end_lineno or first.lineno
        rest = lines[end - 1].encode()[first.end_col_offset or 0 :].decode().lstrip(" \t;")
        return "\n".join([*lines[:start], _literal(text), *([rest] if rest else []), *lines[end:]])
    start = _end_of_head(lines, first)
    gap = [""] if any(lines[start:]) and lines[start] else []
    return "\n".join([*lines[:start], *([""] if start else []), _literal(text), *gap, *lines[start:]])


def _end_of_head(lines: list[str], first: ast.stmt | None) -> int:
    """Return how many lines there are that only tools read, before the first statement: `#!`, encoding, header."""
    end = sum(line.startswith("#!") or _ENCODING.match(line) is not None for line in lines[:2])
    comments = lines[: first.lineno - 1 if first is not None else len(lines)]
    return comments.index("# ///") + 1 if "# ///" in comments else end


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    long = "\n" in escaped or len(escaped) > _LINE_LENGTH or escaped.endswith('"')
    return f'"""{escaped}\n"""' if long else f'"""{escaped}"""'
