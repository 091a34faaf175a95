"""Images are built once, and gone afterwards."""

from collections.abc import Iterator

import pytest

from tests.containers.engine import BASE, ENGINE, Engine, find_engine


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """The engine of this machine."""
    found = find_engine()
    if found is None:
        pytest.skip(
            f"No container engine answers here: start one, named in {ENGINE} unless it is docker or podman; name an "
            f"image with Python in {BASE} where none can be fetched. On Debian scripts/containers.sh does all of that."
        )
    yield found
    found.forget()
