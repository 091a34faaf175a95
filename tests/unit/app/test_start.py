"""What is loaded before something answers, by the names of modules: only what that answer needs."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pyexec.domain.toolsets import DEFAULT_TOOLSETS, SERVICE_TOOLSETS, TOOLSETS
from pyexec.mcp.toolsets import ADDERS, FOR_A_SERVICE

ONLY_THE_SERVICES_NEED = (
    "sqlalchemy",
    "alembic",
    "IPython",
    "nbclient",
    "pyexec.app.services",
    "pyexec.executions.service",
    "pyexec.executions.submission",
    "pyexec.environments.plan",
    "pyexec.processes",
    "pyexec.quality",
    "pyexec.sandbox.ports",
    "pyexec.sessions",
    "pyexec.storage.database",
    "pyexec.walls",
)
ONLY_A_SERVICE_NEEDS = (
    *("prometheus_client", "opentelemetry.sdk", "pyexec.auth", "pyexec.http", "pyexec.web"),
    *("pyexec.app.authorization", "pyexec.app.service", "pyexec.mcp.authorization"),
)
OF_OTHER_TOOLSETS = (
    *("pyexec.domain.turns", "pyexec.mcp.export_tools", "pyexec.sandbox.guest", "pyexec.sessions"),
    *(f"pyexec.mcp.{kind}_{name}" for kind in ("rendering", "results", "views") for name in ("execute", "files")),
    *("pyexec.mcp.rendering_sessions", "pyexec.mcp.results_sessions", "pyexec.mcp.results_packages"),
)

LOCAL = f"""
import anyio
import pyexec.cli.main, pyexec.cli.serve, pyexec.app.server
from fastmcp.server.middleware.dereference import DereferenceRefsMiddleware
from pyexec.mcp.server import build_server
server = build_server(None, None, 20, {DEFAULT_TOOLSETS!r})
async def as_clients_see_them(_context):
    return await server.list_tools()
said = len(anyio.run(DereferenceRefsMiddleware().on_list_tools, None, as_clients_see_them))
"""
SERVICE = f"""
import pyexec.cli.main, pyexec.cli.serve, pyexec.app.service
from pyexec.mcp.server import OverHttp, build_server
build_server(None, None, 20, {SERVICE_TOOLSETS!r}, over_http=OverHttp(closed_by_client=lambda: None))
"""
BARE = """
from fastmcp import Context, FastMCP
server = FastMCP("bare")
@server.tool
def tool(context: Context) -> str:
    return ""
"""


def after(code: str) -> tuple[list[str], Any]:
    """Run code in a fresh interpreter; return which modules there are afterwards, and what `said` is."""
    code = f"{code}\nimport json, sys\nprint(json.dumps([sorted(sys.modules), globals().get('said')]))"
    # What measures coverage is loaded too, where that is measured.
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=env)
    modules, said = json.loads(done.stdout)
    return modules, said


def within(modules: list[str], packages: tuple[str, ...]) -> list[str]:
    return [name for name in modules if any(name == one or name.startswith(f"{one}.") for one in packages)]


def third_parties(modules: list[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules} - sys.stdlib_module_names - {"__main__", "pyexec_guest"}


def tools_of(table: Any, names: tuple[str, ...]) -> set[str]:
    return {f"pyexec.mcp.{adder.partition(':')[0]}" for name in names for adder in table[name]}


@pytest.fixture(scope="module")
def local() -> list[str]:
    modules, listed = after(LOCAL)
    assert listed == 25
    return modules


@pytest.fixture(scope="module")
def service() -> list[str]:
    return after(SERVICE)[0]


def test_a_local_server_loads_its_services_after_the_first_answer(local: list[str]) -> None:
    assert "pyexec.app.server" in local
    assert within(local, ONLY_THE_SERVICES_NEED) == []


def test_a_local_server_loads_nothing_that_is_for_http(local: list[str]) -> None:
    assert within(local, ONLY_A_SERVICE_NEEDS) == []


def test_a_server_loads_no_third_party_that_a_bare_one_does_not(local: list[str]) -> None:
    assert third_parties(local) - third_parties(after(BARE)[0]) == {"pyexec"}


def test_a_server_over_http_listens_before_its_services_are_loaded(service: list[str]) -> None:
    assert "pyexec.app.service" in service
    assert within(service, ("pyexec.sessions",)) == ["pyexec.sessions", "pyexec.sessions.paths"]
    assert within(service, tuple(name for name in ONLY_THE_SERVICES_NEED if name != "pyexec.sessions")) == []


def test_only_the_tools_of_offered_toolsets_are_loaded(local: list[str], service: list[str]) -> None:
    every = tools_of(ADDERS, tuple(TOOLSETS)) | tools_of(FOR_A_SERVICE, tuple(TOOLSETS))
    assert set(local) & every == tools_of(ADDERS, DEFAULT_TOOLSETS)
    shared = {"pyexec.mcp.run_tools"}
    assert set(service) & every - shared == tools_of(FOR_A_SERVICE, SERVICE_TOOLSETS)
    assert within(local, OF_OTHER_TOOLSETS) == []
    assert within(service, ("pyexec.benchmarks", "pyexec.profiles", "pyexec.scripts")) == []


def test_the_list_of_tools_is_answered_without_loading_an_http_client(local: list[str]) -> None:
    assert within(local, ("jsonref", "requests", "urllib3")) == []


def test_the_command_line_says_what_it_can_do_with_nothing_but_click() -> None:
    loaded, _ = after("import pyexec.cli.main")
    assert third_parties(loaded) == {"click", "pyexec"}
    assert within(loaded, ("asyncio", "email", "importlib.metadata", "logging", "subprocess")) == []
    ours = {"app", "app.loading", "cli", "cli.main", "domain", "domain.errors", "domain.text"}
    assert set(within(loaded, ("pyexec",))) == {"pyexec", *(f"pyexec.{name}" for name in ours)}


def test_a_run_from_the_command_line_loads_nothing_of_mcp_and_no_migrations() -> None:
    loaded, _ = after("import pyexec.cli.main; pyexec.cli.main._load('run')")
    assert "pyexec.app.services" in loaded
    assert within(loaded, ("alembic", "fastmcp", "mcp", "mcp_types", "pydantic", "pyexec.mcp", "pyexec.http")) == []


def test_the_identity_provider_says_what_it_can_do_with_nothing_but_click() -> None:
    loaded, _ = after("import pyexec_idp.cli.main")
    assert third_parties(loaded) == {"click", "pyexec_idp"}
    assert within(loaded, ("asyncio", "email", "importlib.metadata")) == []


def test_no_garbage_is_looked_for_while_modules_are_loaded_and_later_it_is(tmp_path: Path) -> None:
    # As many cycles as would be looked through a hundred times.
    (tmp_path / "makes_garbage.py").write_text("for _ in range(100_000):\n    cycle = []\n    cycle.append(cycle)\n")
    code = f"""
import gc, sys
from pyexec.app.loading import load
sys.path.insert(0, {str(tmp_path)!r})
rounds = lambda: sum(one["collections"] for one in gc.get_stats())
before = rounds()
load("makes_garbage")
said = [rounds() - before, gc.isenabled(), gc.get_freeze_count() > 100_000]
"""
    assert after(code)[1] == [0, True, True]
