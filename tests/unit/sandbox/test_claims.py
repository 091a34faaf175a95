import os
import time
from pathlib import Path

import pytest

from pyexec.sandbox import claims
from pyexec.sandbox.claims import claim, is_held
from pyexec_guest.keeper.turn import id_of, is_locked


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "execution").mkdir()
    return tmp_path / "execution"


def test_a_claim_holds_until_it_is_released(folder: Path, tmp_path: Path) -> None:
    assert not is_held(folder)

    held = claim(folder, tmp_path / "queue", "a" * 32)

    assert is_held(folder)
    assert is_held(folder)
    assert is_locked(str(tmp_path / "queue" / held.entry))
    held.release()
    assert not is_held(folder)
    assert not is_locked(str(tmp_path / "queue" / held.entry))


def test_a_copy_of_the_lock_holds_on_when_the_claim_is_released(folder: Path, tmp_path: Path) -> None:
    held = claim(folder, tmp_path / "queue", "a" * 32)
    keepers = os.dup(held.lock_fd)

    held.release()

    assert is_held(folder)
    os.close(keepers)
    assert not is_held(folder)


def test_asking_does_not_disturb_others_who_ask(folder: Path, tmp_path: Path) -> None:
    claim(folder, tmp_path / "queue", "a" * 32).release()
    asking = os.open(folder / claims.LOCK, os.O_RDWR)
    try:
        assert not is_held(folder)
    finally:
        os.close(asking)


def test_a_folder_that_is_gone_is_not_held(tmp_path: Path) -> None:
    assert not is_held(tmp_path / "gone")


def test_places_in_line_follow_the_order_of_claiming_though_the_clock_steps_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([5_000, 3_000, 3_000, 10_000])
    monkeypatch.setattr(time, "time_ns", lambda: next(clock))
    names = [letter * 32 for letter in "abcd"]
    entries: list[str] = []
    for name in names:
        (tmp_path / name).mkdir()
        held = claim(tmp_path / name, tmp_path / "queue", name)
        held.release()
        entries.append(held.entry)

    assert sorted(entries) == entries
    assert [id_of(entry) for entry in entries] == names
