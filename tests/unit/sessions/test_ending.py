"""Ending all sessions of somebody: what counts is what their folders say, not what was asked for."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyexec.domain.limits import DAY
from pyexec.domain.principals import Principal
from pyexec.domain.sessions import SessionLimits
from pyexec.sandbox.ports import OpenWorkspace
from pyexec.sessions.directory import SessionDirectory
from pyexec.sessions.service import SessionService
from pyexec.storage.sessions import SessionFolders

OWNER = Principal(issuer="https://id.example", subject="ada")


class Keeper:
    """Has the interpreters of sessions, and answers for some of them only."""

    def __init__(self, silent: str) -> None:
        self.silent = silent
        self.held: dict[str, int] = {}

    def ask(self, asked: Mapping[str, object], keeper: Path | None = None) -> Mapping[str, Any]:
        folder = str(asked["folder"])
        if folder == self.silent:
            return {}
        os.close(self.held.pop(folder))
        return {"ended": True}

    def open_workspace(self, folder: Path, keeper: Path | None = None) -> OpenWorkspace:
        raise NotImplementedError


async def test_a_session_whose_keeper_does_not_answer_is_told_as_left_until_it_has_ended(tmp_path: Path) -> None:
    folders = SessionFolders(tmp_path)
    stuck, other = folders.of(OWNER.key, "stuck"), folders.of(OWNER.key, "other")
    keeper = Keeper(silent=str(stuck.path))
    for session_id, folder in (("stuck", stuck), ("other", other)):
        folder.create(session_id, OWNER.key, python=None, environment=None)
        keeper.held[str(folder.path)] = folder.begin(tmp_path, tmp_path)
    service = SessionService(SessionDirectory(folders, SessionLimits()), keeper)

    told = await service.end_all(OWNER, "its user was ended", remove=True)
    assert (told.ended, told.left) == ({"other"}, {"stuck"})
    assert stuck.read() is not None

    keeper.silent = ""
    told = await service.end_all(OWNER, "its user was ended", remove=True)
    assert (told.ended, told.left) == ({"stuck"}, frozenset())
    assert not stuck.path.exists()


async def test_what_a_removal_has_left_is_removed_too_by_who_removes_all_and_by_the_next_sweep(tmp_path: Path) -> None:
    folders = SessionFolders(tmp_path)
    directory = SessionDirectory(folders, SessionLimits())
    service = SessionService(directory, Keeper(silent=""))

    def half() -> Path:
        left = folders.of_owner(OWNER.key) / ".0123-4567"
        (left / "workspace").mkdir(parents=True)
        (left / "workspace" / "secret").write_text("s3cr3t")
        return left

    left = half()
    told = await service.end_all(OWNER, "its user was ended", remove=True)
    assert (told.ended, told.left, left.exists()) == (frozenset(), frozenset(), False)

    left = half()
    directory.remove_expired(time.time())
    assert left.exists()  # Somebody may be at it.
    directory.remove_expired(time.time() + DAY)
    assert not left.exists()
