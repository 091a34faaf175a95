"""How much the files of all sessions of one owner come to."""

import os
from pathlib import Path

import pytest

from pyexec.domain.errors import WorkspacesFullError
from pyexec.domain.limits import MEGABYTE
from pyexec.storage import sessions
from pyexec.storage.hostile_folders import Content, content
from pyexec.storage.sessions import SessionFolder
from pyexec.walls.bubblewrap.sessions import shares
from pyexec.walls.bubblewrap.sessions.shares import Shares


def session(owner: Path, name: str, *, noted: int | None = None) -> SessionFolder:
    folder = SessionFolder(owner / name)
    folder.path.mkdir()
    if noted is not None:
        folder.note_size(noted)
    return folder


def test_what_lives_is_asked_and_what_has_ended_was_noted(tmp_path: Path) -> None:
    session(tmp_path, "ended", noted=3 * MEGABYTE)
    session(tmp_path, "live", noted=9 * MEGABYTE)
    assert Shares(8 * MEGABYTE).of(tmp_path, {"live": MEGABYTE}).used == 4 * MEGABYTE


def test_what_a_killed_keeper_has_not_noted_is_looked_at(tmp_path: Path) -> None:
    plain = session(tmp_path, "plain").path / "workspace"
    plain.mkdir()
    (plain / "file").write_bytes(bytes(MEGABYTE))
    (plain / "link").symlink_to("/usr")
    image = session(tmp_path, "image").path / "workspace.ext4"
    image.write_bytes(bytes(2 * MEGABYTE))
    session(tmp_path, "empty")
    used = Shares(1).of(tmp_path, {}).used
    assert 3 * MEGABYTE <= used < 4 * MEGABYTE


def test_nobody_is_refused_for_what_was_removed_meanwhile(tmp_path: Path) -> None:
    shares, ended = Shares(2 * MEGABYTE), session(tmp_path, "ended", noted=3 * MEGABYTE)
    with pytest.raises(WorkspacesFullError, match="take 3 MB; 2 MB are allowed"):
        shares.require(tmp_path, {})
    ended.remove()
    shares.require(tmp_path, {})
    assert shares.of(tmp_path / "nobody", {}).used == 0


def test_what_a_killed_keeper_has_not_noted_is_looked_at_once_and_again_when_somebody_may_change_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []

    def look(folder: int) -> Content:
        looked.append(folder)
        return content(folder)

    monkeypatch.setattr(shares, "content", look)
    monkeypatch.setattr(shares, "LOOK_SECONDS", -1.0)
    folder = session(tmp_path, "plain")
    (folder.path / "workspace").mkdir()
    (folder.path / "workspace" / "file").write_bytes(bytes(MEGABYTE))
    one = Shares(8 * MEGABYTE)
    found = {one.of(tmp_path, {}).used for _ in range(3)}
    assert (len(found), len(looked)) == (1, 1)

    one.forget(folder)
    (folder.path / "workspace" / "more").write_bytes(bytes(MEGABYTE))
    assert one.of(tmp_path, {}).used >= 2 * MEGABYTE
    # Whoever was given it may write yet.
    (folder.path / "workspace" / "last").write_bytes(bytes(MEGABYTE))
    assert one.of(tmp_path, {}).used >= 3 * MEGABYTE

    monkeypatch.setattr(sessions, "CHANGING_SECONDS", -1.0)
    looked.clear()
    assert {one.of(tmp_path, {}).used >= 3 * MEGABYTE for _ in range(3)} == {True}
    assert len(looked) == 1


def test_what_lives_is_not_noted_by_who_looks_at_it(tmp_path: Path) -> None:
    folder = session(tmp_path, "of-another-keeper")
    (folder.path / "workspace").mkdir()
    lock = folder.begin(tmp_path, tmp_path)
    try:
        assert Shares(MEGABYTE).of(tmp_path, {}).used < MEGABYTE
        assert folder.noted_size() is None
    finally:
        os.close(lock)
