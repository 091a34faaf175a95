"""From what a caller asks for to the way it is run."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from anyio.to_thread import run_sync

from pyexec.domain.errors import InvalidArgumentError, NotFoundError, PyexecError
from pyexec.domain.executions import Strategy
from pyexec.environments.choice import Choice, choose
from pyexec.environments.credentials import stripped
from pyexec.environments.headers import ScriptHeader, read_header
from pyexec.environments.interpreters import Interpreter, InterpreterFinder
from pyexec.environments.keys import EnvironmentRequest, LockedProject, request_key
from pyexec.environments.local import local_path, source_root
from pyexec.environments.names import NamedEnvironment, NameRegister
from pyexec.environments.orders import BuildOrder
from pyexec.environments.projects import Project, find_virtual_environment, read_project
from pyexec.environments.python_versions import parse_request, show
from pyexec.environments.requirements import anchored, combine, editable_of, unmet
from pyexec.environments.search import is_program
from pyexec.environments.sources import apply_settings
from pyexec.environments.store import Environment, EnvironmentStore
from pyexec.environments.uv import find_uv, script_arguments

_HEADER = "the script's header"
_LOCK_COUNTS = "constraints and index_url do not count here: {lock} says what is installed."
_BUILDER = ("-I", "-m", "pyexec.environments.build")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a call asks for, as far as it matters for the way it is run.

    Attributes:
        script: The script; a relative path starts at `directory`.
        header_source: Its content.
        args: Its arguments.
        use_uv: Whether there may be packages; else it runs on `python3` or `python` on PATH, as that is.
        python_version: A version, a range or a path; only with uv.
        dependencies: Requirements besides those of the header; only with uv.
        constraints: Versions that must not be left; only with uv.
        index_url: The package index to use in place of the usual one; only with uv.
        environment: The name of an environment to run in; only with uv.
        keep_as: A name to give to the environment.
        directory: The folder the script is run in; local paths among `dependencies` start there.
        project: Whether a project at `directory` or above counts; false for inline code, which belongs to none.
        owner: Whose named environments count.
        environ: The variables the script gets: uv's settings among them count.
        folder, holder_lock: The execution's own folder, and the lock that says it lives.
    """

    script: Path
    header_source: bytes = field(repr=False)
    args: tuple[str, ...] = ()
    use_uv: bool = True
    python_version: str | None = None
    dependencies: tuple[str, ...] = field(default=(), repr=False)
    constraints: tuple[str, ...] = field(default=(), repr=False)
    index_url: str | None = field(default=None, repr=False)
    environment: str | None = None
    keep_as: str | None = None
    directory: Path
    project: bool = True
    owner: str
    environ: Mapping[str, str] = field(repr=False)
    folder: Path
    holder_lock: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """A program that makes the environment first; it reads `stdin`, which may hold credentials."""

    argv: tuple[str, ...]
    stdin: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """How one script is run, in the call's directory and with its environment variables.

    Attributes:
        prepare: What to run first; when it fails, the script is not run. Its answer names the interpreter.
        argv: The command that runs the script; after preparing, with the interpreter from the answer in first place.
        strategy: How that is done.
        python: What runs it: the path of an interpreter, or a version that uv fetches while preparing.
        python_version: The version of that, where it is known.
        environment: The environment it runs in, where it is ready.
        packages: The packages it sees; None where that is not known yet, or is whatever the interpreter has.
        first_on_path: A folder to put before all others on the PATH of the script, so that `python` there is the one
            it runs on; None leaves PATH as it is.
        notes: What the reader of the result should know, a sentence each.
    """

    prepare: Preparation | None = None
    argv: tuple[str, ...]
    strategy: Strategy
    python: str
    python_version: str | None
    environment: Environment | None = None
    packages: tuple[str, ...] | None = None
    first_on_path: Path | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Needs:
    """What a script needs, whoever says so."""

    requirements: tuple[str, ...] = ()
    requires_python: str | None = None
    requires_in: str = ""
    apart: bool = False
    options: tuple[str, ...] = ()
    project: LockedProject | None = None
    paths: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()


class Planner:
    """Makes plans; starts nothing and asks no network.

    Args:
        finder: Knows the interpreters of this machine.
        store: The environments that have been made.
        names: Those that have names.
        environ: The server's environment; read for PATH, HOME and what uv is set to.
        own_prefix: The environment the server runs in (`sys.prefix`), where a uv may be.
        own_version: The Python that scripts run on when nobody asks for another: the server's.
        fresh_seconds: How old a resolution may be before the index is asked again.
    """

    def __init__(
        self,
        *,
        finder: InterpreterFinder,
        store: EnvironmentStore,
        names: NameRegister,
        environ: Mapping[str, str],
        own_prefix: Path,
        own_version: str,
        fresh_seconds: float,
    ) -> None:
        self._finder = finder
        self._store = store
        self._names = names
        self._environ = environ
        self._own_prefix = own_prefix
        self._own_version = own_version
        self._fresh_seconds = fresh_seconds
        self._uv: Path | None = None

    async def plan(self, asked: Asked) -> RunPlan:
        """Plan the run of a script, off the event loop.

        With uv, the packages are those of the script's header and of `dependencies` together, or those of a named
        environment; a script that has none of these gets those of the project it lies in, when `project` says so,
        and else sees what its interpreter has.

        Raises:
            InvalidArgumentError: A value is not allowed, or two contradict each other; the message shows them.
            NotFoundError: A path among the arguments, or a named environment, does not exist.
            InterpreterNotFoundError: No Python here fits, and uv may not download one.
            UvNotFoundError: uv is asked for and not installed.
        """
        return await run_sync(self.plan_now, asked)

    def plan_now(self, asked: Asked) -> RunPlan:
        """Do the same; blocks on the disk."""
        if any("\0" in argument for argument in asked.args):
            raise InvalidArgumentError("An argument in args has a NUL character in it.")
        if not asked.use_uv:
            return self._without_uv(asked)
        header = read_header(asked.header_source)
        if asked.environment is not None:
            return self._in_named(asked, header, asked.environment)
        uv = self._find_uv()
        needs = self._needs(header, asked)
        if not needs.apart and needs.project is None and asked.project:
            plan = self._in_virtual_environment(asked, needs)
            if plan is not None:
                return plan
        choice = choose(
            self._finder,
            self._environ,
            argument=asked.python_version,
            requires=needs.requires_python,
            requires_in=needs.requires_in,
            otherwise=self._own_version,
        )
        if choice.interpreter is not None and not (needs.apart or needs.requirements or needs.project or needs.paths):
            # Nothing to install: the interpreter runs as it is.
            return _as_it_is(asked, choice.interpreter, needs.notes)
        return self._apart(asked, needs, choice, uv)

    # -- the ways --------------------------------------------------------------------------------------------------

    def _apart(self, asked: Asked, needs: _Needs, choice: Choice, uv: Path) -> RunPlan:
        """Run it in an environment of ours: at once where that is ready, else after making it."""
        editables = [url for one in needs.requirements if (url := editable_of(one)) is not None]
        request = EnvironmentRequest(
            python=choice.python,
            interpreter=choice.interpreter,
            requirements=tuple(editable_of(one) or one for one in needs.requirements),
            editables=tuple(path for url in editables if (path := local_path(url)) is not None),
            constraints=asked.constraints,
            options=needs.options,
            index_url=asked.index_url,
            project=needs.project,
            paths=needs.paths,
        )
        key = None if choice.interpreter is None else request_key(request, asked.environ, asked.directory)
        if key is not None and asked.keep_as is None:
            ready = self._ready(key, asked)
            if ready is not None:
                return _in_ready(asked, ready, needs.notes)
        order = BuildOrder(
            root=str(self._store.root),
            uv=str(uv),
            key=key,
            python=choice.python,
            python_version=show(choice.interpreter.version) if choice.interpreter else None,
            python_here=() if choice.interpreter else self._finder.versions(),
            requirements=request.requirements,
            editables=tuple(str(path) for path in request.editables),
            constraints=request.constraints,
            options=request.options,
            index_url=request.index_url,
            paths=tuple(str(path) for path in request.paths),
            project=str(request.project.folder) if request.project else None,
            project_lock=str(request.project.lock) if request.project else None,
            fresh_seconds=self._fresh_seconds,
            folder=str(asked.folder),
            holder=asked.folder.name,
            holder_lock=str(asked.holder_lock),
            name=asked.keep_as,
            owner=asked.owner,
            asked=tuple(stripped(one) for one in needs.requirements),
        )
        return _after(asked, order, needs.notes)

    def _ready(self, key: str, asked: Asked) -> Environment | None:
        known = self._store.resolution(key)
        if known is None or not known.is_fresh(self._fresh_seconds):
            return None
        environment = self._store.lease(known.digest, asked.folder.name, asked.holder_lock)
        return replace(environment, notes=known.notes) if environment is not None else None

    def _in_named(self, asked: Asked, header: ScriptHeader, name: str) -> RunPlan:
        named = self._names.get(asked.owner, name)
        if named is None:
            known = ", ".join(one.name for one in self._names.all_of(asked.owner)) or "none"
            raise NotFoundError(
                f"There is no environment {name[:80]!r}; there are: {known}.",
                hint="create_environment makes one.",
            )
        self._require_fitting(asked, header, named)
        environment = self._store.lease(named.digest, asked.folder.name, asked.holder_lock)
        if environment is not None:
            return _in_ready(asked, environment, ())
        order = BuildOrder(
            root=str(self._store.root),
            uv=str(self._find_uv()),
            key=None,
            python=named.python,
            python_version=named.python_version,
            digest=named.digest,
            lock=named.lock,
            fresh_seconds=self._fresh_seconds,
            folder=str(asked.folder),
            holder=asked.folder.name,
            holder_lock=str(asked.holder_lock),
            index_url=asked.index_url,
        )
        return _after(asked, order, ())

    def _require_fitting(self, asked: Asked, header: ScriptHeader, named: NamedEnvironment) -> None:
        if asked.dependencies or asked.constraints:
            raise InvalidArgumentError(
                f"Both environment={named.name!r} and dependencies were given.",
                hint="Give one of them; create_environment makes an environment with more packages.",
            )
        for text, where in ((asked.python_version, "python_version"), (header.requires_python, _HEADER)):
            if text is not None and not _accepts(text, named.python_version):
                raise InvalidArgumentError(
                    f"The environment {named.name!r} has Python {named.python_version}, and {where} asks for {text!r}.",
                    hint="Leave one of them out, or create another environment.",
                )
        environment = self._store.get(named.digest)
        asked_for = combine(header.dependencies, ())
        if environment is None:
            return
        missing = unmet(asked_for, environment.packages, environment.python_version)
        if missing:
            raise InvalidArgumentError(
                f"The environment {named.name!r} lacks what {_HEADER} asks for: {', '.join(missing)}.",
                hint="Leave environment out, or create one that has it.",
            )

    def _in_virtual_environment(self, asked: Asked, needs: _Needs) -> RunPlan | None:
        """Run it in the `.venv` that somebody keeps there, as it is; None where there is none that fits."""
        python = find_virtual_environment(asked.directory, self._environ)
        if python is None:
            return None
        try:
            found = self._finder.find(str(python))
        except PyexecError:
            return None
        version = show(found.version)
        asked_for = (asked.python_version, needs.requires_python)
        if all(text is None or _accepts(text, version) for text in asked_for):
            return _as_it_is(asked, found, ())
        return None

    def _without_uv(self, asked: Asked) -> RunPlan:
        for name, value in (
            ("python_version", asked.python_version),
            ("dependencies", asked.dependencies),
            ("constraints", asked.constraints),
            ("index_url", asked.index_url),
            ("environment", asked.environment),
        ):
            if value:
                why = "the script runs on the python3 on PATH" if name == "python_version" else "nothing is installed"
                raise InvalidArgumentError(f"{name} needs use_uv=true; without uv {why}.")
        interpreter = self._finder.first_on_path()
        header, notes = _header_for_information(asked.header_source)
        wanted = header.requires_python
        if wanted is not None and not parse_request(wanted).accepts(interpreter.version):
            raise InvalidArgumentError(
                f"The script requires Python {wanted!r}, and the python3 on PATH ({interpreter.path}) is "
                f"{show(interpreter.version)}.",
                hint="Run it with use_uv=true, which finds one that fits.",
            )
        return replace(_as_it_is(asked, interpreter, notes), strategy="system-python", first_on_path=None)

    def _find_uv(self) -> Path:
        if self._uv is None or not is_program(self._uv):
            self._uv = find_uv(self._environ, self._own_prefix)
        return self._uv

    # -- what is needed --------------------------------------------------------------------------------------------

    def _needs(self, header: ScriptHeader, asked: Asked) -> _Needs:
        wanted = asked.dependencies or asked.keep_as
        found = None if header.present or wanted or not asked.project else read_project(asked.directory, self._environ)
        if found is None:
            return _of_script(header, asked)
        if found.lock is not None:
            ignored = (_LOCK_COUNTS.format(lock=found.lock),) if asked.constraints or asked.index_url else ()
            return _Needs(
                requires_python=found.requires_python,
                requires_in=str(found.file),
                project=LockedProject(folder=found.folder, lock=found.lock),
                notes=found.notes + ignored,
            )
        return _of_project(found)


def _of_script(header: ScriptHeader, asked: Asked) -> _Needs:
    combine(header.dependencies, asked.dependencies)
    script_folder = (asked.directory / asked.script).parent
    applied = apply_settings(
        [anchored(one.strip(), script_folder) for one in header.dependencies],
        header.uv_settings,
        place="header",
        where=_HEADER,
        base=script_folder,
    )
    combine((), asked.constraints, argument_is="constraints")
    requirements = combine(applied.requirements, [anchored(one.strip(), asked.directory) for one in asked.dependencies])
    return _Needs(
        requirements=tuple(anchored(one, asked.directory) for one in requirements),
        requires_python=header.requires_python,
        requires_in=_HEADER,
        apart=header.present or bool(requirements) or asked.keep_as is not None,
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
        base=found.folder,
    )
    return _Needs(
        requirements=tuple(anchored(one, found.folder) for one in applied.requirements),
        requires_python=found.requires_python,
        requires_in=where,
        options=applied.options if applied.requirements else (),
        paths=(source_root(found.folder),) if found.is_package else (),
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


def _as_it_is(asked: Asked, interpreter: Interpreter, notes: tuple[str, ...]) -> RunPlan:
    return RunPlan(
        argv=(str(interpreter.path), *script_arguments(asked.script, asked.args)),
        strategy="uv-run",
        python=str(interpreter.path),
        python_version=show(interpreter.version),
        first_on_path=interpreter.path.parent,
        notes=notes,
    )


def _in_ready(asked: Asked, environment: Environment, notes: tuple[str, ...]) -> RunPlan:
    return RunPlan(
        argv=(str(environment.python), *script_arguments(asked.script, asked.args)),
        strategy="uv-run",
        python=str(environment.python),
        python_version=environment.python_version,
        environment=environment,
        packages=environment.packages,
        first_on_path=environment.python.parent,
        notes=(*notes, *environment.notes),
    )


def _after(asked: Asked, order: BuildOrder, notes: tuple[str, ...]) -> RunPlan:
    return RunPlan(
        prepare=Preparation(argv=(sys.executable, *_BUILDER), stdin=order.to_json()),
        argv=(order.python, *script_arguments(asked.script, asked.args)),
        strategy="uv-run",
        python=order.python,
        python_version=order.python_version,
        notes=notes,
    )


def _accepts(text: str, version: str) -> bool:
    if text.strip().startswith("/"):
        return False
    major, minor, patch = (int(part) for part in version.split("."))
    return parse_request(text).accepts((major, minor, patch))
