"""The header a script may carry (inline script metadata, PEP 723).

We read it ourselves and hand uv a plain list of requirements, so that a header counts whatever the file is
called, behind a byte order mark and with any line ends.
"""

import io
import re
import tokenize
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from pyexec.domain.errors import InvalidArgumentError

HEADER_BEGINS = "# /// script"
_OPENING = re.compile(rf"(?m)^{HEADER_BEGINS}$")
_BLOCK = re.compile(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(?:^#(?: .*)?$\s)+)^# ///$")
_TOML_POSITION = re.compile(r"\s*\(at line (\d+), column \d+\)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptHeader:
    """What a script says about itself.

    Attributes:
        dependencies: Its requirements, as written.
        requires_python: The versions of Python it runs on (`>=3.11`), or None.
        present: Whether there is a header at all; one without dependencies says that it needs none.
        uv_settings: Its `[tool.uv]` table.
    """

    dependencies: tuple[str, ...] = ()
    requires_python: str | None = None
    present: bool = False
    uv_settings: Mapping[str, object] = field(default_factory=dict[str, object])


def read_header(source: bytes) -> ScriptHeader:
    """Read the header of a script; a script without one gives an empty `ScriptHeader`.

    Raises:
        InvalidArgumentError: There are two headers, it is not closed, or what is in it cannot be read. The
            message names the line.
    """
    if HEADER_BEGINS.encode() not in source:  # Nearly always; decoding a large script takes time.
        return ScriptHeader()
    found = find_block(_decode(source).replace("\r\n", "\n").replace("\r", "\n"))
    return ScriptHeader() if found is None else _parse(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderBlock:
    """Where the header stands in a script's text, its two fences included, and what is between them."""

    start: int
    end: int
    toml: str
    first_line: int


def find_block(text: str) -> HeaderBlock | None:
    """Find the header in a text whose lines end with LF; None when there is none.

    Raises:
        InvalidArgumentError: There are two, or it is not closed.
    """
    opening = _OPENING.search(text)
    if opening is None:
        return None
    # The last line of a file may lack its line end.
    blocks = [block for block in _BLOCK.finditer(text + "\n") if block["type"] == "script"]
    if not blocks:
        raise InvalidArgumentError(
            f"The script's header, opened at line {_line(text, opening.start())}, is not closed.",
            hint="Every line of it starts with '# ' or is a '#' alone, and its last line is '# ///'.",
        )
    if len(blocks) > 1:
        first, second = (_line(text, block.start()) for block in blocks[:2])
        raise InvalidArgumentError(
            f"The script has more than one header: at line {first} and at line {second}.",
            hint="Put everything into one '# /// script' block.",
        )
    (block,) = blocks
    toml = "".join(line.removeprefix("#").removeprefix(" ") for line in block["content"].splitlines(keepends=True))
    return HeaderBlock(
        start=block.start(),
        end=min(block.end() + 1, len(text)),  # With its line end.
        toml=toml,
        first_line=_line(text, block.start("content")),
    )


def _decode(source: bytes) -> str:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    except SyntaxError:  # An encoding nobody knows: for Python to complain about, when it runs the script.
        encoding = "utf-8-sig"
    return source.decode(encoding, errors="replace")


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def _parse(block: HeaderBlock) -> ScriptHeader:
    toml, first_line = block.toml, block.first_line
    try:
        table: dict[str, object] = tomllib.loads(toml)
    except tomllib.TOMLDecodeError as error:
        reason, line = _toml_fault(error, toml)
        raise InvalidArgumentError(
            f"The script's header is not valid TOML at line {first_line + line - 1}: {reason}."
        ) from error
    dependencies = _strings(table.get("dependencies", []))
    if dependencies is None:
        raise InvalidArgumentError(
            f"'dependencies' in the script's header (line {_key_line(toml, 'dependencies', first_line)}) "
            'must be a list of strings, such as ["rich", "numpy>=2"].'
        )
    requires_python = table.get("requires-python")
    if requires_python is not None and not (isinstance(requires_python, str) and _is_range(requires_python)):
        line = _key_line(toml, "requires-python", first_line)
        raise InvalidArgumentError(
            f"'requires-python' in the script's header (line {line}) must be a version range "
            f"such as '>=3.11', not {requires_python!r}."
        )
    return ScriptHeader(
        dependencies=dependencies,
        requires_python=requires_python,
        present=True,
        uv_settings=_table(_table(table.get("tool")).get("uv")),
    )


def _toml_fault(error: tomllib.TOMLDecodeError, toml: str) -> tuple[str, int]:
    """Return why the text cannot be read, and its line; tomllib tells the place in its message only."""
    message = str(error)
    position = _TOML_POSITION.search(message)
    if position is None:
        return message.removesuffix("(at end of document)").strip(), max(len(toml.splitlines()), 1)
    return message[: position.start()], int(position[1])


def _key_line(toml: str, key: str, first_line: int) -> int:
    lines = toml.splitlines()
    return first_line + next((i for i, line in enumerate(lines) if line.lstrip().startswith(key)), 0)


def _is_range(text: str) -> bool:
    try:
        return len(SpecifierSet(text)) > 0
    except InvalidSpecifier:
        return False


def _strings(value: object) -> tuple[str, ...] | None:
    items = cast("list[object]", value) if isinstance(value, list) else [None]
    strings = tuple(item for item in items if isinstance(item, str))
    return strings if len(strings) == len(items) else None


def _table(value: object) -> Mapping[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}
