"""A fork on its way into its sandbox. Any step that cannot be done ends it, before it runs anything."""

import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from pyexec_guest.confine import limits, mounts, namespaces, privileges
from pyexec_guest.confine.kernel import close_from
from pyexec_guest.confine.seccomp import Filter
from pyexec_guest.forkserver import randomness, reaper
from pyexec_guest.orders import (
    MOST_PLACES,
    NAMED,
    WORKSPACE,
    News,
    Order,
    Report,
    Stage,
    pack_report,
    unpack_places,
)

GUEST_USER = 1000
CANNOT_START = 70
_UMASK = 0o022


@dataclass(frozen=True)
class Belongings:
    """What a fork server prepares once for all its forks.

    Attributes:
        guest: Is called in the sandbox with the guest's socket; what it returns is the exit code.
        sandbox_filter: The system calls of everything in a sandbox.
        reaper_filter: The system calls of its first process.
        inherited: How much memory every fork has from its beginning, in bytes.
        last_capability: The highest capability there is.
        null: A descriptor of /dev/null.
    """

    guest: "Callable[[int], int | None]"
    sandbox_filter: Filter
    reaper_filter: Filter
    inherited: int
    last_capability: int
    null: int


class _Progress:
    stage = Stage.DESCRIPTORS


def enter(order: Order, descriptors: "Sequence[int]", own: Belongings) -> NoReturn:
    """Become a sandbox: this process its first one, and a fork of it the guest."""
    progress = _Progress()
    status_fd = descriptors[1]
    try:
        socket_fd, status_fd = _close_others(descriptors, own.null)
        _confine(order, range(_FIRST_OF_MANY, _FIRST_OF_MANY + len(descriptors) - _OTHERS), own, progress)
        progress.stage = Stage.GUEST
        guest = os.fork()
        if guest == 0:
            _be_guest(socket_fd, status_fd, own, progress)
        os.close(socket_fd)
        for number in (1, 2):  # What reads them shall see their end when the guest's own end comes.
            os.dup2(0, number)
        reaper.reap(guest, status_fd, own.reaper_filter)
    except BaseException as error:  # noqa: BLE001 - nothing may escape
        # Whatever it was, nothing of the fork server may run on in its copies.
        _tell_failure(status_fd, progress, error)
    finally:
        os._exit(CANNOT_START)


def _tell_failure(status_fd: int, progress: _Progress, error: BaseException) -> None:
    number = error.errno if isinstance(error, OSError) and error.errno is not None else 0
    os.write(status_fd, pack_report(Report(News.FAILED, progress.stage, number)))


_STANDARD = 3
_SOCKET, _STATUS, _FIRST_OF_MANY = 3, 4, 5
_OTHERS = 4


def _close_others(descriptors: "Sequence[int]", null: int) -> "tuple[int, int]":
    """Keep the sandbox's descriptors, under the lowest numbers, and close all others."""
    connection, status, out, err, *many = descriptors
    wanted = (null, out, err, connection, status, *many)
    highest = max(*wanted, len(wanted)) + 1
    # First out of the way, so that none is overwritten before it is moved.
    moved = [_duplicate(fd, highest + index) for index, fd in enumerate(wanted)]
    for number, fd in enumerate(moved):
        os.dup2(fd, number, inheritable=number < _STANDARD)
    close_from(len(moved))
    return _SOCKET, _STATUS


def _duplicate(fd: int, number: int) -> int:
    return os.dup2(fd, number, inheritable=False)


def _confine(order: Order, many: "Sequence[int]", own: Belongings, progress: _Progress) -> None:
    count = order.folders and 1 + order.folders
    folders, groups = many[:count], many[count:]
    progress.stage = Stage.CONTROL_GROUPS
    for fd in groups:
        os.write(fd, b"0")
        os.close(fd)
    progress.stage = Stage.NAMESPACES
    namespaces.leave_all_but_user()
    progress.stage = Stage.MOUNTS
    _mount(order)
    progress.stage = Stage.FOLDERS
    places = _attach(folders)
    progress.stage = Stage.IDENTITY
    os.umask(_UMASK)
    if order.user:
        os.setgroups([])
        os.setresgid(order.user, order.user, order.user)
        os.setresuid(order.user, order.user, order.user)
        privileges.be_opaque(opaque=False)  # Or its own maps of users would belong to root.
    os.chdir(WORKSPACE if WORKSPACE in places else "/work")
    namespaces.become_only_user(GUEST_USER)
    progress.stage = Stage.LIMITS
    limits.put_on(
        limits.ProcessLimits(
            # The kernel counts what is inherited as the fork's own, which it is only when it is written to: a quarter.
            data=order.data + own.inherited * 3 // 4,
            processes=order.processes,
            open_files=order.open_files,
            file_size=order.file_size,
        )
    )
    progress.stage = Stage.PRIVILEGES
    privileges.drop_all(own.last_capability)
    privileges.be_opaque(opaque=True)
    reaper.block_signals()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _mount(order: Order) -> None:
    owner = order.user or os.geteuid()
    namespaces.mount_own_processes()
    for folder, size, files, mode, programs in (
        ("/work", order.work_size, order.work_files, 0o700, True),
        ("/tmp", order.temporary_size, order.temporary_files, 0o1777, True),  # noqa: S108 - its own
        ("/dev/shm", order.shared_size, order.shared_files, 0o1777, False),  # noqa: S108 - its own
    ):
        namespaces.mount_memory(folder, size=size, files=files, mode=mode, owner=owner, programs=programs)


def _attach(folders: "Sequence[int]") -> "list[str]":
    """Put folders of the machine where they shall be; return these places. The first descriptor tells them."""
    if not folders:
        return []
    told, *attached = folders
    places = unpack_places(os.pread(told, MOST_PLACES, 0), len(attached))
    names = [place for place in places if place.startswith(f"{NAMED}/")]
    if names:
        namespaces.mount_names(NAMED, names)
    for mount, place in zip(attached, places, strict=True):
        mounts.attach(mount, place)
    if names:
        namespaces.keep_as_it_is(NAMED)
    for fd in folders:
        os.close(fd)
    return places


def _be_guest(socket_fd: int, status_fd: int, own: Belongings, progress: _Progress) -> NoReturn:
    code = CANNOT_START
    try:
        _step_in(status_fd, own, progress)
        code = own.guest(socket_fd) or 0
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else 1
    finally:
        os._exit(code & 0xFF)


def _step_in(status_fd: int, own: Belongings, progress: _Progress) -> None:
    """Take the last steps, after which there is nothing left that the guest could reach."""
    try:
        os.setsid()
        privileges.be_opaque(opaque=False)
        # Until the guest says what an interrupt means; one that comes before finds nothing to interrupt.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        reaper.unblock_signals()
        progress.stage = Stage.RANDOMNESS
        randomness.begin_anew()
        progress.stage = Stage.SYSTEM_CALLS
        own.sandbox_filter.put_on()
        os.write(status_fd, pack_report(Report(News.READY)))
    except BaseException as error:  # noqa: BLE001 - nothing may escape
        _tell_failure(status_fd, progress, error)
        os._exit(CANNOT_START)
    finally:
        os.close(status_fd)
