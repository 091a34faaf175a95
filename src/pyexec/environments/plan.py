"""From what a caller asks for to the way it is run."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pyexec.domain.errors import InvalidArgumentError, NotFoundError, PyexecError
from pyexec.environments.asking import Asked, Preparation, RunPlan
from pyexec.environments.beside import link_tools, tools_link, tools_order
from pyexec.environments.choice import Choice, choose
from pyexec.environments.credentials import stripped
from pyexec.environments.headers import ScriptHeader, read_header
from pyexec.environments.interpreters import Interpreter, InterpreterFinder
from pyexec.environments.keys import EnvironmentRequest, request_key
from pyexec.environments.local import local_path
from pyexec.environments.locked import read_lock
from pyexec.environments.names import NamedEnvironment, NameRegister
from pyexec.environments.needs import HEADER, Needs, needs_of, with_tools
from pyexec.environments.orders import BuildOrder
from pyexec.environments.projects import find_virtual_environment, packages_of
from pyexec.environments.python_versions import accepts, parse_request, show
from pyexec.environments.requirements import combine, editable_of, unmet
from pyexec.environments.search import is_program
from pyexec.environments.store import Environment, EnvironmentStore
from pyexec.environments.uv import find_uv

BUILDER = ("-I", "-m", "pyexec.environments.build")
"""What makes environments, and packages for sandboxes; for our own interpreter."""


class Planner:
    """Makes plans; installs nothing and asks no network.

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

    def plan(self, asked: Asked) -> RunPlan:
        """Plan the run of a script; blocks on the disk, and starts interpreters that are not known yet.

        With uv, the packages are those of the script's header and of `dependencies` together, or those of a named
        environment; a script that has none of these gets those of the project it lies in, when `project` says so,
        and else sees what its interpreter has.

        Raises:
            InvalidArgumentError: A value is not allowed, or two contradict each other; the message shows them.
            NotFoundError: A path among the arguments, or a named environment, does not exist.
            InterpreterNotFoundError: No Python here fits, and uv may not download one.
            UvNotFoundError: uv is asked for and not installed.
        """
        if any("\0" in argument for argument in asked.args):
            raise InvalidArgumentError("An argument in args has a NUL character in it.")
        plan = self._planned(asked)
        return self._with_beside(asked, plan) if asked.beside else plan

    def named(self, owner: str, name: str) -> NamedEnvironment:
        """Return the environment that an owner has given that name to.

        Raises:
            NotFoundError: There is none; the message names those there are.
        """
        named = self._names.get(owner, name)
        if named is None:
            known = ", ".join(one.name for one in self._names.all_of(owner)) or "none"
            raise NotFoundError(
                f"There is no environment {name[:80]!r}; there are: {known}.",
                hint="create_environment makes one.",
            )
        return named

    def packages_of(self, named: NamedEnvironment) -> list[str]:
        """Return what a named environment has, whether it is there or only its lock."""
        environment = self._store.get(named.digest)
        return list(environment.packages) if environment else [line.text for line in read_lock(named.lock)]

    def _planned(self, asked: Asked) -> RunPlan:
        if not asked.use_uv:
            return self._without_uv(asked)
        header = read_header(asked.header_source)
        if asked.environment is not None:
            return self._in_named(asked, header, asked.environment)
        uv = self._find_uv()
        needs = needs_of(header, asked, self._environ)
        if not needs.apart and needs.project is None and asked.project:
            plan = self._in_virtual_environment(asked, needs, uv)
            if plan is not None:
                return plan
        needs = with_tools(needs, asked.tools)
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
            return _as_it_is(asked, choice.interpreter, needs.notes, packages=())
        return self._apart(asked, needs, choice, uv)

    # -- the ways --------------------------------------------------------------------------------------------------

    def _apart(self, asked: Asked, needs: Needs, choice: Choice, uv: Path) -> RunPlan:
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
            cwd=str(asked.directory),
            fresh_seconds=self._fresh_seconds,
            folder=str(asked.folder),
            holder=asked.holder,
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
        environment = self._store.lease(known.digest, asked.holder, asked.holder_lock)
        return replace(environment, notes=known.notes) if environment is not None else None

    def _in_named(self, asked: Asked, header: ScriptHeader, name: str) -> RunPlan:
        named = self.named(asked.owner, name)
        self._require_fitting(asked, header, named)
        environment = self._store.lease(named.digest, asked.holder, asked.holder_lock)
        if environment is not None:
            return _in_ready(asked, environment, ())
        order = BuildOrder(
            root=str(self._store.root),
            uv=str(self._find_uv()),
            key=None,
            python=named.python,
            python_version=named.python_version,
            editables=named.editables,
            digest=named.digest,
            lock=named.lock,
            cwd=str(asked.directory),
            fresh_seconds=self._fresh_seconds,
            folder=str(asked.folder),
            holder=asked.holder,
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
        for text, where in ((asked.python_version, "python_version"), (header.requires_python, HEADER)):
            if text is not None:
                require_python(named, text, where)
        here = self.packages_of(named)
        lacking = unmet(asked.tools, here, named.python_version)
        if lacking:
            raise InvalidArgumentError(
                f"The environment {named.name!r} lacks what a notebook is run with: {', '.join(lacking)}.",
                hint=f"Create one that has {' and '.join(asked.tools)} too, or leave environment out.",
            )
        asked_for = combine(header.dependencies, ())
        missing = unmet(asked_for, here, named.python_version)
        if missing:
            raise InvalidArgumentError(
                f"The environment {named.name!r} lacks what {HEADER} asks for: {', '.join(missing)}.",
                hint="Leave environment out, or create one that has it.",
            )

    def _in_virtual_environment(self, asked: Asked, needs: Needs, uv: Path) -> RunPlan | None:
        """Run it in the `.venv` that somebody keeps there, as it is; None where there is none that fits.

        Where that lacks tools to run it with, they come from an environment of ours that sees what is in the `.venv`.
        """
        python = find_virtual_environment(asked.directory, self._environ)
        if python is None:
            return None
        try:
            found = self._finder.find(str(python))
        except PyexecError:
            return None
        version = show(found.version)
        asked_for = (asked.python_version, needs.requires_python)
        if not all(text is None or accepts(text, version) for text in asked_for):
            return None
        site = packages_of(python, found.version)
        missing = [tool for tool in asked.tools if next(site.glob(f"{tool}-*.dist-info"), None) is None]
        if not missing:
            return _as_it_is(asked, found, ())
        folder = python.parents[1]
        note = (
            f"{folder} has no {' and no '.join(missing)}, so it ran in an environment of its own, where the packages "
            f"of that one come after those of {' and '.join(asked.tools)}."
        )
        behind = Needs(requirements=asked.tools, paths=(site,), notes=(note,))
        return self._apart(asked, behind, Choice(python=str(found.path), interpreter=found), uv)

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

    def _with_beside(self, asked: Asked, plan: RunPlan) -> RunPlan:
        """Have our tools' packages there when the program starts, in an environment apart."""
        # A virtual environment's interpreter is a link: all those of one Python share the tools.
        python = Path(plan.python).resolve()
        is_here = plan.python.startswith("/") and python.exists()
        interpreter = self._finder.find(str(python)) if is_here else None
        order = tools_order(
            asked, interpreter, store=self._store, uv=str(self._find_uv()), fresh_seconds=self._fresh_seconds
        )
        ready = self._ready(order.key, asked) if order.key is not None else None
        if ready is not None:
            link_tools(tools_link(asked.folder), ready)
            return plan
        orders = [plan.prepare.stdin] if plan.prepare else []
        stdin = "\n".join([*orders, order.to_json()])
        builder = Preparation(argv=(sys.executable, *BUILDER), stdin=stdin, only_tools=plan.prepare is None)
        return replace(plan, prepare=builder)

    def _find_uv(self) -> Path:
        if self._uv is None or not is_program(self._uv):
            self._uv = find_uv(self._environ, self._own_prefix)
        return self._uv


def _as_it_is(
    asked: Asked, interpreter: Interpreter, notes: tuple[str, ...], packages: tuple[str, ...] | None = None
) -> RunPlan:
    return RunPlan(
        argv=(str(interpreter.path), *asked.arguments),
        strategy="uv-run",
        python=str(interpreter.path),
        python_version=show(interpreter.version),
        packages=packages,
        first_on_path=interpreter.path.parent,
        notes=notes,
    )


def _in_ready(asked: Asked, environment: Environment, notes: tuple[str, ...]) -> RunPlan:
    return RunPlan(
        argv=(str(environment.python), *asked.arguments),
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
        prepare=Preparation(argv=(sys.executable, *BUILDER), stdin=order.to_json()),
        argv=(order.python, *asked.arguments),
        strategy="uv-run",
        python=order.python,
        python_version=order.python_version,
        notes=notes,
    )


def require_python(named: NamedEnvironment, text: str, where: str) -> None:
    """See that a named environment has the Python that is asked for, and `where`.

    Raises:
        InvalidArgumentError: It has not.
    """
    if not accepts(text, named.python_version):
        raise InvalidArgumentError(
            f"The environment {named.name!r} has Python {named.python_version}, and {where} asks for {text!r}.",
            hint="Leave one of them out, or create another environment.",
        )


def _header_for_information(source: bytes) -> tuple[ScriptHeader, tuple[str, ...]]:
    """Read a header that Python takes for a comment: a fault in it is no reason not to run."""
    try:
        header = read_header(source)
    except InvalidArgumentError as error:
        return ScriptHeader(), (error.message,)
    if header.dependencies:
        return header, (f"The packages in {HEADER} were not installed: that needs use_uv=true.",)
    return header, ()
