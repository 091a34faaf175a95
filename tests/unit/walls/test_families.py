"""Fork servers by the environment: how many there are, and which of them end."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pyexec.domain.errors import WallUnavailableError
from pyexec.walls.bubblewrap import families
from pyexec.walls.bubblewrap.families import Families
from pyexec.walls.bubblewrap.inside import Ahead
from pyexec.walls.bubblewrap.orders import KeeperOrders
from pyexec.walls.bubblewrap.turnstile import Ticket, Turnstile


@dataclass
class Machine:
    """Stands for what makes sandboxes: which fork servers are up, and what was imported ahead for them."""

    folder: Path
    up: list[str] = field(default_factory=list[str])
    tried: list[tuple[str, Ahead]] = field(default_factory=list[tuple[str, Ahead]])
    in_use: set[str] = field(default_factory=set[str])
    threaded: str | None = None
    now: float = 0.0

    def environment(self, name: str) -> Path:
        path = self.folder / name
        path.mkdir(exist_ok=True)
        return path


@dataclass
class FakeBox:
    made_by: str
    on_closed: Any = None


class FakeSandboxes:
    def __init__(self, machine: Machine, name: str, ahead: Ahead) -> None:
        self.machine, self.name = machine, name
        self.ahead: Ahead = ahead

    def warm(self) -> None:
        self.machine.tried.append((self.name, self.ahead))
        if self.name == self.machine.threaded and self.ahead != "nothing":
            raise WallUnavailableError("Something starts threads.")
        self.machine.up.append(self.name)

    def sandbox(self, folders: Sequence[object], had: Callable[[], None]) -> FakeBox:
        had()
        return FakeBox(self.name)

    def is_in_use(self) -> bool:
        return self.name in self.machine.in_use

    def retire(self) -> None:
        self.machine.up.remove(self.name)

    def is_inhabited(self) -> bool:
        return False

    def close(self) -> None:
        return


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)

    def sandboxes(plan: tuple[str, Ahead], *_given: object, **_more: object) -> FakeSandboxes:
        return FakeSandboxes(made, *plan)

    def anything(*_given: object) -> Any:
        return None

    monkeypatch.setattr(families, "groups_for", anything)
    monkeypatch.setattr(families, "find_bubblewrap", anything)
    monkeypatch.setattr(families, "plan_for", lambda inside, *_more: inside)
    monkeypatch.setattr(families, "Sandboxes", sandboxes)
    monkeypatch.setattr(time, "monotonic", lambda: made.now)
    return made


@pytest.fixture
def found(machine: Machine) -> Families:
    def inside_of(environment: Path, ahead: Ahead) -> Any:
        return environment.name, ahead

    folder = machine.folder / "keeper" / "own"
    folder.mkdir(parents=True)
    made = Families(KeeperOrders(folder=folder, key="k", budget=1, version="1"), inside_of)
    made.keep(machine.environment("usual"))
    return made


def take(machine: Machine, found: Families, *names: str) -> None:
    for name in names:
        machine.now += 1
        environment = machine.environment(name)
        box: Any = Turnstile(10, 1).admit(Ticket(), lambda room, of=environment: found.sandbox(of, (), room))
        assert box.made_by == name


def test_each_environment_has_one_and_the_one_not_used_for_longest_makes_room(
    machine: Machine, found: Families
) -> None:
    take(machine, found, "usual", "a", "b", "a", "c")
    assert machine.up == ["usual", "a", "b", "c"]
    take(machine, found, "d")
    assert machine.up == ["usual", "a", "c", "d"]
    take(machine, found, "e", "f")
    assert machine.up == ["usual", "d", "e", "f"]


def test_those_that_nobody_asks_end_and_the_usual_one_stays(machine: Machine, found: Families) -> None:
    take(machine, found, "usual", "a", "b")
    machine.now += families.IDLE_SECONDS - 3
    take(machine, found, "b")
    assert not found.has_idle()
    machine.now += 5
    assert found.has_idle()
    found.end_idle()
    assert machine.up == ["usual", "b"]
    machine.now += 10 * families.IDLE_SECONDS
    found.end_idle()
    assert machine.up == ["usual"]
    take(machine, found, "a")
    assert machine.up == ["usual", "a"]


def test_where_memory_is_wanted_one_without_a_sandbox_makes_room_and_the_usual_one_last(
    machine: Machine, found: Families
) -> None:
    take(machine, found, "usual", "a", "b", "c")
    assert not found.give_up_unused()
    machine.now += families.UNUSED_SECONDS + 1
    machine.in_use = {"a"}
    for left in (["usual", "a", "c"], ["usual", "a"], ["a"]):
        assert found.give_up_unused()
        assert machine.up == left
    assert not found.give_up_unused()


def test_what_cannot_be_imported_ahead_is_not_unless_the_operator_says_so(machine: Machine, found: Families) -> None:
    machine.threaded = "a"
    take(machine, found, "a")
    assert machine.tried == [("a", "found"), ("a", "nothing")]
    machine.threaded = "usual"
    with pytest.raises(WallUnavailableError, match="starts threads"):
        take(machine, found, "usual")
    assert machine.tried[2:] == [("usual", "told")]
