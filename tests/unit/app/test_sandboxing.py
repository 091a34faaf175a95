"""Sandboxes are as the operator has set them, and nothing that a caller sends has a say in what they run on."""

from dataclasses import replace
from pathlib import Path

import pytest

from pyexec.app import sandboxing
from pyexec.domain.errors import WallUnavailableError
from pyexec.domain.executions import ExecutionRequest
from pyexec.domain.limits import MEGABYTE
from pyexec.domain.sandboxes import SandboxSettings
from pyexec.environments.orders import BuildOrder
from pyexec.executions.sandboxed import InSandboxes
from pyexec.sandbox.keepers import KeeperConnection
from pyexec.sandbox.ports import Launch
from pyexec.storage.state_folder import StateFolder
from tests.integration.engine import Engine

HEADER = "# /// script\n# dependencies = []\n# [tool.uv]\n# index-url = 'http://evil'\n# no-build = false\n# ///\n"


class RecordingWall:
    """A wall that notes what it is to launch, and launches nothing."""

    name = "recording"

    def __init__(self) -> None:
        self.launches: list[Launch] = []

    def begin(self, launch: Launch, *, may_wait: bool) -> KeeperConnection | None:
        return None

    def launch(self, launch: Launch, lock_fd: int) -> KeeperConnection:
        self.launches.append(launch)
        raise WallUnavailableError("Nothing is launched here.")


async def launched(engine: Engine, code: str, **request: object) -> Launch:
    """Return what would be launched for code that is to run in a sandbox."""
    submitter = engine.executions._submitter
    wall = RecordingWall()
    assert isinstance(submitter._in_sandboxes, InSandboxes)
    submitter._in_sandboxes = replace(submitter._in_sandboxes, wall=wall)
    asked = ExecutionRequest(script_content=code, sandboxed=True, **request)  # type: ignore[arg-type]
    with pytest.raises(WallUnavailableError, match="Nothing is launched"):
        await engine.executions.submit(engine.principal, asked)
    (launch,) = wall.launches
    return launch


async def test_a_caller_has_no_say_in_what_is_installed_for_sandboxes_and_how(state_home: Path) -> None:
    sent = {"UV_INDEX_URL": "http://evil", "LD_PRELOAD": "/evil.so", "PATH": "/evil", "UV_NO_BUILD": "0"}
    with Engine(state_home, sandbox_packages="default humanize") as engine:
        launch = await launched(engine, f"{HEADER}print(1)", env_vars=sent)
        (prepare,) = launch.prepare
        order = BuildOrder.from_json(prepare.stdin)
        assert order.requirements == engine.settings.sandboxes.packages
        assert (order.index_url, order.options, order.cwd) == (None, (), str(state_home))
        assert prepare.env == {**engine.settings.environ, **prepare.env}
        assert not {"http://evil", "/evil.so", "/evil"} & set(prepare.env.values())
        assert prepare.env["UV_NO_BUILD"] == "1"
        assert launch.guest is None or launch.guest["env"] == sent


def test_the_keeper_is_told_what_the_operator_has_set(state_home: Path) -> None:
    given = {"sandbox_memory": "300", "sandboxes_memory": "1000", "sandbox_ready": "0", "sandbox_waive": "cpu"}
    with Engine(state_home, **given, sandbox_preload="json", sandbox_cpu="2") as engine:
        folder = StateFolder(state_home)
        orders = sandboxing._keeper_orders(engine.settings, folder)
        other = sandboxing._keeper_orders(replace(engine.settings, sandboxes=SandboxSettings()), folder)
    assert (orders.limits.memory, orders.limits.cpu, orders.budget) == (300 * MEGABYTE, 2.0, 1000 * MEGABYTE)
    assert (orders.ready, orders.waived, orders.preloaded) == (0, ("cpu",), ("json",))
    assert orders.from_json(orders.to_json()) == orders
    assert other.from_json(other.to_json()) == other
    assert orders.folder != other.folder


def test_all_sandboxes_together_have_three_quarters_of_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxing.machine, "memory", lambda: 1000)
    assert sandboxing.memory_together(SandboxSettings()) == 750
    assert sandboxing.memory_together(SandboxSettings(together=123)) == 123
