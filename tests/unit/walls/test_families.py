"""Fork servers by the environment: how many there are, and which of them end."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pyexec.domain.errors import SandboxesFullError, WallUnavailableError
from pyexec.walls.bubblewrap import families
from pyexec.walls.bubblewrap.families import Families
from pyexec.walls.bubblewrap.inside import Ahead
from pyexec.walls.bubblewrap.orders import KeeperOrders


@dataclass
class Machine:
    """Stands for what makes sandboxes: which fork servers are up, and what was imported ahead for them."""

    folder: Path
    up: list[str] = field(default_factory=list[str])
    tried: list[tuple[str, Ahead]] = field(default_factory=list[tuple[str, Ahead]])
    room: int = 100
    threaded: str | None = None
    now: float = 0.0

    def environment(self, name: str) -> Path:
        path = self.folder / name
        path.mkdir(exist_ok=True)
        return path


class FakeSandboxes:
    def __init__(self, machine: Machine, name: str, ahead: Ahead) -> None:
        self.machine, self.name = machine, name
        self.ahead: Ahead = ahead

    def warm(self) -> None:
        self.machine.tried.append((self.name, self.ahead))
        if self.name == self.machine.threaded and self.ahead != "nothing":
            raise WallUnavailableError("Something starts threads.")
        if len(self.machine.up) >= self.machine.room:
            raise SandboxesFullError("full")
        self.machine.up.append(self.name)

    def sandbox(self, folders: Sequence[object] = ()) -> str:
        return f"of {self.name}"

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
        assert str(found.sandbox(machine.environment(name))) == f"of {name}"


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


def test_where_there_is_no_memory_for_another_one_of_the_others_ends(machine: Machine, found: Families) -> None:
    machine.room = 2
    take(machine, found, "usual", "a", "b")
    assert machine.up == ["usual", "b"]
    machine.room = 1
    found.end_idle()
    with pytest.raises(SandboxesFullError):
        found.sandbox(machine.environment("c"))
    assert machine.up == ["usual"]
    take(machine, found, "usual")


def test_what_cannot_be_imported_ahead_is_not_unless_the_operator_says_so(machine: Machine, found: Families) -> None:
    machine.threaded = "a"
    take(machine, found, "a")
    assert machine.tried == [("a", "found"), ("a", "nothing")]
    machine.threaded = "usual"
    with pytest.raises(WallUnavailableError, match="starts threads"):
        found.sandbox(machine.environment("usual"))
    assert machine.tried[2:] == [("usual", "told")]
