"""The packages somebody asks for: what may be asked, and what contradicts itself."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from pyexec.domain.errors import InvalidArgumentError, NotFoundError
from pyexec.environments.credentials import HOW_TO_ENCODE, is_readable, masked
from pyexec.environments.local import local_path

_LOCAL_STARTS = ("./", "../", "/", "file://")
_EDITABLE = re.compile(r"(?:-e|--editable)(?:\s+|=)(?P<path>\S.*)")
_AS_EDITABLE = "-e "


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
    header: Sequence[str],
    argument: Sequence[str],
    *,
    header_is: str = "the script's header",
    argument_is: str = "dependencies",
) -> tuple[str, ...]:
    """Put the requirements of a script and those of a call together, each once, in order.

    A requirement is what PEP 508 allows (`numpy>=2`, `httpx[http2]; python_version >= '3.12'`,
    `name @ https://…`), the path of a local project or wheel, starting with `./`, `../` or `/`, or `-e PATH` for a
    local project whose modules are to be imported from where they lie.

    Args:
        header: What the script itself asks for.
        argument: What the caller asks for.
        header_is: How to call the first list in a message.
        argument_is: How to call the second.

    Raises:
        InvalidArgumentError: One of them cannot be read or is an option for the installer, or two ask for
            versions of one package that exclude each other; the message shows them. Contradictions that only
            the package index can tell are found by uv.
    """
    entries = [_read(text, header_is) for text in header]
    entries += [_read(text, argument_is) for text in argument]
    unique: dict[str, _Entry] = {}
    for entry in entries:
        _refuse_impossible(entry)
        unique.setdefault(entry.key(), entry)
    for first, second in combinations(unique.values(), 2):
        _refuse_clash(first, second)
    return tuple(entry.text for entry in unique.values())


def distribution_name(requirement: str) -> str | None:
    """Return the normalised name in a valid requirement; None where only a path is given."""
    if is_local(requirement) or editable_of(requirement) is not None:
        return None
    return canonicalize_name(Requirement(requirement).name)


def is_local(requirement: str) -> bool:
    """Tell whether a requirement is the path of a local project or wheel, or its `file://` URL."""
    return requirement.startswith(_LOCAL_STARTS) or requirement in {".", ".."}


def editable_of(requirement: str) -> str | None:
    """Return the path or URL of an editable requirement; None for any other."""
    return requirement.removeprefix(_AS_EDITABLE) if requirement.startswith(_AS_EDITABLE) else None


def anchored(requirement: str, directory: Path) -> str:
    """Return the requirement with a local path made absolute, as a URL that means the same everywhere.

    Raises:
        InvalidArgumentError: It is editable, and there is a file at that path.
        NotFoundError: There is nothing at that path.
    """
    editable = editable_of(requirement)
    if editable is not None:
        url = anchored(editable, directory)
        path = local_path(url)
        if path is None or not path.is_dir():
            raise InvalidArgumentError(f"{path or url} is not a project, so {requirement!r} cannot be editable.")
        return f"{_AS_EDITABLE}{url}"
    if requirement.startswith("file://"):
        return requirement
    if is_local(requirement):
        name, path, rest = "", requirement, ""
        if path.endswith("]") and not (directory / path).exists():
            path, bracket, extras = path.rpartition("[")
            rest = bracket + extras
    else:
        parsed = Requirement(requirement)
        if parsed.url is None or parsed.url.startswith("file://") or not is_local(parsed.url):
            return requirement
        extras = f"[{','.join(sorted(parsed.extras))}]" if parsed.extras else ""
        name, path = f"{parsed.name}{extras} @ ", parsed.url
        rest = f" ; {parsed.marker}" if parsed.marker is not None else ""
    absolute = (directory / path).resolve()
    if not absolute.exists():
        raise NotFoundError(f"There is nothing to install at {absolute}, which {masked(requirement)!r} asks for.")
    return f"{name}{absolute.as_uri()}{rest}"


def unmet(requirements: Sequence[str], packages: Sequence[str], python_version: str) -> list[str]:
    """Return what is missing among packages, each with what is there instead.

    Args:
        requirements: Valid ones, see `combine`.
        packages: What is there, as `name==version` or `name @ url`.
        python_version: The Python they are on, such as `3.13.2`; markers ask for it.
    """
    python = {"python_full_version": python_version, "python_version": python_version.rpartition(".")[0]}
    here = {canonicalize_name(re.split(r"==| @ ", one, maxsplit=1)[0]): one for one in packages}
    missing: list[str] = []
    for text in requirements:
        if is_local(text) or editable_of(text) is not None:
            missing.append(f"{masked(text)} (a local project)")
            continue
        wanted = Requirement(text)
        if wanted.marker is not None and not wanted.marker.evaluate(python):
            continue
        found = here.get(canonicalize_name(wanted.name))
        version = found.partition("==")[2] if found and " @ " not in found else ""
        if found is None:
            missing.append(f"{masked(text)!r} (not there)")
        elif version and not wanted.specifier.contains(version, prereleases=True):
            missing.append(f"{masked(text)!r} (there is {version})")
    return missing


def _read(text: str, origin: str) -> _Entry:
    wanted = text.strip()
    if any(character < " " or character == "\x7f" for character in wanted):
        raise InvalidArgumentError(
            f"The requirement {masked(text)!r} in {origin} has a line break or control character."
        )
    editable = _EDITABLE.fullmatch(wanted)
    if editable is not None:
        if not is_local(editable["path"]):
            raise InvalidArgumentError(
                f"The requirement {masked(text)!r} in {origin} is editable, and not the path of a local project.",
                hint="Write '-e ./project', with a path that starts with './', '../' or '/'.",
            )
        return _Entry(text=f"{_AS_EDITABLE}{editable['path']}", origin=origin, parsed=None)
    if wanted.startswith("-"):
        raise InvalidArgumentError(
            f"The requirement {masked(text)!r} in {origin} is an option for the installer, not a package.",
            hint="Set indexes and the like in uv's own settings (UV_INDEX, uv.toml).",
        )
    if is_local(wanted):
        return _Entry(text=wanted, origin=origin, parsed=None)
    url = wanted.partition("://")
    if url[1] and not is_readable(url[0].split()[-1] + "://" + url[2].split()[0]):
        raise InvalidArgumentError(
            f"The URL of the requirement {wanted.split()[0][:40]!r} in {origin} cannot be read.",
            hint=HOW_TO_ENCODE,
        )
    try:
        parsed = Requirement(wanted)
    except InvalidRequirement as error:
        reason = str(error).splitlines()[0]
        hint = "Write 'name @ URL' to install from a URL." if "://" in wanted else None
        raise InvalidArgumentError(
            f"The requirement {masked(text)!r} in {origin} cannot be read: {masked(reason[0].lower() + reason[1:])}.",
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
            f"The requirements for {one.name} exclude each other: {masked(first.text)!r} in {first.origin} and "
            f"{masked(second.text)!r} in {second.origin}.",
            hint="Ask for one of them, or for a range that has room for both.",
            package=one.name,
            requirements=[masked(first.text), masked(second.text)],
        )


def _excludes_itself(specifiers: SpecifierSet) -> bool:
    """Tell whether versions are pinned, and none of the pins fits everything else."""
    exact = (one.version for one in specifiers if one.operator == "==" and not one.version.endswith(".*"))
    pins = [Version(version) for version in exact]
    return bool(pins) and not any(specifiers.contains(pin, prereleases=True) for pin in pins)
