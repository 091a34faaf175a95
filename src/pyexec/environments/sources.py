"""What a `[tool.uv]` table says about where packages come from, said in plain requirements and options of uv.

`uv pip compile` reads no such table from a script's header. Passing over it
would install the index's package of the same name in place of the one that is meant, so what we cannot say is
refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast
from urllib.parse import quote, urlsplit

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pyexec.domain.errors import InvalidArgumentError
from pyexec.environments.requirements import editable_of, is_local

Place = Literal["header", "project"]
_APPLIED = {"sources", "index", "exclude-newer"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """Requirements with their sources in them.

    Attributes:
        requirements: Each with the URL or path that its source names.
        options: For uv: where else to look, and how old packages must be.
        notes: What was left out, a sentence each, for the reader of the result.
    """

    requirements: tuple[str, ...]
    options: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def apply_settings(
    requirements: Sequence[str], settings: Mapping[str, object], *, place: Place, where: str, base: Path
) -> Applied:
    """Put the sources of a `[tool.uv]` table into the requirements they are for.

    In a project, uv finds the table's other settings by itself. Members of its workspace are left out with a note
    where there is no lock: only uv knows where they lie.

    Args:
        requirements: Valid ones, see `requirements.combine`.
        settings: The table.
        place: Whether it stands in a script's header or in a project's file.
        where: How to call that in a message.
        base: The folder its relative paths start at.

    Raises:
        InvalidArgumentError: It asks for something that cannot be said otherwise; the message names it.
    """
    if not settings:
        return Applied(requirements=tuple(requirements))
    sources = {canonicalize_name(name): source for name, source in _table(settings.get("sources")).items()}
    kept: list[str] = []
    notes: list[str] = []
    for text in requirements:
        parsed = None if is_local(text) or editable_of(text) is not None else Requirement(text)
        source = None if parsed is None or parsed.url else sources.get(canonicalize_name(parsed.name))
        if parsed is None or source is None:
            kept.append(text)
        elif place == "project" and _table(source).get("workspace") is True:
            notes.append(f"{parsed.name} is in the workspace of {where}, which has no uv.lock, and was not installed.")
        else:
            kept.append(_with_source(parsed, text, source, where, base))
    if place == "header":
        unused = sorted(settings.keys() - _APPLIED)
        notes += [f"[tool.uv] {key} in {where} was not applied." for key in unused]
    return Applied(requirements=tuple(kept), options=_options(settings, place, where, base), notes=tuple(notes))


def _with_source(parsed: Requirement, text: str, source: object, where: str, base: Path) -> str:
    match source:
        case {"index": str()}:
            return text
        case {"url": str(url)}:
            pass
        case {"git": str(repository)}:
            url = f"git+{repository.removeprefix('git+')}" + _git_revision(_table(source))
        case {"path": str(path)}:
            url = (base / path).resolve().as_uri()
        case _:
            raise InvalidArgumentError(
                f"[tool.uv.sources] {parsed.name} in {where} is of a kind that is not supported here.",
                hint="Supported is one of index, url, git or path for a package.",
                package=parsed.name,
            )
    subdirectory = _table(source).get("subdirectory")
    if isinstance(subdirectory, str):
        url += f"#subdirectory={quote(subdirectory)}"
    extras = f"[{','.join(sorted(parsed.extras))}]" if parsed.extras else ""
    marker = f" ; {parsed.marker}" if parsed.marker is not None else ""
    if url.startswith("file://") and _table(source).get("editable") is True:
        return f"-e {url}{extras}{marker}"
    return f"{parsed.name}{extras} @ {url}{marker}"


def _git_revision(source: Mapping[str, object]) -> str:
    named = (source.get(key) for key in ("rev", "tag", "branch"))
    return next((f"@{value}" for value in named if isinstance(value, str)), "")


def _options(settings: Mapping[str, object], place: Place, where: str, base: Path) -> tuple[str, ...]:
    options: list[str] = []
    indexes = settings.get("index", [])
    for index in map(_table, cast("list[object]", indexes) if isinstance(indexes, list) else []):
        # uv reads a project's settings by itself, and uses an explicit index only for sources, which are gone
        # here.
        if place == "header" or index.get("explicit") is True:
            options += _index(index, where, base)
    newest = settings.get("exclude-newer")
    if place == "header" and isinstance(newest, str):
        options += ["--exclude-newer", newest]
    return tuple(options)


def _index(index: Mapping[str, object], where: str, base: Path) -> list[str]:
    url = index.get("url")
    if not isinstance(url, str) or not url or url.startswith("-"):
        raise InvalidArgumentError(f"An index in [tool.uv] in {where} has no url.")
    if "://" not in url:
        url = str((base / url).resolve())
    elif urlsplit(url).username is not None:
        # It would stand on uv's command line, for everybody on the machine to read.
        raise InvalidArgumentError(
            f"An index in [tool.uv] in {where} has credentials in its url.",
            hint="Give the index a name and set UV_INDEX_NAME_USERNAME and UV_INDEX_NAME_PASSWORD.",
        )
    name = index.get("name")
    value = f"{name}={url}" if isinstance(name, str) and name.replace("-", "").isalnum() else url
    return ["--default-index" if index.get("default") is True else "--index", value]


def _table(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}
