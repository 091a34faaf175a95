"""A site for each test, or one for all of a file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.idp.site import Site


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site for all tests of a file that leave nothing behind which another would notice."""
    more = {"PYEXEC_IDP_REGISTRATIONS_PER_ADDRESS": "1000"}
    made = Site(tmp_path_factory.mktemp("shared") / "idp", **more)
    yield made
    made.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path / "idp")
    yield made
    made.close()
