"""From a process of ours to bubblewrap: root is given up, then the wall is put up."""

import os
from collections.abc import Iterator

from pyexec_guest.confine import kernel
from pyexec_guest.orders import NAMED, PLACES
from pyexec_guest.outside.plan import Plan, Program, Users

STAGE = "/mnt"
"""What is bound inside is gathered here first, where only this process sees it: so it need not lie where the user
that this process becomes could go."""

CAPABILITIES = ("CAP_SYS_ADMIN", "CAP_SETUID", "CAP_SETGID")
"""What the fork server needs to put up walls between its forks; these do not have any."""

_FOLDERS = ("/work", *PLACES, NAMED, "/dev/shm")  # noqa: S108 - inside


def become(plan: Plan, info_fd: int) -> None:
    """Replace this process by bubblewrap, which runs the plan's command behind the outer wall.

    The descriptors of this process that are inheritable are the command's. Does not return.

    Args:
        plan: The wall.
        info_fd: Where bubblewrap tells its child's pid.

    Raises:
        OSError: A step cannot be done; the process must not go on.
    """
    program, sources = plan.bwrap.path, [source for source, _ in plan.binds]
    root = plan.bwrap.root
    if plan.users is not None:
        root, sources = _stage(plan.bwrap, sources)
        _become_range(plan.users)
    binds = [(source, inside) for source, (_, inside) in zip(sources, plan.binds, strict=True)]
    # On a descriptor, so that /proc shows nobody what the wall is made of.
    arguments = _in_memory("".join(f"{argument}\0" for argument in _arguments(plan, binds, info_fd)))
    os.chdir("/")
    bwrap = os.path.join(root, program)
    os.execve(bwrap, ["bwrap", "--args", str(arguments), "--", *plan.command], {})  # noqa: S606 - its purpose


def _arguments(plan: Plan, binds: "list[tuple[str, str]]", info_fd: int) -> "Iterator[str]":
    if plan.users is None:
        # Not root, which nobody may hand on to a namespace further in.
        yield from ("--unshare-user", "--uid", "1", "--gid", "1")
    yield from ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")
    yield from ("--hostname", "forkserver", "--new-session", "--info-fd", str(info_fd), "--cap-drop", "ALL")
    for capability in CAPABILITIES:
        yield from ("--cap-add", capability)
    yield "--clearenv"
    for name, value in plan.environment:
        yield from ("--setenv", name, value)
    # Devices one by one: with --dev bubblewrap would put a user namespace of its own between us and the fork server.
    yield from ("--proc", "/proc", "--tmpfs", "/dev")
    for device in plan.devices:
        yield from ("--dev-bind", device, device)
    for name, target in (("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        yield from ("--symlink", f"/proc/self/{target}", f"/dev/{name}")
    # Told one by one: what bubblewrap makes by itself on the way to a place, it makes for itself alone.
    for folder in _parents([*(inside for _, inside in binds), *(inside for inside, _ in plan.files)]):
        yield from ("--perms", "0755", "--dir", folder)
    for source, inside in binds:
        yield from ("--ro-bind", source, inside)
    for inside, target in plan.links:
        yield from ("--symlink", target, inside)
    for inside, text in plan.files:
        yield from ("--perms", "0644", "--file", str(_in_memory(text)), inside)
    for folder in _FOLDERS:
        yield from ("--dir", folder)
    yield from ("--perms", "1777", "--size", str(plan.scratch_size), "--tmpfs", "/tmp")  # noqa: S108 - inside
    yield from ("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/")


def _parents(places: "list[str]") -> "list[str]":
    """Return every folder above these places, each after the one it is in."""
    found: dict[str, None] = {}
    for place in places:
        parts = place.strip("/").split("/")[:-1]
        found.update({"/" + "/".join(parts[: count + 1]): None for count in range(len(parts))})
    return sorted(found)


def _in_memory(text: str) -> int:
    """Return a descriptor, for bubblewrap to inherit, from which the text can be read."""
    fd = os.memfd_create("wall", 0)
    data = text.encode("utf-8", "surrogateescape")
    while data:
        data = data[os.write(fd, data) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _stage(bwrap: Program, sources: "list[str]") -> "tuple[str, list[str]]":
    """Bind all sources below `STAGE`, in a mount namespace of this process's own.

    Returns: The root of the program, and where the sources are now.
    """
    kernel.unshare(kernel.CLONE_NEWNS)
    kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    wanted = {os.path.join(bwrap.root, folder): os.path.join(STAGE, "program", folder) for folder in bwrap.folders}
    staged = [os.path.join(STAGE, str(index)) for index in range(len(sources))]
    opened = [
        (os.open(source, os.O_PATH | os.O_CLOEXEC), place)
        for source, place in (*wanted.items(), *zip(sources, staged, strict=True))
    ]
    kernel.mount("tmpfs", STAGE, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755,size=1m")
    for fd, place in opened:
        source = f"/proc/self/fd/{fd}"
        if os.path.isdir(source):
            os.makedirs(place)
        else:
            os.close(os.open(place, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
        kernel.mount(source, place, "", kernel.MS_BIND | kernel.MS_REC)
        os.close(fd)
    return os.path.join(STAGE, "program") if bwrap.folders else bwrap.root, staged


def _become_range(users: Users) -> None:
    """Become the first user of a range, and root of a user namespace that has the whole range and nobody else."""
    entered, mapped = os.pipe(), os.pipe()
    this = os.getpid()
    helper = os.fork()
    if helper == 0:
        status = 1
        try:
            # Still root outside: only such a one may hand out users that are not its own.
            os.close(entered[1])
            if os.read(entered[0], 1):
                for kind in ("uid_map", "gid_map"):
                    with open(f"/proc/{this}/{kind}", "w", encoding="ascii") as file:
                        file.write(f"0 {users.first} {users.count}")
                os.write(mapped[1], b"m")
                status = 0
        finally:
            os._exit(status)
    os.close(mapped[1])
    os.setgroups([])
    os.setresgid(users.first, users.first, users.first)
    os.setresuid(users.first, users.first, users.first)
    kernel.unshare(kernel.CLONE_NEWUSER)
    os.write(entered[1], b"e")
    answered = os.read(mapped[0], 1)
    for fd in (*entered, mapped[0]):
        os.close(fd)
    _, status = os.waitpid(helper, 0)
    if not answered or status:
        raise OSError(1, f"the users from {users.first} on could not be mapped")
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
