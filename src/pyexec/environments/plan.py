"""From what a caller asks for to the commands that do it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from pyexec.domain.errors import InvalidArgumentError
from pyexec.domain.executions import Strategy
from pyexec.environments.choice import Choice, choose
from pyexec.environments.headers import ScriptHeader, read_header
from pyexec.environments.interpreters import Interpreter, InterpreterFinder
from pyexec.environments.projects import Project, read_project
from pyexec.environments.python_versions import parse_request, show
from pyexec.environments.requirements import anchored, combine
from pyexec.environments.sources import apply_settings
from pyexec.environments.uv import (
    find_uv,
    keeps_cache,
    resolve_command,
    run_command,
    script_arguments,
    warm_command,
)

_HEADER = "the script's header"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """How one script is run. All commands run in the call's directory, with its environment variables.

    Attributes:
        prepare: Commands to run first, in order; when one fails, the script is not run. The last one prints
            the version of Python that will be used.
        argv: The command that runs the script.
        strategy: How that is done.
        python: What runs it: the path of an interpreter, or a version that uv downloads while preparing.
        interpreter: The interpreter, when it is here already.
        requirements: The packages asked for.
        resolved: The file that lists the pinned packages once `prepare` is done (see `read_resolved`); None
            when no packages are asked for.
        first_on_path: A folder to put before all others on the PATH of the script, as uv does, so that `python`
            there is the one it runs on; None leaves PATH as it is.
        notes: What the reader of the result should know, a sentence each.
    """

    prepare: tuple[tuple[str, ...], ...]
    argv: tuple[str, ...]
    strategy: Strategy
    python: str
    interpreter: Interpreter | None
    requirements: tuple[str, ...] = ()
    resolved: Path | None = None
    first_on_path: Path | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Needs:
    """What a script needs, whoever says so."""

    requirements: tuple[str, ...]
    requires_python: str | None
    requires_in: str
    isolated: bool
    options: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Planner:
    """Makes plans; starts nothing and asks no network.

    Args:
        finder: Knows the interpreters of this machine.
        environ: The server's environment; read for PATH, HOME and what uv is set to.
        own_prefix: The environment the server runs in (`sys.prefix`), where a uv may be.
    """

    def __init__(self, finder: InterpreterFinder, environ: Mapping[str, str], own_prefix: Path) -> None:
        self._finder = finder
        self._environ = environ
        self._own_prefix = own_prefix

    async def plan(
        self,
        *,
        script: Path,
        header_source: bytes,
        args: Sequence[str],
        use_uv: bool,
        python_version: str | None,
        dependencies: Sequence[str],
        folder: Path,
        directory: Path,
        project: bool,
    ) -> RunPlan:
        """Plan the run of a script.

        With uv, the packages are those of the script's header and of `dependencies` together; a script that
        has neither gets those of the project it lies in, when `project` says so, and else sees what its
        interpreter has.

        Args:
            script: The script; a relative path starts at `directory`.
            header_source: Its content.
            args: Its arguments.
            use_uv: Whether uv runs it; else `python3` or `python` on PATH does, and nothing is installed.
            python_version: A version, a range or a path; only with uv.
            dependencies: Requirements besides those of the header; only with uv.
            folder: The execution's own folder; `requirements.in` and, while preparing, `resolved.txt` go
                there.
            directory: The folder the script is run in; local paths among `dependencies` start there.
            project: Whether the dependencies of a `pyproject.toml` at `directory` or above count; false for
                inline code, which belongs to no project.

        Raises:
            InvalidArgumentError: A value is not allowed, or two contradict each other; the message shows
                them.
            NotFoundError: A path among the arguments does not exist.
            InterpreterNotFoundError: No Python here fits, and uv may not download one.
            UvNotFoundError: uv is asked for and not installed.
        """
        if any("\0" in argument for argument in args):
            raise InvalidArgumentError("An argument in args has a NUL character in it.")
        if not use_uv:
            return await self._without_uv(script, header_source, args, python_version, dependencies)
        uv = await anyio.to_thread.run_sync(find_uv, self._environ, self._own_prefix)
        header = read_header(header_source)
        script_folder = (directory / script).parent
        needs = await anyio.to_thread.run_sync(self._needs, header, dependencies, directory, script_folder, project)
        choice = await choose(
            self._finder,
            self._environ,
            argument=python_version,
            requires=needs.requires_python,
            requires_in=needs.requires_in,
        )
        if choice.interpreter is not None and not needs.isolated:
            # All that uv would add is its own 50 ms: it installs nothing and runs this very interpreter.
            return RunPlan(
                prepare=(),
                argv=(choice.python, *script_arguments(script, args)),
                strategy="uv-run",
                python=choice.python,
                interpreter=choice.interpreter,
                first_on_path=choice.interpreter.path.parent,
                notes=needs.notes,
            )
        resolved = await anyio.to_thread.run_sync(_write, folder, needs.requirements)
        return RunPlan(
            prepare=_preparation(uv, choice, folder, resolved, needs.options),
            argv=run_command(
                uv,
                python=choice.python,
                script=script,
                args=args,
                requirements=resolved,
                options=needs.options,
                isolated=needs.isolated,
                offline=keeps_cache(self._environ),
            ),
            strategy="uv-run",
            python=choice.python,
            interpreter=choice.interpreter,
            requirements=needs.requirements,
            resolved=resolved,
            notes=needs.notes,
        )

    async def _without_uv(
        self,
        script: Path,
        header_source: bytes,
        args: Sequence[str],
        python_version: str | None,
        dependencies: Sequence[str],
    ) -> RunPlan:
        if python_version is not None:
            raise InvalidArgumentError(
                "python_version needs use_uv=true; without uv the script runs on the python3 on PATH."
            )
        if dependencies:
            raise InvalidArgumentError("dependencies need use_uv=true; without uv no packages are installed.")
        interpreter = await self._finder.first_on_path()
        header, notes = _header_for_information(header_source)
        wanted = header.requires_python
        if wanted is not None and not parse_request(wanted).accepts(interpreter.version):
            raise InvalidArgumentError(
                f"The script requires Python {wanted!r}, and the python3 on PATH ({interpreter.path}) is "
                f"{show(interpreter.version)}.",
                hint="Run it with use_uv=true, which finds one that fits.",
            )
        return RunPlan(
            prepare=(),
            argv=(str(interpreter.path), *script_arguments(script, args)),
            strategy="system-python",
            python=str(interpreter.path),
            interpreter=interpreter,
            notes=notes,
        )

    def _needs(
        self,
        header: ScriptHeader,
        dependencies: Sequence[str],
        directory: Path,
        script_folder: Path,
        project: bool,  # noqa: FBT001 (run_sync hands on positional arguments only)
    ) -> _Needs:
        if header.present or dependencies or not project:
            return _of_script(header, dependencies, directory, script_folder)
        found = read_project(directory, self._environ)
        return _of_script(header, (), directory, script_folder) if found is None else _of_project(found)


def _of_script(header: ScriptHeader, dependencies: Sequence[str], directory: Path, script_folder: Path) -> _Needs:
    combine(header.dependencies, dependencies)
    applied = apply_settings(
        [anchored(one.strip(), script_folder) for one in header.dependencies],
        header.uv_settings,
        place="header",
        where=_HEADER,
        base=script_folder,
    )
    requirements = combine(applied.requirements, [anchored(one.strip(), directory) for one in dependencies])
    return _Needs(
        requirements=requirements,
        requires_python=header.requires_python,
        requires_in=_HEADER,
        isolated=header.present or bool(requirements),
        options=applied.options,
        notes=applied.notes,
    )


def _of_project(found: Project) -> _Needs:
    where = str(found.file)
    applied = apply_settings(
        combine(found.dependencies, (), header_is=where),
        found.uv_settings,
        place="project",
        where=where,
        base=found.file.parent,
    )
    return _Needs(
        requirements=tuple(anchored(one, found.file.parent) for one in applied.requirements),
        requires_python=found.requires_python,
        requires_in=where,
        isolated=bool(applied.requirements),
        options=applied.options if applied.requirements else (),
        notes=found.notes + applied.notes,
    )


def _header_for_information(source: bytes) -> tuple[ScriptHeader, tuple[str, ...]]:
    """Read a header that Python takes for a comment: a fault in it is no reason not to run."""
    try:
        header = read_header(source)
    except InvalidArgumentError as error:
        return ScriptHeader(), (error.message,)
    if header.dependencies:
        return header, (f"The packages in {_HEADER} were not installed: that needs use_uv=true.",)
    return header, ()


def _write(folder: Path, requirements: tuple[str, ...]) -> Path | None:
    if not requirements:
        return None
    if "," in str(folder):
        raise InvalidArgumentError(
            f"uv takes no requirements from a path with a comma: {folder}.",
            hint="Set PYEXEC_HOME to a folder without one.",
        )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "requirements.in").write_text("".join(f"{one}\n" for one in requirements), encoding="utf-8")
    return folder / "resolved.txt"


def _preparation(
    uv: Path, choice: Choice, folder: Path, resolved: Path | None, options: tuple[str, ...]
) -> tuple[tuple[str, ...], ...]:
    commands: list[tuple[str, ...]] = []
    if choice.interpreter is None:  # First of all: without it, uv would silently resolve for another version.
        commands.append(warm_command(uv, python=choice.python, requirements=None))
    if resolved is not None:
        source = folder / "requirements.in"
        commands += [
            resolve_command(uv, python=choice.python, requirements_in=source, output=resolved, options=options),
            warm_command(uv, python=choice.python, requirements=resolved, options=options),
        ]
    return tuple(commands)
