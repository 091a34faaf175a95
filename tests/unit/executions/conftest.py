from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.databases import databases_closed
from tests.unit.executions.world import World


@pytest.fixture(autouse=True)
def close_databases() -> Iterator[None]:
    with databases_closed():
        yield


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)
