"""uv and the interpreters, the package index, and whether programs can be started and guarded: all by trying."""

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import requires

from packaging.requirements import Requirement
from packaging.version import InvalidVersion, Version

from pyexec.app.diagnosis.checks import Check
from pyexec.domain.errors import UvNotFoundError
from pyexec.environments.credentials import masked
from pyexec.environments.interpreters import InterpreterFinder
from pyexec.environments.python_versions import show
from pyexec.environments.search import origin
from pyexec.environments.uv import find_uv, patience
from pyexec.processes.commands import Finished, run_tool
from pyexec.settings import Settings

ANSWER_SECONDS = 20.0
INDEX_SECONDS = 60.0
SAID_CHARACTERS = 300
_FACILITIES = ("-I", "-m", "pyexec.processes.facilities")


def check_uv(settings: Settings) -> Check:
    """Tell which uv is used, and whether it is new enough."""
    try:
        uv = find_uv(settings.environ, settings.prefix)
    except UvNotFoundError as error:
        return Check(name="uv", status="fail", message=error.message, hint=error.hint)
    try:
        said = _run([str(uv), "--version"], settings.environ)
        version = Version(said.stdout.split()[1])
    except (OSError, TimeoutError, IndexError, InvalidVersion):
        return Check(name="uv", status="fail", message=f"{uv} does not work.", hint="Install it anew: pip install uv")
    message = f"{version} at {uv}"
    if version < (least := _least_uv()):
        return Check(
            name="uv",
            status="warn",
            message=message,
            hint=f"{least} or newer is what pyexec is tested with: upgrade it.",
        )
    return Check(name="uv", status="ok", message=message)


def check_interpreters(settings: Settings, finder: InterpreterFinder) -> Check:
    """List the Pythons of this machine."""
    found = finder.available()
    details = tuple(f"{show(one.version):8} {one.path} ({origin(one.path, settings.environ)})" for one in found)
    if not found:
        return Check(name="interpreters", status="fail", message="No Python works here.", hint="uv python install 3.13")
    return Check(name="interpreters", status="ok", message=f"{len(found)} found", details=details)


def check_child_processes(settings: Settings) -> Check:
    """Start a child and see that it answers."""
    began = time.monotonic()
    try:
        said = _run([sys.executable, "-I", "-c", "print('here')"], settings.environ).stdout
    except (OSError, TimeoutError) as error:
        return Check(name="child processes", status="fail", message=f"None can be started: {error}.")
    if said.strip() != "here":
        return Check(name="child processes", status="fail", message="One was started and did not answer.")
    taken = (time.monotonic() - began) * 1000
    return Check(name="child processes", status="ok", message=f"One started, answered and ended in {taken:.0f} ms.")


def check_facilities(settings: Settings) -> tuple[Check, ...]:
    """Try what a keeper uses to find and end everything that a program started."""
    try:
        said = _run([sys.executable, *_FACILITIES], settings.environ)
        found: dict[str, object] = json.loads(said.stdout)
    except (OSError, TimeoutError, ValueError) as error:
        return (Check(name="keeper", status="fail", message=f"What it can do cannot be tried: {error}."),)
    if found.get("control_group") is True:
        group = Check(
            name="control group",
            status="ok",
            message="Each program gets one; what it starts is ended whatever it does.",
        )
    else:
        group = Check(
            name="control group",
            status="warn",
            message="None can be made here: what a program starts is found by its descent.",
            hint="Start the server inside a control group that is delegated to you (systemd-run --user --scope).",
        )
    if found.get("adopts_orphans") is True:
        adopts = Check(name="orphans", status="ok", message="Processes that lose their parent are found and ended.")
    else:
        adopts = Check(
            name="orphans",
            status="warn",
            message="Processes that leave their process group and lose their parent can escape being ended.",
            hint="Linux is needed for that.",
        )
    return group, adopts


def check_index(settings: Settings) -> Check:
    """Ask the package index for one small package, the way environments are made."""
    try:
        uv = str(find_uv(settings.environ, settings.prefix))
    except UvNotFoundError:
        return Check(name="package index", status="fail", message="It cannot be asked without uv.")
    argv = [uv, "pip", "compile", "--quiet", "--no-deps", "--no-cache", "--python", sys.executable, "-"]
    environ = {**settings.environ, **patience(settings.environ)}
    try:
        answered = _run(argv, environ, stdin="idna\n", seconds=INDEX_SECONDS)
    except (OSError, TimeoutError) as error:
        return Check(name="package index", status="fail", message=f"It cannot be asked: {error}.")
    if answered.exit_code == 0:
        return Check(name="package index", status="ok", message="It answers.")
    return Check(
        name="package index",
        status="fail",
        message="It does not answer: " + " ".join(masked(answered.stderr).split())[:SAID_CHARACTERS],
        hint="Set HTTPS_PROXY, SSL_CERT_FILE or UV_DEFAULT_INDEX for the server, in its client's configuration.",
    )


def _least_uv() -> Version:
    """Return the oldest uv that pyexec itself asks for."""
    for text in requires("mcp-pyexec") or ():
        requirement = Requirement(text)
        if requirement.name == "uv":
            return min((Version(one.version) for one in requirement.specifier if one.operator == ">="), default=_ANY)
    return _ANY


_ANY = Version("0")


def _run(
    argv: Sequence[str], environ: Mapping[str, str], *, stdin: str = "", seconds: float = ANSWER_SECONDS
) -> Finished:
    return run_tool(argv, env=environ, stdin=stdin, on_tick=_until(time.monotonic() + seconds))


def _until(deadline: float) -> Callable[[], None]:
    def tick() -> None:
        if time.monotonic() > deadline:
            raise TimeoutError("it takes too long")

    return tick
