from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.databases import KINDS, Place, databases_closed, place_of


@pytest.fixture(autouse=True)
def close_databases() -> Iterator[None]:
    with databases_closed():
        yield


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A state folder without records."""
    return place_of(request.param, request, tmp_path)


@pytest.fixture(params=KINDS)
def fresh_place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A state folder that nobody has used."""
    return place_of(request.param, request, tmp_path, fresh=True)
