"""Which packages and which Python a script needs, and who says so."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pyexec.environments.asking import Asked
from pyexec.environments.headers import ScriptHeader
from pyexec.environments.keys import LockedProject
from pyexec.environments.local import source_root
from pyexec.environments.projects import Project, read_project
from pyexec.environments.requirements import anchored, combine, distribution_name
from pyexec.environments.sources import apply_settings

HEADER = "the script's header"
_LOCK_COUNTS = "constraints and index_url do not count here: {lock} says what is installed."


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a script needs, whoever says so.

    Attributes:
        requirements: The packages.
        requires_python: The versions of Python it may run on, or None.
        requires_in: How to call the place that says so.
        apart: Whether it sees these packages only, also when there are none.
        options: For uv.
        project: A project whose lock counts before `requirements`.
        paths: Folders that modules are imported from besides.
        notes: What the reader of the result should know, a sentence each.
    """

    requirements: tuple[str, ...] = ()
    requires_python: str | None = None
    requires_in: str = ""
    apart: bool = False
    options: tuple[str, ...] = ()
    project: LockedProject | None = None
    paths: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()


def needs_of(header: ScriptHeader, asked: Asked, environ: Mapping[str, str]) -> Needs:
    """Return what a script needs: by its header and the call, else by the project it lies in.

    Raises:
        InvalidArgumentError: A requirement is not allowed, or two contradict each other.
        NotFoundError: A local package does not exist.
    """
    wanted = asked.dependencies or asked.keep_as
    found = None if header.present or wanted or not asked.project else read_project(asked.directory, environ)
    if found is None:
        return _of_script(header, asked)
    if found.lock is not None:
        ignored = (_LOCK_COUNTS.format(lock=found.lock),) if asked.constraints or asked.index_url else ()
        settings = apply_settings((), found.uv_settings, place="project", where=str(found.file), base=found.folder)
        return Needs(
            requires_python=found.requires_python,
            requires_in=str(found.file),
            options=settings.options,
            project=LockedProject(folder=found.folder, lock=found.lock),
            notes=found.notes + ignored,
        )
    return _of_project(found)


def with_tools(needs: Needs, tools: Sequence[str]) -> Needs:
    """Add packages that it is run with, where it does not ask for them itself."""
    names = {distribution_name(one) for one in needs.requirements}
    missing = tuple(tool for tool in tools if tool not in names)
    return replace(needs, requirements=needs.requirements + missing)


def _of_script(header: ScriptHeader, asked: Asked) -> Needs:
    combine(header.dependencies, asked.dependencies)
    script = asked.directory / (asked.script or "")
    script_folder = script if script.is_dir() else script.parent
    applied = apply_settings(
        [anchored(one.strip(), script_folder) for one in header.dependencies],
        header.uv_settings,
        place="header",
        where=HEADER,
        base=script_folder,
    )
    combine((), asked.constraints, argument_is="constraints")
    requirements = combine(applied.requirements, [anchored(one.strip(), asked.directory) for one in asked.dependencies])
    return Needs(
        requirements=tuple(anchored(one, asked.directory) for one in requirements),
        requires_python=header.requires_python,
        requires_in=HEADER,
        apart=header.present or bool(requirements) or asked.keep_as is not None,
        options=applied.options,
        notes=applied.notes,
    )


def _of_project(found: Project) -> Needs:
    where = str(found.file)
    applied = apply_settings(
        combine(found.dependencies, (), header_is=where),
        found.uv_settings,
        place="project",
        where=where,
        base=found.folder,
    )
    return Needs(
        requirements=tuple(anchored(one, found.folder) for one in applied.requirements),
        requires_python=found.requires_python,
        requires_in=where,
        options=applied.options if applied.requirements else (),
        paths=(source_root(found.folder),) if found.is_package else (),
        notes=found.notes + applied.notes,
    )
