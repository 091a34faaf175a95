"""Workspaces of sessions: whether the kernel holds them to their size, by writing more than that."""

import errno
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pyexec.app.diagnosis.checks import Check, Status
from pyexec.domain.errors import PyexecError
from pyexec.domain.limits import MEGABYTE
from pyexec.walls.bubblewrap.workspaces import Workspaces

SIZE = 4 * MEGABYTE
FILES = 64
MOST = SIZE + 2 * MEGABYTE
"""Some of what the kernel keeps for itself is there for files too in one so small."""


def check_workspaces(environ: Mapping[str, str], group: str) -> Check:
    """Fill a workspace; nothing is left of it. Blocks for some tenths of a second."""
    workspaces = Workspaces(environ)
    written, stopped = 0, "nothing"
    if workspaces.obstacle is None:
        try:
            with tempfile.TemporaryDirectory(prefix="pyexec-doctor-") as folder:
                workspace = workspaces.open(Path(folder), SIZE, FILES)
                try:
                    written, stopped = _fill(workspace.root)
                finally:
                    workspace.remove()
        except PyexecError as error:
            return _told(group, "fail", f"None can be had: {error.message}", error.hint)
    tried = f"write {2 * SIZE // MEGABYTE} MB where {SIZE // MEGABYTE} MB fit"
    if workspaces.obstacle is not None:
        message = f"They are watched, not held to their size by the kernel: {workspaces.obstacle}."
        return _told(group, "warn", message, None)
    held = stopped == "ENOSPC" and written <= MOST
    message = f"{tried}: {'' if held else 'NOT HELD, '}{stopped} after {written / MEGABYTE:.1f} MB."
    return _told(group, "ok" if held else "fail", message, None)


def _fill(root: int) -> tuple[int, str]:
    fd = os.open("filling", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=root)
    written = 0
    try:
        while written < 2 * SIZE:
            written += os.write(fd, bytes(64 * 1024))
    except OSError as error:
        return written, errno.errorcode.get(error.errno or 0, str(error))
    finally:
        os.close(fd)
    return written, "nothing"


def _told(group: str, status: Status, message: str, hint: str | None) -> Check:
    return Check(id="wall.workspaces", name="workspaces", group=group, status=status, message=message, hint=hint)
