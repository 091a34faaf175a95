"""What every test shares."""

import os

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The server runs on asyncio only, so its tests do."""
    return "asyncio"


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a session that skipped a test where all are meant to run: there a skip hides a missing install."""
    if os.environ.get("PYEXEC_CI_NO_SKIPS") != "1" or session.exitstatus != pytest.ExitCode.OK:
        return
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and reporter.stats.get("skipped"):
        reporter.ensure_newline()
        reporter.write_line("PYEXEC_CI_NO_SKIPS is set and tests were skipped.", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
