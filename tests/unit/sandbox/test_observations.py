import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyexec.domain.executions import Outcome, Process
from pyexec.sandbox.claims import claim
from pyexec.sandbox.losses import KEEPER_ENDED, NEVER_STARTED, settle_loss
from pyexec.sandbox.observations import Observation, Started, observe

STARTED: dict[str, Any] = {
    "boot": "b",
    "pid": 7,
    "start_ticks": 99,
    "started_at": 100.5,
    "group": None,
    "pipes": [3, 4],
}
OUTCOME: dict[str, Any] = {
    "v": 1,
    "kind": "signalled",
    "exit_code": 143,
    "signal": "SIGTERM",
    "started_at": 100.5,
    "ended_at": 101.5,
    "leftover_processes": [{"pid": 9, "command": "sleep"}],
    "stdout_bytes": 5,
    "karma": "unknown to this version",
}
started = Started(boot="b", pid=7, start_ticks=99, started_at=100.5, group=None, pipes=(3, 4))
outcome = Outcome(
    kind="signalled",
    exit_code=143,
    signal="SIGTERM",
    started_at=100.5,
    ended_at=101.5,
    stdout_bytes=5,
    leftover_processes=(Process(pid=9, command="sleep"),),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "execution").mkdir()
    return tmp_path / "execution"


def note(folder: Path, name: str, value: object) -> None:
    (folder / name).write_text(json.dumps(value))


def test_what_is_held_and_has_not_begun_waits(folder: Path, tmp_path: Path) -> None:
    held = claim(folder, tmp_path / "queue", "a" * 32)

    assert observe(folder) == Observation(phase="pending")
    held.release()


def test_what_is_held_and_has_begun_runs(folder: Path, tmp_path: Path) -> None:
    held = claim(folder, tmp_path / "queue", "a" * 32)
    note(folder, "started.json", STARTED)

    assert observe(folder) == Observation(phase="running", started=started)
    held.release()


def test_an_outcome_counts_whoever_holds_the_lock(folder: Path, tmp_path: Path) -> None:
    note(folder, "started.json", STARTED)
    note(folder, "outcome.json", OUTCOME)
    assert observe(folder) == Observation(phase="ended", started=started, outcome=outcome)

    held = claim(folder, tmp_path / "queue", "a" * 32)
    assert observe(folder).phase == "ended"
    held.release()


def test_what_nobody_holds_and_has_no_outcome_is_lost(folder: Path) -> None:
    assert observe(folder) == Observation(phase="lost")
    assert observe(folder / "gone") == Observation(phase="lost")


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", "{}", '{"kind": "exited"}', '{"kind": "odd", "ended_at": 1}']
)
def test_an_outcome_that_cannot_be_read_is_none(folder: Path, content: str) -> None:
    (folder / "outcome.json").write_text(content)

    assert observe(folder) == Observation(phase="lost")


VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.lists(st.integers(), max_size=2)
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    started=st.dictionaries(st.sampled_from(sorted(STARTED)), VALUES),
    outcome=st.dictionaries(st.sampled_from(sorted(OUTCOME)), VALUES),
)
def test_whatever_a_folder_says_looking_at_it_does_not_fail(
    folder: Path, started: dict[str, Any], outcome: dict[str, Any]
) -> None:
    note(folder, "started.json", STARTED | started)
    note(folder, "outcome.json", OUTCOME | outcome)

    assert observe(folder).phase in ("ended", "lost")


# -- settling what is lost ------------------------------------------------------------------------------------------


def test_what_never_began_is_settled_with_that_reason(folder: Path) -> None:
    found = settle_loss(folder, "a" * 32)

    assert found.outcome is not None
    assert (found.phase, found.outcome.kind, found.outcome.reason) == ("ended", "lost", NEVER_STARTED)
    assert found.outcome.started_at is None


def test_what_had_begun_is_settled_with_what_it_printed(folder: Path) -> None:
    note(folder, "started.json", STARTED | {"pid": 2**22 + 1})
    (folder / "stdout").write_bytes(b"12345")

    found = settle_loss(folder, "a" * 32)

    assert found.outcome is not None
    assert (found.outcome.kind, found.outcome.reason) == ("lost", KEEPER_ENDED)
    assert (found.outcome.started_at, found.outcome.stdout_bytes, found.outcome.stderr_bytes) == (100.5, 5, 0)


def test_a_loss_is_settled_once(folder: Path) -> None:
    first = settle_loss(folder, "a" * 32)

    assert settle_loss(folder, "a" * 32) == first


def test_what_somebody_guards_after_all_is_left_alone(folder: Path, tmp_path: Path) -> None:
    held = claim(folder, tmp_path / "queue", "a" * 32)

    assert settle_loss(folder, "a" * 32) == Observation(phase="pending")
    assert not (folder / "outcome.json").exists()
    held.release()


def test_room_that_was_kept_for_an_outcome_does_not_show_in_it(folder: Path) -> None:
    (folder / "outcome.json.part").write_bytes(b" " * 16384)

    settle_loss(folder, "a" * 32)

    assert (folder / "outcome.json").stat().st_size < 1000


def test_a_folder_that_was_removed_meanwhile_stays_so(folder: Path) -> None:
    folder.rmdir()

    assert settle_loss(folder, "a" * 32).outcome is None
    assert not folder.exists()
