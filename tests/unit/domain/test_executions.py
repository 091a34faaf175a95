from typing import get_args

import pytest

from pyexec.domain.executions import (
    ACTIVE,
    OUTCOME_KINDS,
    STATES,
    TERMINAL,
    TRANSITIONS,
    ExecutionRequest,
    Outcome,
    OutcomeKind,
    State,
    may_follow,
)
from tests.helpers.records import execution, exited

ENDS: dict[State, set[State]] = {
    "pending": {"running", "completed", "failed", "cancelled", "timed_out", "lost"},
    "running": {"completed", "failed", "cancelled", "timed_out", "lost"},
}


def test_every_state_has_its_transitions() -> None:
    assert set(TRANSITIONS) == set(STATES) == set(get_args(State))


def test_states_are_either_active_or_terminal() -> None:
    assert {"pending", "running"} == ACTIVE
    assert {"completed", "failed", "cancelled", "timed_out", "lost"} == TERMINAL


@pytest.mark.parametrize("new", STATES)
@pytest.mark.parametrize("old", STATES)
def test_an_observer_may_record_what_lies_ahead_and_nothing_else(old: State, new: State) -> None:
    assert may_follow(old, new) is (new in ENDS.get(old, set()))


@pytest.mark.parametrize("new", STATES)
@pytest.mark.parametrize("old", STATES)
def test_every_single_step_is_one_that_an_observer_may_record(old: State, new: State) -> None:
    if new in TRANSITIONS[old]:
        assert may_follow(old, new)


def test_what_waits_can_neither_succeed_nor_time_out_without_having_run() -> None:
    assert not TRANSITIONS["pending"] & {"completed", "timed_out"}


@pytest.mark.parametrize(
    ("kind", "exit_code", "state"),
    [
        ("exited", 0, "completed"),
        ("exited", 1, "failed"),
        ("exited", 255, "failed"),
        ("signalled", 139, "failed"),
        ("out_of_memory", 137, "failed"),
        ("start_failed", None, "failed"),
        ("environment_failed", None, "failed"),
        ("cancelled", 130, "cancelled"),
        ("cancelled", 0, "cancelled"),
        ("cancelled", None, "cancelled"),
        ("timed_out", 137, "timed_out"),
        ("timed_out", 0, "timed_out"),
        ("lost", None, "lost"),
    ],
)
def test_an_outcome_decides_the_state(kind: OutcomeKind, exit_code: int | None, state: State) -> None:
    assert Outcome(kind=kind, exit_code=exit_code, ended_at=1.0).state == state


@pytest.mark.parametrize("kind", OUTCOME_KINDS)
def test_every_outcome_is_a_terminal_state(kind: OutcomeKind) -> None:
    assert Outcome(kind=kind, ended_at=1.0).state in TERMINAL


def test_what_has_not_started_has_taken_no_time() -> None:
    assert execution(state="pending").elapsed(now=500.0) == 0.0


def test_what_runs_is_measured_up_to_now() -> None:
    assert execution(state="running", started_at=200.0).elapsed(now=230.0) == 30.0


def test_what_has_ended_is_measured_up_to_its_end() -> None:
    ended = execution(state="completed", started_at=200.0, outcome=exited(ended_at=210.0))

    assert ended.elapsed(now=999.0) == 10.0


def test_a_clock_that_steps_back_gives_no_negative_time() -> None:
    assert execution(state="running", started_at=200.0).elapsed(now=150.0) == 0.0


@pytest.mark.parametrize("state", STATES)
def test_a_record_has_ended_when_its_state_is_terminal(state: State) -> None:
    assert execution(state=state).ended is (state in TERMINAL)


def test_a_request_shows_neither_its_variables_nor_its_stdin() -> None:
    shown = repr(ExecutionRequest(script_content="1", env_vars={"TOKEN": "hunter2hunter2"}, stdin="s3cret"))

    assert "hunter2" not in shown
    assert "s3cret" not in shown
