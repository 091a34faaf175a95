from collections.abc import Iterator

import pytest

from tests.helpers.databases import databases_closed


@pytest.fixture(autouse=True)
def close_databases() -> Iterator[None]:
    with databases_closed():
        yield
