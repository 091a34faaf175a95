from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.databases import MOSTLY_SQLITE, Place, databases_closed, place_of
from tests.unit.executions.world import World


@pytest.fixture(autouse=True)
def close_databases() -> Iterator[None]:
    with databases_closed():
        yield


@pytest.fixture(params=MOSTLY_SQLITE)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A state folder without records."""
    return place_of(request.param, request, tmp_path)


@pytest.fixture
def world(place: Place) -> World:
    return World(place)
