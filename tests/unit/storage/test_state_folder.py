import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from pyexec.domain.errors import DiskFullError, StateUnusableError
from pyexec.storage.output import log_bytes
from pyexec.storage.state_folder import StateFolder


def test_the_folder_and_the_places_in_it_are_for_its_owner_only(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "deep" / "home")

    folder.create()

    for place in (folder.root, folder.executions, folder.logs):
        assert place.stat().st_mode & 0o077 == 0


def test_a_folder_that_is_there_is_used_as_it_is(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "home")
    folder.create()
    (folder.executions / "kept").touch()

    folder.create()

    assert (folder.executions / "kept").exists()


def test_a_folder_that_cannot_be_made_says_which_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(StateUnusableError) as refusal:
        StateFolder(tmp_path / "file" / "home").create()

    assert str(tmp_path / "file" / "home") in refusal.value.message
    assert "PYEXEC_HOME" in refusal.value.sentence()


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_arguments: False)

    with pytest.raises(StateUnusableError):
        StateFolder(tmp_path / "home").create()


def test_a_nearly_full_disk_takes_no_new_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=5 * 2**20))
    folder = StateFolder(tmp_path)

    folder.require_room(5 * 2**20)
    with pytest.raises(DiskFullError) as refusal:
        folder.require_room(6 * 2**20)

    assert refusal.value.code == "disk_full"
    assert refusal.value.details == {"free_bytes": 5 * 2**20, "needed_bytes": 6 * 2**20}
    assert "5 MB left; 6 MB are needed" in refusal.value.message
    assert "prune" in refusal.value.sentence()


def test_every_owner_has_a_line_of_their_own(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)

    assert folder.queue("local|1|") == folder.queue("local|1|")
    assert folder.queue("local|1|") != folder.queue("local|2|")


def test_the_size_of_an_execution_is_what_lies_in_its_folder(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_bytes(b"x" * 1000)
    (tmp_path / "events").write_bytes(b"y" * 24)

    assert log_bytes(tmp_path) >= 1024
    assert log_bytes(tmp_path / "gone") == 0
