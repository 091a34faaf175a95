"""Folders of this machine in a sandbox."""

import os
import shlex
import stat
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyexec.domain.errors import InvalidArgumentError, SandboxNotMadeError, WallUnavailableError
from pyexec.processes.mounting import Mounter
from pyexec.sandbox.forks import MOST_FOLDERS, NAMED, PACKAGES, PLACES, WORKSPACE, is_place

_PLACES = ", ".join((*PLACES, f"{NAMED}/<name>"))

__all__ = ["NAMED", "PACKAGES", "WORKSPACE", "Folder", "opened", "shared", "taken", "writable_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder of this machine in a sandbox.

    Attributes:
        place: Where it is inside: `/workspace`, `/packages`, `/code` or `/data/<name>`.
        source: Where it is on this machine, or a mount of it that nobody else has (which stays the giver's).
        writable: Whether the sandbox may write to it; one at most can be.
        programs: Whether what is in it can be run, or loaded as a library.
    """

    place: str
    source: Path | int
    writable: bool = False
    programs: bool = True

    def __post_init__(self) -> None:
        if not is_place(self.place):
            raise InvalidArgumentError(f"{self.place} is no place for a folder in a sandbox.", hint=f"It is {_PLACES}.")


def shared(folders: Iterable[tuple[str, str]]) -> tuple[Folder, ...]:
    """Return folders that can be read, from their places and where they are; what is data is not run.

    Raises:
        InvalidArgumentError: A place is none.
    """
    return tuple(
        Folder(place=place, source=Path(path), programs=not place.startswith(f"{NAMED}/")) for place, path in folders
    )


@contextmanager
def opened(folders: Sequence[Folder]) -> Generator[list[tuple[Folder, int]]]:
    """Open folders, none through a link.

    Raises:
        SandboxNotMadeError: One is not there, or no folder.
        InvalidArgumentError: There are too many, or two for one place.
    """
    if len(folders) > MOST_FOLDERS or len({folder.place for folder in folders}) < len(folders):
        raise InvalidArgumentError("Too many folders of this machine for a sandbox, or two for one place.")
    with ExitStack() as stack:
        found: list[tuple[Folder, int]] = []
        for folder in folders:
            fd = folder.source
            if isinstance(fd, Path):
                try:
                    fd = os.open(fd, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
                except OSError as error:
                    raise SandboxNotMadeError(f"{folder.source} cannot be in a sandbox: {error.strerror}.") from error
                stack.callback(os.close, fd)
                if not folder.writable:
                    _check_readable(folder.source, fd)
            found.append((folder, fd))
        yield found


def _check_readable(path: Path | int, fd: int) -> None:
    """See that whoever a sandbox is may read a folder; those above it need not be open to them."""
    wanted = stat.S_IROTH | stat.S_IXOTH
    if os.geteuid() == 0 and os.stat(fd).st_mode & wanted != wanted:
        raise SandboxNotMadeError(
            f"Sandboxes are users of their own, who may not read {path}.",
            hint=f"Run `chmod -R a+rX {shlex.quote(str(path))}`.",
        )


@contextmanager
def taken(folders: Sequence[tuple[Folder, int]], mounter: Mounter) -> Generator[tuple[tuple[int, str], ...]]:
    """Take mounts of folders that have been opened, each with its place inside.

    Raises:
        WallUnavailableError: The kernel has none for us.
    """
    with ExitStack() as stack:
        found: list[tuple[int, str]] = []
        for folder, fd in folders:
            mount = fd
            if isinstance(folder.source, Path):
                try:
                    mount = mounter.take(str(folder.source), fd, writable=folder.writable, programs=folder.programs)
                except OSError as error:
                    raise WallUnavailableError(
                        f"{folder.source} cannot be mounted for a sandbox: {error.strerror}.",
                        hint="It takes Linux 5.12, and as an ordinary user user namespaces.",
                    ) from error
                stack.callback(os.close, mount)
            found.append((mount, folder.place))
        yield tuple(found)


def writable_of(folders: Sequence[tuple[Folder, int]]) -> int | None:
    """Return the folder that a sandbox may write to, opened; None where there is none.

    Raises:
        InvalidArgumentError: There are two.
    """
    writable = [fd for folder, fd in folders if folder.writable]
    if len(writable) > 1:
        raise InvalidArgumentError("A sandbox has one folder of this machine that it may write to, and not two.")
    if not writable:
        return None
    if not stat.S_ISDIR(os.stat(writable[0]).st_mode):
        raise SandboxNotMadeError("What a sandbox is to write to is no folder.")
    return writable[0]
