import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from pyexec.domain.executions import Execution, ExecutionRequest, Outcome
from pyexec.domain.principals import Principal
from pyexec.environments.orders import Answer, write_answer
from pyexec.executions.afterwards import Afterwards
from pyexec.executions.recovery import Recovery
from pyexec.executions.settling import FOLDER_GONE, Settler
from pyexec.sandbox.claims import claim
from pyexec.storage.executions import ExecutionStore
from pyexec.storage.presence import Presence
from pyexec.storage.state_folder import StateFolder
from tests.helpers.databases import Place
from tests.helpers.records import OWNER, execution

FAILED = {"kind": "environment_failed", "ended_at": 200.0, "reason": "error: uv said\n  cause: a lot"}


class Heard:
    """Hears of what is run."""

    def __init__(self) -> None:
        self.ended_ones: list[Execution] = []

    def submitted(self, _principal: Principal, _execution: Execution, _request: ExecutionRequest, /) -> None:
        raise AssertionError("nothing is submitted here")

    def refused(self, _principal: Principal, _request: ExecutionRequest, _code: str, /) -> None:
        raise AssertionError("nothing is refused here")

    def ended(self, execution: Execution, /) -> None:
        self.ended_ones.append(execution)


class World:
    """A state folder with one execution that waits."""

    def __init__(self, place: Place) -> None:
        self.folder = StateFolder(place.root)
        self.folder.create()
        self.store = ExecutionStore(place.open())
        self.record = execution(1)
        self.of_it = self.folder.execution(self.record.id)
        self.of_it.mkdir()
        self.store.add(self.record)
        self.heard = Heard()
        recovery = Recovery(self.folder, self.store, Presence(self.folder.servers))
        self.settler = Settler(self.folder, self.store, Afterwards(), recovery, self.heard)

    def ends(self, values: Mapping[str, object]) -> None:
        (self.of_it / "outcome.json").write_text(json.dumps(values))

    def kept(self) -> Execution:
        found = self.store.get(OWNER, self.record.id)
        assert found is not None
        return found


@pytest.fixture
def world(place: Place) -> World:
    return World(place)


def test_what_waits_with_somebody_to_guard_it_stays_as_it_is(world: World) -> None:
    held = claim(world.of_it, world.folder.queue(OWNER), world.record.id)
    assert world.settler.settle_active(OWNER) == [world.record]
    held.release()


def test_what_has_ended_is_written_into_the_index(world: World) -> None:
    world.ends({"kind": "exited", "exit_code": 3, "started_at": 150.0, "ended_at": 200.0})
    settled = world.settler.settle(world.record)
    assert (settled.state, settled.outcome and settled.outcome.exit_code) == ("failed", 3)
    assert world.kept() == settled
    assert world.settler.settle_active(OWNER) == []


def test_an_end_that_several_have_seen_is_heard_of_once(world: World) -> None:
    world.ends({"kind": "exited", "exit_code": 0, "started_at": 150.0, "ended_at": 200.0})
    seen = [world.settler.settle_soon(world.record) for _ in range(3)]
    assert seen == [seen[0]] * 3
    assert world.settler.settle_active(OWNER) == [], "whoever lists comes after what was seen before"
    world.settler.settle(world.record)
    world.settler.settle_soon(world.record)
    world.settler.catch_up()
    assert world.heard.ended_ones == [seen[0]] == [world.kept()]


@pytest.mark.case("B035")
def test_a_failure_to_make_the_environment_has_the_reason_that_the_builder_gave(world: World) -> None:
    world.ends(FAILED)
    write_answer(world.of_it, Answer(failure="The requirements cannot be met: no.", failure_detail="error: uv said"))
    outcome = Outcome(
        kind="environment_failed",
        ended_at=200.0,
        reason="The requirements cannot be met: no.",
        detail="error: uv said",
    )
    assert world.settler.settle(world.record) == replace(world.record, state="failed", outcome=outcome)
    assert world.kept().outcome == outcome


def test_a_builder_that_left_no_answer_leaves_the_keepers_reason(world: World) -> None:
    world.ends(FAILED)
    outcome = world.settler.settle(world.record).outcome
    assert outcome is not None
    assert (outcome.reason, outcome.detail) == (FAILED["reason"], None)


def test_an_answer_does_not_matter_to_what_ended_otherwise(world: World) -> None:
    world.ends({"kind": "timed_out", "ended_at": 200.0})
    write_answer(world.of_it, Answer(failure="The requirements cannot be met."))
    outcome = world.settler.settle(world.record).outcome
    assert outcome is not None
    assert (outcome.kind, outcome.reason) == ("timed_out", None)


def test_what_has_lost_its_folder_is_lost(world: World) -> None:
    world.of_it.rmdir()
    settled = world.settler.settle(world.record)
    assert settled.state == "lost"
    assert settled.outcome is not None
    assert settled.outcome.reason == FOLDER_GONE
    assert world.kept().state == "lost"
