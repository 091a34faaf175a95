"""Walls to attack: putting one up costs seconds, so all tests of a process share one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.walls.bubblewrap import LIMITS, AttackedBox, AttackedWall, inside, packages, wall_around
from tests.walls.interface import works


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the first of these tests the time that making the environment takes."""
    here = f"{Path(__file__).parent}/"
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def sandbox_packages(pytestconfig: pytest.Config) -> Path:
    """What sandboxes of these tests can import; kept from one run of the tests to the next."""
    cache = pytestconfig.cache
    assert cache is not None
    return packages(cache.mkdir("sandbox-packages") / "home")


@pytest.fixture(scope="session")
def wall(sandbox_packages: Path) -> Iterator[AttackedWall]:
    """The wall that most tests attack."""
    with wall_around(inside(sandbox_packages), limits=LIMITS) as made:
        yield AttackedWall(made, LIMITS)


@pytest.fixture
def sandbox(wall: AttackedWall) -> Iterator[AttackedBox]:
    """A sandbox to attack from. Whatever it does, the next one must work."""
    attacked = wall.sandbox()
    yield attacked
    attacked.close()
    assert works(wall)
