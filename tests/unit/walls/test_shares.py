"""How much the files of all sessions of one owner come to."""

from pathlib import Path

import pytest

from pyexec.domain.errors import WorkspacesFullError
from pyexec.domain.limits import MEGABYTE
from pyexec.storage.sessions import SessionFolder
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
