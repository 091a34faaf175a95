"""What every test shares."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import forks
from tests.helpers.homes import require_no_process_of_any_home, temporary_home


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


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer what is left out otherwise."""
    parser.addoption("--usual-packages", action="store_true", help="try all packages that sandboxes have by default")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what was not asked for; not skipped, since nothing is missing. The quick tests come last.

    Then all workers end at about the same time.
    """
    if not config.getoption("--usual-packages"):
        left_out = [item for item in items if item.get_closest_marker("usual_packages") is not None]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if item not in left_out]
    items.sort(key=lambda item: "unit" in item.path.parts)


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
