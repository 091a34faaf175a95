"""A disk that gets full while an environment is made."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.homes import temporary_home
from tests.integration.environments import SEEN, UvEngine, make_wheel

pytestmark = [pytest.mark.root, pytest.mark.needs_uv]

MB = 1024 * 1024
DISK_MB = 32
FULL = "The disk is full, so the environment could not be made; free some space and try again."


@pytest.fixture
def engine(uv_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[UvEngine]:
    """An engine whose state folder is on a disk of its own."""
    monkeypatch.setenv("UV_CACHE_DIR", str(uv_cache))
    with temporary_home() as home:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=700", "none", home], check=True)
        try:
            with UvEngine(home, free_disk_mb=2) as engine:
                yield engine
        finally:
            subprocess.run(["umount", "--lazy", home], check=True)


@pytest.mark.exhaustive
async def test_it_is_one_sentence_and_nothing_half_stays_and_room_that_is_made_is_used(engine: UvEngine) -> None:
    filler = engine.home / "filler"
    filler.write_bytes(bytes(20 * MB))
    large = make_wheel(engine.directory, "large", "1", {"large.py": "", "large.bin": bytes(16 * MB)})
    request = {"dependencies": [f"./{large.name}"], "args": ["large"]}

    reason = await engine.failure(**request)

    assert reason == FULL
    assert engine.folders() == []
    small = await engine.printed_by(SEEN, dependencies=["iniconfig"], args=["iniconfig"])  # There is room for this.
    assert small == "iniconfig"
    filler.unlink()
    assert await engine.printed_by(SEEN, **request) == "large"
    assert engine.folders() == engine.complete()
