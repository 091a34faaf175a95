"""Writing a script's header: what is asked for goes in, what somebody has written there stays."""

import json
import re
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from pyexec.domain.errors import InvalidArgumentError
from pyexec.environments.credentials import masked
from pyexec.environments.headers import find_block, read_header
from pyexec.environments.requirements import combine, is_local

_HEAD = re.compile(r"\A(?:#!.*\n)?(?:#.*coding[:=].*\n)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptNeeds:
    """What the header of a script says; credentials in requirements are masked."""

    dependencies: tuple[str, ...]
    requires_python: str | None


class HeaderEditor:
    """Reads and writes headers for those who keep scripts."""

    def read(self, source: bytes) -> ScriptNeeds:
        """Return what a script's header says; nothing where it has none.

        Raises:
            InvalidArgumentError: The header cannot be read.
        """
        header = read_header(source)
        dependencies = combine(header.dependencies, ())
        return ScriptNeeds(
            dependencies=tuple(masked(one) for one in dependencies), requires_python=header.requires_python
        )

    def write(self, source: str, dependencies: Sequence[str], requires_python: str | None) -> str:
        """Return a source with a header that asks for these besides what it asks for; lines end with LF.

        A requirement takes the place of those that the header has for the same package, a range that of the header's.

        Raises:
            InvalidArgumentError: The header or a requirement cannot be read, two requirements exclude each other, or
                one has credentials in it or a path that would mean something else in the script.
        """
        header = read_header(source.encode("utf-8"))
        wanted = combine((), dependencies)
        if header.present and not wanted and requires_python is None:
            return source
        for one in wanted:
            _refuse_unkeepable(one)
        replaced = {name for one in wanted if (name := _package(one)) is not None}
        kept = [one for one in header.dependencies if _package(one) not in replaced]
        needs = combine(kept, wanted)
        python = requires_python or header.requires_python
        found = find_block(source)
        rest = "" if found is None else _without(_without(found.toml, "dependencies"), "requires-python")
        block = _block(needs, python, rest)
        if found is None:
            head = _HEAD.match(source)
            start = end = 0 if head is None else head.end()
            gap = "\n" if source[start:].strip() else ""
        else:
            start, end, gap = found.start, found.end, ""
        written = f"{source[:start]}{block}{gap}{source[end:]}"
        read_header(written.encode("utf-8"))  # Says what is wrong with requires_python.
        return written


def _block(dependencies: Sequence[str], requires_python: str | None, rest: str) -> str:
    lines = [f"requires-python = {_quoted(requires_python)}"] if requires_python else []
    if len(dependencies) > 1:
        lines += ["dependencies = [", *(f"    {_quoted(one)}," for one in dependencies), "]"]
    else:
        lines.append(f"dependencies = [{', '.join(map(_quoted, dependencies))}]")
    lines += rest.split("\n") if rest.strip("\n") else []
    while not lines[-1]:
        lines.pop()
    return "".join(f"{line}\n" for line in ("# /// script", *(f"# {line}".rstrip() for line in lines), "# ///"))


def _quoted(text: str) -> str:
    """Return a TOML string; what JSON escapes in one, TOML reads likewise."""
    return json.dumps(text, ensure_ascii=False)


def _without(toml: str, key: str) -> str:
    """Return a TOML text without one of its keys, and everything else in it as it is written.

    Instead of knowing how TOML may be written, this tries which lines can go so that all else is read as before.
    """
    table: dict[str, Any] = tomllib.loads(toml)
    if key not in table:
        return toml
    expected = {name: value for name, value in table.items() if name != key}
    lines = toml.split("\n")
    for start, line in enumerate(lines):
        if not line.lstrip().startswith((key, f'"{key}"', f"'{key}'")):
            continue
        for end in range(start + 1, len(lines) + 1):
            shorter = "\n".join([*lines[:start], *lines[end:]])
            with suppress(tomllib.TOMLDecodeError):
                if tomllib.loads(shorter) == expected:
                    return shorter
    raise InvalidArgumentError(
        f"{key} in the script's header is written in a way that it cannot be changed.",
        hint=f"Write it as '# {key} = …' on a line of its own.",
    )


def _package(requirement: str) -> str | None:
    """Return the package that a requirement is for; None for a path."""
    try:
        return None if is_local(requirement) else canonicalize_name(Requirement(requirement).name)
    except InvalidRequirement:
        return None


def _refuse_unkeepable(requirement: str) -> None:
    shown = masked(requirement)
    if shown != requirement:
        raise InvalidArgumentError(
            f"The requirement {shown!r} in dependencies has credentials in it, which would be kept in the script.",
            hint="Give them by environment variables or in uv's own settings when it is run.",
        )
    path = requirement.removeprefix("-e ")
    if is_local(path) and not path.startswith(("/", "file://")):
        raise InvalidArgumentError(
            f"The requirement {shown!r} in dependencies is a relative path, which would start at the script's folder.",
            hint="Give the absolute path.",
        )
