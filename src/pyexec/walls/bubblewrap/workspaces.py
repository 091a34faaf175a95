"""Workspaces: folders on the disk that stay when sandboxes end, and hold no more than they may."""

import errno
import fcntl
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from pyexec.domain.errors import DiskFullError, SandboxNotMadeError
from pyexec.domain.limits import MEGABYTE
from pyexec.processes import images
from pyexec.storage import hostile_folders
from pyexec.walls.bubblewrap.boxes import Box
from pyexec.walls.bubblewrap.folders import WORKSPACE, Folder
from pyexec.walls.bubblewrap.watching import FolderLimits, FolderWatcher, Watched

IMAGE = "workspace.ext4"
FOLDER = "workspace"
FILES = 16_384
TAKEN_SECONDS = 5.0
_LOOK_SECONDS = 0.05
_LOST_AND_FOUND = "lost+found"
_DAMAGED = (errno.EINVAL, errno.EUCLEAN, errno.EBADMSG, errno.EIO, errno.ENODATA)


class Workspace(ABC):
    """One workspace, in use. Whoever has it must `close` it; what is in it stays. Methods block on the disk.

    Attributes:
        size: How many bytes of files it holds.
        hard: Whether the kernel holds it to that.
        root: Its folder, opened by path only (`O_PATH`), for who reads and writes files below it.
    """

    size: int
    hard: bool
    root: int

    @abstractmethod
    @contextmanager
    def opened(self) -> Generator[Folder]:
        """Yield it as the folder of one sandbox that is made meanwhile.

        Raises:
            SandboxNotMadeError: It cannot be had.
        """

    @abstractmethod
    def watch(self, box: Box) -> None:
        """Hold a sandbox that has it to its size, where the kernel does not: it is ended when there is too much.

        Raises:
            OSError: The sandbox cannot be watched; nothing may run in it.
        """

    @abstractmethod
    def used_below(self, root: int) -> int:
        """Return how many bytes are in it, by any descriptor of its folder: it may have been closed since."""

    def used(self) -> int:
        """Return how many bytes are in it."""
        return self.used_below(self.root)

    def last_used(self) -> int:
        """Return how many bytes are in it, or were when somebody last looked, where looking would take long."""
        return self.used()

    @abstractmethod
    def close(self) -> None:
        """Let go of it; sandboxes that have it keep it as long as they live."""

    @abstractmethod
    def remove(self) -> None:
        """Remove it, with all that is in it, having let go of it; no sandbox may have it any more."""


class HandedOut(AbstractContextManager["HandedOut"]):
    """A workspace as others have it: a descriptor of its folder that stays open though the workspace is closed.

    Args:
        workspace: The workspace.
        root: The descriptor, which is closed at the end.
    """

    def __init__(self, workspace: Workspace, root: int) -> None:
        self._workspace = workspace
        self.root = root

    @classmethod
    def of(cls, workspace: Workspace) -> "HandedOut":
        """Return one that is handed out, which is a matter of microseconds."""
        return cls(workspace, os.dup(workspace.root))

    def room(self) -> int | None:
        """Return how many more bytes may be written, where the kernel sets no bound; blocks while all is looked at."""
        workspace = self._workspace
        return None if workspace.hard else max(0, workspace.size - workspace.used_below(self.root))

    def __exit__(self, *_error: object) -> None:
        os.close(self.root)


class ImageWorkspace(Workspace):
    """A file system of its own in a file, mounted where nobody sees it. When nobody has it any more it is unmounted.

    The device holds a lock on the file as long as it is there, so that no two ever have the file.

    Args:
        path: The file.
        size: How many bytes of files it holds.
        environ: Where programs are, as in PATH.

    Raises:
        SandboxNotMadeError: Somebody else has it, or it is damaged.
    """

    hard = True

    def __init__(self, path: Path, size: int, environ: Mapping[str, str]) -> None:
        self.size = size
        self._path = path
        self._environ = environ
        image = _locked(path)
        try:
            self._device, self.root = self._attached(image)
        finally:
            os.close(image)
        with suppress(OSError):
            os.rmdir(_LOST_AND_FOUND, dir_fd=self.root)

    @contextmanager
    def opened(self) -> Generator[Folder]:
        """See `Workspace.opened`."""
        try:
            mount = self._device.mount()
        except OSError as error:
            raise _unusable(self._path, error) from error
        try:
            yield Folder(place=WORKSPACE, source=mount, writable=True)
        finally:
            os.close(mount)

    def watch(self, box: Box) -> None:
        """See `Workspace.watch`: the kernel does."""

    def used_below(self, root: int) -> int:
        """See `Workspace.used_below`."""
        found = os.statvfs(root)
        return (found.f_blocks - found.f_bfree) * found.f_frsize

    def close(self) -> None:
        """See `Workspace.close`."""
        os.close(self.root)
        self._device.close()

    def remove(self) -> None:
        """See `Workspace.remove`."""
        self.close()
        self._path.unlink(missing_ok=True)

    def _attached(self, image: int) -> tuple[images.Attached, int]:
        try:
            try:
                return _attach(image)
            except OSError as error:
                if error.errno not in _DAMAGED or not images.check(self._path, self._environ):
                    raise
                return _attach(image)
        except OSError as error:
            raise _unusable(self._path, error) from error


class FolderWorkspace(Workspace):
    """A plain folder. What is in it is looked at now and then, while a sandbox has it.

    Args:
        path: The folder.
        limits: What may be in it.
        watcher: Who looks.
    """

    hard = False

    def __init__(self, path: Path, limits: FolderLimits, watcher: FolderWatcher) -> None:
        self.size = limits.size
        self._path = path
        self._limits = limits
        self._watcher = watcher
        self._seen: Watched | None = None
        self.root = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)

    @contextmanager
    def opened(self) -> Generator[Folder]:
        """See `Workspace.opened`."""
        yield Folder(place=WORKSPACE, source=self._path, writable=True)

    def watch(self, box: Box) -> None:
        """See `Workspace.watch`."""
        self._seen = Watched(box, self.root, self._limits)
        self._watcher.add(self._seen)

    def last_used(self) -> int:
        """See `Workspace.last_used`."""
        return self.used() if self._seen is None else self._seen.size

    def used_below(self, root: int) -> int:
        """See `Workspace.used_below`."""
        return hostile_folders.content(root).size

    def close(self) -> None:
        """See `Workspace.close`."""
        os.close(self.root)

    def remove(self) -> None:
        """See `Workspace.remove`."""
        self.close()
        hostile_folders.remove(self._path)


class Workspaces:
    """Makes workspaces, of a hard size where that can be had.

    Args:
        environ: Where programs are, as in PATH.

    Attributes:
        obstacle: Why the kernel cannot hold them to their size here; None: it can.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.obstacle = images.obstacle(environ)
        self._environ = environ
        self._watcher = FolderWatcher()

    def open(self, folder: Path, size: int, files: int = FILES) -> Workspace:
        """Return the workspace in a folder, made where there is none yet; blocks for some 50 ms.

        Args:
            folder: Where it lies; it must be there, and nobody else may come into it.
            size: How many bytes of files it holds; the size of one that is there already is what it was.
            files: How many files and folders it holds.

        Raises:
            SandboxNotMadeError: Somebody else has it, or it is damaged.
            WallUnavailableError: It cannot be made.
            DiskFullError: There is no room for it.
        """
        image, plain = folder / IMAGE, folder / FOLDER
        try:
            if self.obstacle is None and not image.exists() and not plain.exists():
                _require_room(folder, size)
                images.make(image, size, files, self._environ)
            if image.exists():
                return ImageWorkspace(image, size, self._environ)
            plain.mkdir(mode=0o700, exist_ok=True)
            return FolderWorkspace(plain, FolderLimits(size=size, files=files), self._watcher)
        except OSError as error:
            raise _unusable(folder, error) from error


def _attach(image: int) -> tuple[images.Attached, int]:
    device = images.Attached(image)
    try:
        return device, device.mount()
    except BaseException:
        device.close()
        raise


def _locked(path: Path) -> int:
    """Open an image and lock it; who had it before may be about to let go."""
    fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    until = time.monotonic() + TAKEN_SECONDS
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() >= until:
                os.close(fd)
                raise SandboxNotMadeError(
                    "The workspace is in use by another process.", hint="Wait until the sandbox that has it has ended."
                ) from error
            time.sleep(_LOOK_SECONDS)
        else:
            return fd


def _require_room(folder: Path, size: int) -> None:
    found = os.statvfs(folder)
    free = found.f_bavail * found.f_frsize
    if free < size:
        raise DiskFullError(
            f"There is no room for a workspace of {size // MEGABYTE} MB: {free // MEGABYTE} MB are free.",
            hint="Remove what is not needed any more.",
        )


def _unusable(path: Path, error: OSError) -> SandboxNotMadeError:
    return SandboxNotMadeError(f"The workspace {path} cannot be used: {error.strerror}.")
