"""What every test shares."""

import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from _pytest.pathlib import import_path

from tests.helpers import forks
from tests.helpers.homes import require_no_process_of_any_home, temporary_home
from tests.helpers.kept import keep
from tests.helpers.postgres import Postgres, postgres_server

# What pytest makes of the tests is kept, whatever the environment says for programs: every worker would make it anew.
sys.dont_write_bytecode = False


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The server runs on asyncio only, so its tests do."""
    return "asyncio"


@pytest.fixture(autouse=True)
def no_process_left_behind() -> Iterator[None]:
    """Fail a test that leaves an execution in a state folder of its own or of its module."""
    yield
    require_no_process_of_any_home()


@pytest.fixture
def state_home() -> Iterator[Path]:
    """A state folder for one test; servers started in it must be gone at the end of the test."""
    with temporary_home() as home:
        yield home


@pytest.fixture(scope="module")
def module_home() -> Iterator[Path]:
    """A state folder for all tests of a file."""
    with temporary_home() as home:
        yield home


@pytest.fixture(scope="module")
def kept_environments(module_home: Path, pytestconfig: pytest.Config) -> None:
    """The state folder of the file has the environments that others have made, in this run or before."""
    assert pytestconfig.cache is not None
    (module_home / "environments").symlink_to(pytestconfig.cache.mkdir("environments"))


# Folders of the cache that are the same for all clones.
KEPT = ("environments", "guest", "sandbox-packages", "usual-packages")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server, started when the first test asks for it; each takes a schema of its own there."""
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def shared_schema(postgres: Postgres) -> str:
    """The address of a schema for all tests that only want no records in it."""
    return postgres.database()


# Markers whose tests are left out unless the option of the same name is given.
ON_REQUEST = {
    "usual_packages": "try all packages that sandboxes have by default",
    "containers": "build the container files and run them; needs an engine",
    "exhaustive": "run the long proofs too, which show again at length what other tests show",
}
_left_out = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer what is left out otherwise."""
    for marker, what in ON_REQUEST.items():
        parser.addoption(_option(marker), action="store_true", help=what)


def _option(marker: str) -> str:
    return f"--{marker.replace('_', '-')}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Have each worker of xdist load the tests from another place on, before all collect them in the same order.

    What pytest makes of a test takes a while and is kept: so each makes its part, and not all of them everything.
    """
    worker = getattr(session.config, "workerinput", None)
    if worker is None or session.config.args != ["tests"]:
        return
    paths = sorted(session.config.rootpath.glob("tests/**/test_*.py"))
    first = len(paths) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for path in (*paths[first:], *paths[:first]):
        with suppress(Exception):  # Collecting it says what is wrong with it.
            import_path(path, mode="importlib", root=session.config.rootpath, consider_namespace_packages=False)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what was not asked for; not skipped, since nothing is missing. The quick tests come last.

    Then all workers end at about the same time.
    """
    for marker in ON_REQUEST:
        if config.getoption(_option(marker)):
            continue
        left_out = [item for item in items if item.get_closest_marker(marker) is not None]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if item.get_closest_marker(marker) is None]
        if marker == "exhaustive":
            _note_left_out(config, len(left_out))
    items.sort(key=lambda item: "/unit/" in item.nodeid)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Keep the garbage collector from looking through all tests and modules again and again: they stay to the end."""
    gc.freeze()


def _note_left_out(config: pytest.Config, number: int) -> None:
    """Remember it; a worker of xdist tells its controller, which has collected nothing itself."""
    config.stash[_left_out] = number
    told: dict[str, Any] | None = getattr(config, "workeroutput", None)
    if told is not None:
        told["left_out"] = number


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Hear it from a worker of xdist; one that died has nothing to say."""
    told = getattr(node, "workeroutput", {}).get("left_out", 0)
    node.config.stash[_left_out] = max(told, node.config.stash.get(_left_out, 0))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what was left out, and how to have it."""
    number = config.stash.get(_left_out, 0)
    if number:
        tests = "1 long proof was" if number == 1 else f"{number} long proofs were"
        terminalreporter.write_line(f'{tests} left out; they run with make test ARGS="--exhaustive".')


def pytest_configure(config: pytest.Config) -> None:
    """Prepare what all tests find around them; workers of xdist find what their controller has prepared.

    Programs can be interrupted as ever, though a shell has what it starts in the background ignore that.
    """
    if not hasattr(config, "workerinput"):
        if config.pluginmanager.hasplugin("cacheprovider"):
            keep(KEPT, config.cache.mkdir("."))
        if config.getoption("numprocesses", None) and config.args == ["tests"]:
            forks.share()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs root where there is none."""
    if item.get_closest_marker("root") is not None and os.geteuid() != 0:
        pytest.skip("needs to run as root")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """End what forks; fail a session that skipped a test where all are meant to run: a skip hides a missing install."""
    forks.close()
    if os.environ.get("PYEXEC_CI_NO_SKIPS") != "1" or session.exitstatus != pytest.ExitCode.OK:
        return
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and reporter.stats.get("skipped"):
        reporter.ensure_newline()
        reporter.write_line("PYEXEC_CI_NO_SKIPS is set and tests were skipped.", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
