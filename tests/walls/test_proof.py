"""`pyexec doctor` about the wall: all of it is held, and each hole is seen by the attempt that is there for it."""

import os
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pyexec_guest
from pyexec.domain.limits import SandboxLimits
from pyexec.processes import outerwalls
from pyexec.sandbox.forks import Group, GroupLimits, Order, Plan, Sandbox, WatchedGroups
from pyexec.sandbox.probing import PROBER
from pyexec.walls.bubblewrap import boxes
from pyexec.walls.bubblewrap.contents import USERS, plan_for
from pyexec.walls.bubblewrap.program import find_bubblewrap
from pyexec.walls.bubblewrap.proof import endings
from pyexec.walls.bubblewrap.proof.proving import ATTEMPTS, make, prove
from pyexec.walls.bubblewrap.proof.subject import LIMITS, Outcome, Secret, Subject, Verdict
from pyexec.walls.bubblewrap.sandboxes import Sandboxes
from pyexec_guest.outside.groups import files, version1, version2
from tests.walls.bubblewrap import BUDGET, INTERPRETER_NEEDS, inside, own_groups

pytestmark = pytest.mark.root
SOURCE = Path(pyexec_guest.__file__ or "").parent.parent
SECRET = Secret(name="PYEXEC_DOCTOR_TEST", value="0123456789abcdef" * 2)
HOLE = "/opt/pyexec/hole"
HOLED = "/opt/pyexec/tests/holed.py"
SLOW = {"memory-error", "memory-together", "memory-shared", "processor", "kill", "survivors"}
BY_ID = {attempt.id: attempt for attempts in ATTEMPTS.values() for attempt in attempts}
USE = {attempt.id for attempt in ATTEMPTS["what it may use"]} - SLOW
REST = set(BY_ID) - USE - SLOW


def plan(hole: Path) -> Plan:
    """Return the plan of a wall whose fork server leaves out what the file says."""
    what = inside(None, guest=PROBER)
    what = replace(what, more={**what.more, HOLE: hole})
    whole = plan_for(what, find_bubblewrap(os.environ.get("PATH")), USERS)
    python, option, _server, *rest = whole.command
    return replace(whole, command=(python, option, HOLED, *rest))


class KeptGroups:
    """Control groups that can all be removed in the end, whatever a wall with a hole has left in them."""

    def __init__(self) -> None:
        self._groups = own_groups()
        self.tier = self._groups.tier
        self.waived = self._groups.waived
        self.made: list[Group] = []

    def create(self, limits: GroupLimits) -> Group:
        self.made.append(self._groups.create(limits))
        return self.made[-1]

    def promised(self) -> int:
        return self._groups.promised()

    def remove(self) -> bool:
        return self._groups.remove()

    def remove_all(self) -> None:
        for group in self.made:
            group.kill()
            group.remove()
        assert self.remove()


class Proof:
    """A wall, and the file that its fork server reads."""

    def __init__(self, sandboxes: Sandboxes, plan: Plan, hole: Path, **given: Any) -> None:
        self.hole = hole
        self.subject = Subject(sandboxes, secret=SECRET, home=Path("/var/lib/pyexec"), plan=plan, **given)

    def fails(self, ids: set[str], hole: str = "") -> dict[str, str]:
        """Make these attempts; return what happened in those that did not end well."""
        self.hole.write_text(hole)
        outcomes = {key: make(attempt, self.subject) for key, attempt in BY_ID.items() if key in ids}
        return {key: text(outcome) for key, outcome in outcomes.items() if outcome.verdict is not Verdict.HELD}


def text(outcome: Outcome) -> str:
    return f"{outcome.verdict}: {outcome.happened}"


@contextmanager
def proof(folder: Path, change: Callable[[Plan], Plan] = lambda plan: plan) -> Generator[Proof]:
    hole = folder / "hole"
    hole.write_text("")
    hole.chmod(0o644)
    changed = change(plan(hole))
    groups = KeptGroups()
    environ = {**INTERPRETER_NEEDS, SECRET.name: SECRET.value, "PYEXEC_SOURCE": str(SOURCE)}
    sandboxes = Sandboxes(changed, groups, environ, limits=LIMITS, ready=0)
    with ExitStack() as closing:
        closing.callback(groups.remove_all)
        closing.callback(sandboxes.close)
        yield Proof(sandboxes, changed, hole)


@pytest.fixture(scope="module")
def holed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proof]:
    with proof(tmp_path_factory.mktemp("holed")) as made:
        yield made


# Holes that have nothing to do with each other are tried together: each attempt is seen to hold, and to fail.
@pytest.mark.parametrize(
    ("holes", "seen"),
    [
        ("no_filter", {"system-calls", "socket-families"}),
        ("network proc", {"namespaces", "neighbours", "processes-seen", "files"}),
        ("queues setuid randomness", {"namespaces", "setuid", "randomness"}),
        ("capabilities writing descriptors", {"privileges", "writing", "descriptors"}),
    ],
)
def test_a_step_that_a_fork_leaves_out_is_seen(holed: Proof, holes: str, seen: set[str]) -> None:
    assert set(holed.fails(REST, holes)) == seen


@pytest.mark.parametrize(
    "limits",
    [
        {"open_files": "open-files", "work_size": "work", "temporary_files": "tmp"},
        {"file_size": "file-size", "work_files": "work", "shared_size": "dev-shm"},
        {"data": "memory-error", "temporary_size": "tmp", "shared_files": "dev-shm"},
    ],
)
def test_a_limit_that_is_larger_than_it_should_be_is_seen(
    holed: Proof, monkeypatch: pytest.MonkeyPatch, limits: dict[str, str]
) -> None:
    order_for = boxes.order_for

    def generous(of: SandboxLimits, user: int) -> Order:
        order = order_for(of, user)
        return replace(order, **{limit: getattr(order, limit) * 4 for limit in limits})

    monkeypatch.setattr(boxes, "order_for", generous)
    found = holed.fails({*USE, "memory-error"})
    assert set(found) == set(limits.values())
    for limit, seen in limits.items():
        assert found[seen].startswith("not_held: ")
        if limit.endswith("_size") and seen != "file-size":
            assert "ENOSPC after" in found[seen].split(";")[1]
        elif limit.endswith("_files") and seen != "open-files":
            assert "ENOSPC after" in found[seen].split(";")[0]


def test_limits_that_can_be_raised_from_inside_are_seen(holed: Proof) -> None:
    assert list(holed.fails(USE, "limits")) == ["limits-fixed"]


def hold_to(patches: pytest.MonkeyPatch, change: Callable[[GroupLimits], GroupLimits]) -> None:
    """Have control groups hold sandboxes to other limits."""
    create = KeptGroups.create
    patches.setattr(KeptGroups, "create", lambda self, limits: create(self, change(limits)))


@pytest.mark.exhaustive
def test_control_groups_that_do_not_hold_are_seen(holed: Proof, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patches:
        hold_to(patches, lambda limits: replace(limits, memory=limits.memory * 4))
        found = holed.fails({*USE, "memory-error", "memory-together", "memory-shared"})
    assert set(found) == {"memory-together", "memory-shared"}
    for version in (version1, version2):
        monkeypatch.setattr(version.Group, "limit_cpu", lambda self: None)
    assert list(holed.fails({"processor"})) == ["processor"]


def test_processes_without_end_are_seen_where_neither_of_their_two_limits_holds(
    holed: Proof, monkeypatch: pytest.MonkeyPatch
) -> None:
    order_for = boxes.order_for
    hold_to(monkeypatch, lambda limits: replace(limits, processes=1000))
    assert holed.fails({"processes"}) == {}
    monkeypatch.setattr(boxes, "order_for", lambda *given: replace(order_for(*given), processes=1000))
    assert list(holed.fails(USE)) == ["processes"]


def test_two_sandboxes_that_are_one_user_are_seen(holed: Proof, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sandboxes, "_next_user", lambda self: 7)
    assert list(holed.fails({"user", "namespaces", "randomness", "privileges"})) == ["user"]


@pytest.mark.exhaustive
def test_what_outlives_its_kill_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boxes, "GONE_SECONDS", 0.2)
    monkeypatch.setattr(endings, "GONE_SECONDS", 0.2)
    monkeypatch.setattr(files, "REMOVE_SECONDS", 0.05)
    with proof(tmp_path) as made:
        # All in one tree of processes, of which only the first is killed.
        found = made.fails({"kill", "survivors", "namespaces", "processes-seen", "open-files"}, "one_tree")
        assert set(found) == {"kill", "survivors", "namespaces", "processes-seen"}
        assert "the same in two sandboxes: pid" in found["namespaces"]
        monkeypatch.setattr(Sandbox, "kill", lambda self: None)
        assert set(made.fails({"kill", "survivors", "open-files"})) == {"kill", "survivors"}


@pytest.mark.exhaustive
def test_what_is_let_in_with_the_plan_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(prefix="pe-proof-", dir="/var/tmp") as shared:
        os.chmod(shared, 0o755)
        monkeypatch.setattr(tempfile, "tempdir", shared)

        def open_up(plan: Plan) -> Plan:
            return replace(
                plan,
                environment=(*plan.environment, (SECRET.name, SECRET.value)),
                binds=(*plan.binds, (shared, shared), ("/var/lib", "/var/lib")),
                devices=(*plan.devices, "/dev/tty"),
            )

        with proof(tmp_path, open_up) as made:
            found = made.fails(REST)
    assert set(found) == {"environment", "unix-sockets", "files", "devices"}
    assert SECRET.name in found["environment"]
    assert "by its path" in found["unix-sockets"]
    assert "/var/lib/" in found["files"]
    assert "/dev/tty" in found["devices"]


def test_the_network_of_the_machine_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outerwalls, "_OUTSIDE", Path(__file__).parent / "outside_holed")
    with proof(tmp_path) as made:
        found = made.fails(REST, "internet")
    assert set(found) == {"network", "unix-sockets", "namespaces", "neighbours"}
    assert "a listener on this machine" in found["network"]
    assert "by its abstract name" in found["unix-sockets"]
    assert "the machine's own: net" in found["namespaces"]


def test_without_control_groups_what_they_would_hold_is_not_held_or_waived(holed: Proof) -> None:
    sandboxes = Sandboxes(holed.subject.plan, WatchedGroups(BUDGET), INTERPRETER_NEEDS, limits=LIMITS, ready=0)
    try:
        for waived, verdict in ((False, "not_held"), (True, "waived")):
            found = Proof(sandboxes, holed.subject.plan, holed.hole, waived=waived).fails(
                {"memory-error", "memory-together", "memory-shared", "processor"}
            )
            assert set(found) == {"memory-together", "memory-shared", "processor"}
            assert all(happened.startswith(f"{verdict}: nothing holds it") for happened in found.values())
    finally:
        sandboxes.close()


def test_what_cannot_be_tried_is_said_to_be_so(tmp_path: Path) -> None:
    with proof(tmp_path, lambda plan: replace(plan, command=("/usr/bin/false",))) as made:
        found = list(prove(made.subject, 0.5))
    assert {one.verdict for one in found} == {Verdict.NOT_TRIED}
    assert found[0].happened.startswith("The fork server behind the bubblewrap wall does not start")
    assert found[-1].happened == "the others took more than 0.5 s"
