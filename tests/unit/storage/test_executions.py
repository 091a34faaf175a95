import dataclasses
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyexec.domain.executions import ACTIVE, OUTCOME_KINDS, STATES, Execution, Outcome, Process
from pyexec.storage.descriptors import read_descriptor, write_descriptor
from pyexec.storage.executions import (
    DuplicateRequestError,
    ExecutionStore,
    from_values,
    outcome_from_json,
    outcome_to_json,
    to_values,
)
from tests.helpers.databases import Place
from tests.helpers.records import OWNER, execution, exited

OTHER = "local|1001|"


@pytest.fixture
def store(place: Place) -> ExecutionStore:
    return ExecutionStore(place.open())


OUTCOMES = st.builds(
    Outcome,
    kind=st.sampled_from(OUTCOME_KINDS),
    exit_code=st.none() | st.integers(0, 255),
    signal=st.none() | st.just("SIGTERM"),
    stopped_by=st.none() | st.just("SIGINT"),
    reason=st.none() | st.text(max_size=20),
    started_at=st.none() | st.floats(0, 2e9),
    ended_at=st.floats(0, 2e9),
    user_cpu_seconds=st.floats(0, 1e6),
    system_cpu_seconds=st.floats(0, 1e6),
    peak_rss_bytes=st.integers(0, 2**40),
    stdout_bytes=st.integers(0, 2**50),
    stderr_bytes=st.integers(0, 2**50),
    leftover_processes=st.lists(
        st.builds(Process, pid=st.integers(1, 2**22), command=st.text(max_size=5)), max_size=2
    ).map(tuple),
)


@given(OUTCOMES)
def test_an_outcome_comes_back_as_it_was(outcome: Outcome) -> None:
    assert outcome_from_json(outcome_to_json(outcome)) == outcome


def test_an_outcome_of_another_version_is_read_as_far_as_it_is_known() -> None:
    assert outcome_from_json({"kind": "lost", "ended_at": 5.0, "karma": 3}) == Outcome(kind="lost", ended_at=5.0)


@pytest.mark.parametrize(
    "record",
    [
        execution(1),
        execution(1, state="running", started_at=101.0, pid=7, stream=True, label="l", request_id="r"),
        execution(1, state="failed", dependencies=("rich", "numpy>=2"), outcome=exited(3)),
        execution(1, dependencies=()),
    ],
    ids=["plain", "running", "ended", "no dependencies"],
)
def test_a_record_comes_back_as_it_was(store: ExecutionStore, tmp_path: Path, record: Execution) -> None:
    store.add(record)
    write_descriptor(tmp_path, record)

    assert store.get(OWNER, record.id) == record
    assert from_values(to_values(record)) == record
    assert read_descriptor(tmp_path) == record


def test_every_field_of_a_record_is_stored() -> None:
    stored = set(to_values(execution()))

    assert {field.name for field in dataclasses.fields(Execution)} <= stored


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"{}", b"\xff", b'"text"', b'{"id": "a"}'])
def test_a_descriptor_that_cannot_be_read_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "execution.json").write_bytes(content)

    assert read_descriptor(tmp_path) is None


def test_a_folder_without_a_descriptor_has_none(tmp_path: Path) -> None:
    assert read_descriptor(tmp_path) is None


def test_a_descriptor_is_for_its_owner_only(tmp_path: Path) -> None:
    write_descriptor(tmp_path, execution())

    assert (tmp_path / "execution.json").stat().st_mode & 0o077 == 0


def test_somebody_elses_record_answers_like_one_that_does_not_exist(store: ExecutionStore) -> None:
    theirs = execution(1, owner=OTHER, request_id="r", state="completed", outcome=exited())
    store.add(theirs)

    assert store.get(OWNER, theirs.id) is None
    assert store.by_request(OWNER, "r") is None
    assert store.ids_like(OWNER, theirs.id[:8]) == []
    assert store.page(OWNER, states=None, limit=10)[0] == []
    assert store.active(OWNER) == store.ended(OWNER) == []
    assert store.count(OWNER) == 0
    store.finish(dataclasses.replace(theirs, owner=OWNER, state="lost"))
    store.forget(OWNER, theirs.id)
    assert store.remove(OWNER, [theirs.id]) == 0
    assert store.get(OTHER, theirs.id) == theirs


def test_the_newest_come_first_by_the_order_of_submission_whatever_the_clock_said(store: ExecutionStore) -> None:
    for number, created_at in enumerate([300.0, 100.0, 200.0]):
        store.add(execution(number, created_at=created_at))

    assert [record.id for record in store.page(OWNER, states=None, limit=2)[0]] == [execution(2).id, execution(1).id]
    assert [record.id for record in store.active(OWNER)] == [execution(number).id for number in range(3)]


@pytest.mark.parametrize("state", STATES)
def test_records_are_found_by_their_state(store: ExecutionStore, state: Any) -> None:
    for number, each in enumerate(STATES):
        store.add(execution(number, state=each, outcome=None if each in ACTIVE else exited()))

    assert [record.state for record in store.page(OWNER, states=[state], limit=10)[0]] == [state]
    assert store.count(OWNER, [state]) == 1
    assert store.count(OWNER) == len(STATES)


def test_a_request_id_is_taken_once_per_owner(store: ExecutionStore) -> None:
    store.add(execution(1, request_id="r"))
    store.add(execution(2, owner=OTHER, request_id="r"))
    store.add(execution(3))
    store.add(execution(4))

    with pytest.raises(DuplicateRequestError):
        store.add(execution(5, request_id="r"))
    found = store.by_request(OWNER, "r")
    assert found is not None
    assert found.id == execution(1).id


def test_the_first_outcome_stays(store: ExecutionStore) -> None:
    store.add(execution(1))
    store.finish(execution(1, state="completed", outcome=exited(0)))

    store.finish(execution(1, state="lost", outcome=Outcome(kind="lost", ended_at=300.0)))

    record = store.get(OWNER, execution(1).id)
    assert record is not None
    assert (record.state, record.outcome) == ("completed", exited(0))


def ended(number: int, code: int = 0, **values: Any) -> Execution:
    return execution(number, state="failed" if code else "completed", outcome=exited(code), **values)


def test_several_outcomes_are_noted_at_once_and_each_for_the_first_time_only(store: ExecutionStore) -> None:
    store.add_missing(map(execution, range(520)))
    store.finish(ended(3))
    store.add(execution(9999, owner=OTHER))
    told_twice = [ended(1), ended(1, code=5)]
    theirs_and_unknown = [ended(9999), ended(5000)]

    first = store.finish_many([*told_twice, ended(3, code=5), *theirs_and_unknown, *map(ended, range(4, 520))])

    assert first == [ended(1), *map(ended, range(4, 520))]
    assert [one.id for one in store.active(OWNER)] == [execution(0).id, execution(2).id]
    assert [store.get(OWNER, ended(number).id) for number in (1, 3)] == [ended(1), ended(3)]
    assert store.get(OTHER, execution(9999).id) == execution(9999, owner=OTHER)
    assert store.finish_many([]) == store.add_finished([]) == []


def test_what_has_ended_is_noted_whether_it_was_known_before_or_not(store: ExecutionStore) -> None:
    store.add(execution(1, created_at=101.0))
    store.add(execution(2, created_at=102.0, state="running", pid=7, started_at=103.0))
    store.add(execution(3, created_at=103.0))
    store.finish(ended(3, created_at=103.0))
    store.add(execution(4, created_at=104.0, request_id="r"))

    given = [ended(number, created_at=100.0 + number) for number in (6, 5, 3, 2, 1)]
    taken = ended(7, request_id="r")
    first = store.add_finished([*given, taken, ended(3, code=5, created_at=103.0)])

    assert [one.id for one in first] == [ended(number).id for number in (6, 5, 2, 1)]
    newest, total = store.page(OWNER, states=["completed"], limit=9)
    assert newest == given, "the latest first, and the first outcome of each"
    assert (total, store.get(OWNER, taken.id)) == (5, None)
    assert store.add_finished(given) == []


def test_two_servers_that_note_the_same_ends_at_once_note_each_once(place: Place) -> None:
    stores = [ExecutionStore(place.open()) for _ in range(4)]
    records = [ended(number, created_at=100.0 + number) for number in range(40)]
    for record in records[::2]:
        stores[0].add(replace(record, state="pending", outcome=None))

    def note(number: int) -> list[Execution]:
        found: list[Execution] = []
        for start in range(0, 40, 10):
            part = records[start : start + 10]
            random.Random(number).shuffle(part)
            found += stores[number].add_finished(part) if number % 2 else stores[number].finish_many(part)
        return found

    with ThreadPoolExecutor(4) as pool:
        first = [one.id for found in pool.map(note, range(4)) for one in found]

    assert sorted(first) == [one.id for one in records]
    assert stores[0].count(OWNER, ["completed"]) == 40


def test_an_ended_execution_does_not_run_again(store: ExecutionStore) -> None:
    store.add(execution(1))
    store.finish(execution(1, state="completed", outcome=exited(0)))

    store.mark_running(execution(1, state="running", pid=7, started_at=150.0))

    record = store.get(OWNER, execution(1).id)
    assert record is not None
    assert (record.state, record.pid) == ("completed", None)


@pytest.mark.parametrize("state", STATES)
def test_only_what_has_ended_is_removed(store: ExecutionStore, state: Any) -> None:
    store.add(execution(1, state=state, outcome=None if state in ACTIVE else exited()))

    assert store.remove(OWNER, [execution(1).id]) == (0 if state in ACTIVE else 1)


def test_many_records_are_removed_in_one_go(store: ExecutionStore) -> None:
    for number in range(3):
        store.add(execution(number, state="completed", outcome=exited()))
    ids = [execution(number).id for number in range(1200)]

    assert store.remove(OWNER, ids) == 3
    assert store.known(ids) == set()


def test_which_ids_are_known_is_told_for_all_owners(store: ExecutionStore) -> None:
    store.add(execution(1))
    store.add(execution(2, owner=OTHER))

    assert store.known([execution(number).id for number in range(600)]) == {execution(1).id, execution(2).id}
    assert sorted(store.owners()) == sorted([OWNER, OTHER])


def test_what_ran_in_a_session_is_found_from_a_moment_on_oldest_first(store: ExecutionStore) -> None:
    for number in range(4):
        store.add(execution(number, session="s", created_at=100.0 + number))
    store.add(execution(4, session="other", created_at=103.0))
    store.add(execution(5, owner=OTHER, session="s", created_at=103.0))

    found = store.in_session(OWNER, "s", since=101.0, limit=2)

    assert [record.id for record in found] == [execution(2).id, execution(3).id]


def test_the_latest_run_of_each_script_is_found(store: ExecutionStore) -> None:
    for number, source in enumerate(["/a.py", "/b.py", "/a.py"]):
        store.add(execution(number, source=source))
    store.add(execution(3, owner=OTHER, source="/a.py"))

    found = store.latest_of(OWNER, ["/a.py", "/b.py", *(f"/{number}.py" for number in range(600))])

    assert {source: record.id for source, record in found.items()} == {
        "/a.py": execution(2).id,
        "/b.py": execution(1).id,
    }


def test_records_that_are_missing_are_added_and_counted_and_others_stay(store: ExecutionStore) -> None:
    ended = execution(1, state="completed", outcome=exited(), request_id="r")
    store.add(ended)

    again = execution(1, state="pending")
    taken = execution(2, request_id="r")
    assert store.add_missing([again, taken, execution(3)]) == 1
    store.add(again)

    assert store.get(OWNER, ended.id) == ended
    assert [one.id for one in store.those(OWNER, [execution(number).id for number in range(9)])] == [
        execution(1).id,
        execution(3).id,
    ]


@pytest.mark.parametrize("beginning", ["0%", "%", "____", "0000_"])
def test_a_beginning_of_an_id_is_taken_literally(store: ExecutionStore, beginning: str) -> None:
    store.add(execution(1))

    assert store.ids_like(OWNER, beginning) == []


def test_a_beginning_that_fits_several_ids_is_told_from_one_that_fits_one(store: ExecutionStore) -> None:
    for number in range(3):
        store.add(execution(number))

    assert len(store.ids_like(OWNER, "0000")) == 2
    assert store.ids_like(OWNER, execution(1).id) == [execution(1).id]
