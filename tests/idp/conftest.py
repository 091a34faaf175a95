"""A site for each test; it costs some 20 ms."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.idp.site import Site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path / "idp")
    yield made
    made.close()
