"""The packages somebody asks for: what may be asked, and what contradicts itself."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from urllib.parse import quote

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from pyexec.domain.errors import InvalidArgumentError, NotFoundError

_LOCAL_STARTS = ("./", "../", "/", "file://")
_EDITABLE = re.compile(r"(-e|--editable)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """One requirement that was understood; `parsed` is None for the path of a local project or wheel."""

    text: str
    origin: str
    parsed: Requirement | None

    def key(self) -> str:
        """Return the same text for requirements that mean the same."""
        if self.parsed is None:
            return self.text
        canonical = Requirement(self.text)
        canonical.name = canonicalize_name(canonical.name)
        return str(canonical)


def combine(
    header: Sequence[str], argument: Sequence[str], *, header_is: str = "the script's header"
) -> tuple[str, ...]:
    """Put the requirements of a script and those of a call together, each once, in order.

    A requirement is what PEP 508 allows (`numpy>=2`, `httpx[http2]; python_version >= '3.12'`,
    `name @ https://…`), or the path of a local project or wheel, starting with `./`, `../` or `/`.

    Args:
        header: What the script itself asks for.
        argument: What the caller asks for.
        header_is: How to call the first list in a message.

    Raises:
        InvalidArgumentError: One of them cannot be read or is an option for the installer, or two ask for
            versions of one package that exclude each other; the message shows them. Contradictions that only
            the package index can tell are found by uv.
    """
    entries = [_read(text, header_is) for text in header]
    entries += [_read(text, "dependencies") for text in argument]
    unique: dict[str, _Entry] = {}
    for entry in entries:
        _refuse_impossible(entry)
        unique.setdefault(entry.key(), entry)
    for first, second in combinations(unique.values(), 2):
        _refuse_clash(first, second)
    return tuple(entry.text for entry in unique.values())


def is_local(requirement: str) -> bool:
    """Tell whether a requirement is the path of a local project or wheel, or its `file://` URL."""
    return requirement.startswith(_LOCAL_STARTS) or requirement in {".", ".."}


def anchored(requirement: str, directory: Path) -> str:
    """Return the requirement with a local path made absolute, as a URL that means the same everywhere.

    Raises:
        NotFoundError: There is nothing at that path.
    """
    if requirement.startswith("file://"):
        return requirement
    if is_local(requirement):
        name, path, rest = "", requirement, ""
        if path.endswith("]") and not (directory / path).exists():
            path, bracket, extras = path.rpartition("[")
            rest = bracket + extras
    else:
        parsed = Requirement(requirement)
        if parsed.url is None or not is_local(parsed.url):
            return requirement
        extras = f"[{','.join(sorted(parsed.extras))}]" if parsed.extras else ""
        name, path = f"{parsed.name}{extras} @ ", parsed.url
        rest = f" ; {parsed.marker}" if parsed.marker is not None else ""
    absolute = (directory / path).resolve()
    if not absolute.exists():
        raise NotFoundError(f"There is nothing to install at {absolute}, which {requirement!r} asks for.")
    return f"{name}file://{quote(str(absolute))}{rest}"


def read_resolved(text: str) -> tuple[str, ...]:
    """Return the packages in a list that uv has written: `name==version` or `name @ url`, without options."""
    lines = (line for line in text.splitlines() if line and not line.startswith((" ", "#", "-")))
    return tuple(line.split(" \\")[0].strip() for line in lines)


def _read(text: str, origin: str) -> _Entry:
    wanted = text.strip()
    if any(character < " " or character == "\x7f" for character in wanted):
        raise InvalidArgumentError(f"The requirement {text!r} in {origin} has a line break or control character.")
    if _EDITABLE.match(wanted):
        raise InvalidArgumentError(
            f"The requirement {text!r} in {origin} is an editable install, which would write there.",
            hint="Give the path alone ('./project') to install a copy.",
        )
    if wanted.startswith("-"):
        raise InvalidArgumentError(
            f"The requirement {text!r} in {origin} is an option for the installer, not a package.",
            hint="Set indexes and the like in uv's own settings (UV_INDEX, uv.toml).",
        )
    if is_local(wanted):
        return _Entry(text=wanted, origin=origin, parsed=None)
    try:
        parsed = Requirement(wanted)
    except InvalidRequirement as error:
        reason = str(error).splitlines()[0]
        hint = "Write 'name @ URL' to install from a URL." if "://" in wanted else None
        raise InvalidArgumentError(
            f"The requirement {text!r} in {origin} cannot be read: {reason[0].lower()}{reason[1:]}.",
            hint=hint,
        ) from error
    return _Entry(text=wanted, origin=origin, parsed=parsed)


def _refuse_impossible(entry: _Entry) -> None:
    if entry.parsed is not None and _excludes_itself(entry.parsed.specifier):
        raise InvalidArgumentError(
            f"No version of {entry.parsed.name} can meet {entry.text!r} in {entry.origin}.",
            package=entry.parsed.name,
            requirements=[entry.text],
        )


def _refuse_clash(first: _Entry, second: _Entry) -> None:
    one, other = first.parsed, second.parsed
    if one is None or other is None or canonicalize_name(one.name) != canonicalize_name(other.name):
        return
    if str(one.marker) != str(other.marker):  # Perhaps only one of them counts on the Python that is used.
        return
    two_places = one.url is not None and other.url is not None and one.url != other.url
    if two_places or _excludes_itself(one.specifier & other.specifier):
        raise InvalidArgumentError(
            f"The requirements for {one.name} exclude each other: {first.text!r} in {first.origin} and "
            f"{second.text!r} in {second.origin}.",
            hint="Ask for one of them, or for a range that has room for both.",
            package=one.name,
            requirements=[first.text, second.text],
        )


def _excludes_itself(specifiers: SpecifierSet) -> bool:
    """Tell whether versions are pinned, and none of the pins fits everything else."""
    exact = (one.version for one in specifiers if one.operator == "==" and not one.version.endswith(".*"))
    pins = [Version(version) for version in exact]
    return bool(pins) and not any(specifiers.contains(pin, prereleases=True) for pin in pins)
