"""Files that are file systems of a size, and mounts of them; root alone can have these."""

import errno
import fcntl
import os
import shutil
import stat
import struct
from collections.abc import Mapping
from pathlib import Path

from pyexec.domain.errors import WallUnavailableError
from pyexec.processes.commands import run_tool
from pyexec_guest.confine import mounts

CONTROL = "/dev/loop-control"
KIND = "ext4"
BLOCK = 4096
INODE = 256
JOURNAL_MB = 4
# What is tried last holds on a machine whose PATH has no programs of root's.
_SYSTEM_PATHS = "/usr/sbin:/sbin"
_ATTEMPTS = 20
_GET_FREE = 0x4C82
_CONFIGURE = 0x4C0A
_AUTOCLEAR = 4
_LOOP_MAJOR = 7
_CONFIG = struct.Struct("=II QQQQQ IIII 64s 64s 32s 2Q 64x")
_REPAIRED = 3
"""The highest exit code of e2fsck with which all is well in the end."""


def obstacle(environ: Mapping[str, str]) -> str | None:
    """Say what keeps images from being made and mounted here, and what to do about it; None: nothing."""
    if os.geteuid() != 0:
        return "only root can mount them"
    if not os.path.exists(CONTROL):
        return f"there is no {CONTROL} (`modprobe loop`; in a container it takes the devices of the machine)"
    with open("/proc/filesystems", encoding="ascii") as file:
        if not any(line.split()[-1] == KIND for line in file):
            return f"the kernel has no {KIND} (`modprobe {KIND}`)"
    if _program("mkfs.ext4", environ) is None:
        return "there is no mkfs.ext4 (install e2fsprogs)"
    try:
        os.close(_free_device()[0])
    except OSError as error:
        return f"no loop device can be opened: {error.strerror}"
    return None


def make(path: Path, size: int, files: int, environ: Mapping[str, str]) -> None:
    """Make an image, empty, that takes little of the disk until something is in it. Blocks for some 50 ms.

    Args:
        path: Where; it appears there when it is whole.
        size: How many bytes of files it holds, about.
        files: How many files and folders it holds.
        environ: Where programs are, as in PATH.

    Raises:
        WallUnavailableError: It cannot be made.
        OSError: The disk is full.
    """
    program = _program("mkfs.ext4", environ)
    if program is None:
        raise WallUnavailableError("Workspaces of a hard size need mkfs.ext4.", hint="Install e2fsprogs.")
    coming = path.with_name(f"{path.name}.new")
    # The journal, what tells of the files, and what the kernel keeps for itself (a fiftieth) are not the user's.
    whole = (size + files * INODE + JOURNAL_MB * (1 << 20)) * 100 // 97 + (1 << 20)
    with open(coming, "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.truncate(whole // BLOCK * BLOCK)
    options = ["-q", "-F", "-b", str(BLOCK), "-m", "0", "-N", str(files), "-J", f"size={JOURNAL_MB}"]
    options += ["-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard", "-O", "^resize_inode"]
    try:
        ran = run_tool([program, *options, str(coming)], env={"LANG": "C"})
        if ran.exit_code:
            raise WallUnavailableError(
                f"A workspace cannot be made: {ran.stderr.strip().splitlines()[-1:] or ran.exit_code}."
            )
        coming.rename(path)
    finally:
        coming.unlink(missing_ok=True)


def check(path: Path, environ: Mapping[str, str]) -> bool:
    """Mend an image that cannot be mounted; tell whether it is whole again. Nobody may have it mounted."""
    program = _program("e2fsck", environ)
    return program is not None and run_tool([program, "-f", "-y", str(path)], env={"LANG": "C"}).exit_code <= _REPAIRED


class Attached:
    """An image as a device of the machine, until the last mount of it is gone and this is closed.

    Args:
        image: The file, opened to write. What lock is held by it (`flock`) is held as long as the device is there,
            whoever it was that held it.

    Raises:
        OSError: There is no device for it.
    """

    def __init__(self, image: int) -> None:
        self._device = _attach(image)

    def mount(self) -> int:
        """Return one more mount of it, which nobody else has; the caller closes it.

        Raises:
            OSError: The kernel cannot read it, or refuses.
        """
        return mounts.new(KIND, f"/proc/self/fd/{self._device}", ("discard", "errors=remount-ro"))

    def close(self) -> None:
        """Let go of it."""
        os.close(self._device)


def _attach(image: int) -> int:
    for _ in range(_ATTEMPTS):
        device, number = _free_device()
        config = _CONFIG.pack(image, BLOCK, 0, 0, 0, 0, 0, number, 0, 0, _AUTOCLEAR, b"pyexec", b"", b"", 0, 0)
        try:
            fcntl.ioctl(device, _CONFIGURE, config)
        except OSError as error:
            os.close(device)
            if error.errno != errno.EBUSY:
                raise
            continue  # Somebody else has taken it meanwhile.
        return device
    raise OSError(errno.EBUSY, "no loop device is free")


def _free_device() -> tuple[int, int]:
    """Return a device that nobody uses at the moment, opened, and its number."""
    control = os.open(CONTROL, os.O_RDWR | os.O_CLOEXEC)
    try:
        number = fcntl.ioctl(control, _GET_FREE)
    finally:
        os.close(control)
    place, kind = f"/dev/loop{number}", os.makedev(_LOOP_MAJOR, number)
    try:
        device = os.open(place, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:  # Nobody makes devices here when there is one more.
        os.mknod(place, stat.S_IFBLK | 0o600, kind)
        device = os.open(place, os.O_RDWR | os.O_CLOEXEC)
    found = os.fstat(device)
    if not stat.S_ISBLK(found.st_mode) or found.st_rdev != kind:
        os.close(device)
        raise OSError(errno.ENXIO, f"{place} is no loop device")
    return device, number


def _program(name: str, environ: Mapping[str, str]) -> str | None:
    return shutil.which(name, path=f"{environ.get('PATH', '')}:{_SYSTEM_PATHS}")
