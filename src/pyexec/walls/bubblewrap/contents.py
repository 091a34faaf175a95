"""What there is behind the wall: a read-only system, an interpreter, packages and our guest."""

import os
import shlex
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyexec
from pyexec.domain.errors import WallUnavailableError
from pyexec.domain.sandboxes import PRELOADED
from pyexec.processes.outerwalls import CONTROL_FD_ARGUMENT
from pyexec.sandbox.forks import Plan, Program, Users
from pyexec.walls.bubblewrap.python import SandboxPython

HOME = "/work"
PACKAGES = "/opt/pyexec/packages"
GUEST = "/opt/pyexec/guest"
INSTEAD = f"{GUEST}/pyexec_guest/instead"
"""Modules that stand before others of their names, for the processes that code in a sandbox starts."""

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
USERS = Users(first=1_900_000_000, count=65_536)
"""Whom sandboxes are on this machine, where pyexec is run by root: above what container tools and systemd hand out."""

SCRATCH_BYTES = 64 * 1024 * 1024

_SYSTEM_FILES = (
    "/etc/ld.so.cache",
    "/etc/alternatives",
    "/etc/fonts",
    "/etc/localtime",
    "/etc/mime.types",
)
_MADE_UP = (
    ("/etc/passwd", "sandbox:x:1000:1000:sandbox:/work:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"),
    ("/etc/group", "sandbox:x:1000:\nnogroup:x:65534:\n"),
    ("/etc/hosts", "127.0.0.1 localhost sandbox\n"),
    ("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"),
)
_OWN_FOLDERS = ("/tmp", HOME, "/dev", "/proc", "/etc", "/opt/pyexec")  # noqa: S108 - inside
_SYSTEM_FOLDERS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")

_ENVIRONMENT = {
    "HOME": HOME,
    "USER": "sandbox",
    "LOGNAME": "sandbox",
    "LANG": "C.UTF-8",
    "TMPDIR": "/tmp",  # noqa: S108 - inside
    "PYTHONPATH": f"{INSTEAD}:{PACKAGES}",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONNOUSERSITE": "1",
    "MPLBACKEND": "agg",
    "MPLCONFIGDIR": "/tmp/matplotlib",  # noqa: S108 - inside
    # A thread that one of these starts ahead would be missing in every fork.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_MAX_THREADS": "1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """What runs behind the wall.

    Attributes:
        python: The interpreter.
        packages: A folder of installed packages, or None for the standard library only.
        guest: What a sandbox runs, a function of its socket's descriptor, as `module:function`.
        preloaded: The modules that every sandbox has imported already; a function (`module:function`) is called too.
        more: Further folders or files that can be read, by where they are inside.
        environment: Further environment variables.
    """

    python: SandboxPython
    packages: Path | None
    guest: str
    preloaded: tuple[str, ...] = PRELOADED
    more: Mapping[str, Path] = field(default_factory=dict[str, Path])
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


def plan_for(inside: Inside, bwrap: Program, users: Users | None) -> Plan:
    """Return the outer wall around what is inside.

    Raises:
        WallUnavailableError: The interpreter lies where a sandbox has a folder of its own, or a folder that is bound
            inside cannot be read by the users that sandboxes are.
    """
    hiding = next((place for place in _OWN_FOLDERS if inside.python.prefix.is_relative_to(place)), None)
    if hiding is not None:
        raise WallUnavailableError(
            f"Sandboxes cannot run on {inside.python.executable}: each of them has a {hiding} of its own.",
            hint="Use an interpreter that lies elsewhere.",
        )
    binds = tuple(dict.fromkeys(_binds(inside)))
    if users is not None:
        _check_readable((source for source, _ in binds), inside.packages)
    executable = str(inside.python.executable)
    environment = {
        "PATH": f"{inside.python.executable.parent}:/usr/bin:/bin",
        **_ENVIRONMENT,
        **inside.environment,
    }
    return Plan(
        bwrap=bwrap,
        binds=binds,
        devices=tuple(device for device in DEVICES if os.path.exists(device)),
        files=_MADE_UP,
        links=tuple(_links()),
        environment=tuple(environment.items()),
        command=(
            executable,
            "-B",
            f"{GUEST}/pyexec_guest/forkserver",
            CONTROL_FD_ARGUMENT,
            inside.guest,
            ",".join(inside.preloaded),
        ),
        users=users,
        scratch_size=SCRATCH_BYTES,
    )


def _check_readable(sources: Iterable[str], packages: Path | None) -> None:
    """See that others may read what is bound; the folders above it need not be open to them.

    Of the packages not every file is looked at: who cannot read one of them has made all under the same umask.
    """
    places = [(source, source) for source in sources]
    if packages is not None:
        places += [(str(packages), place) for place in _samples(packages)]
    for source, place in places:
        if not _may_be_read(place):
            raise WallUnavailableError(
                f"Sandboxes are users of their own, who may not read {place}.",
                hint=f"Run `chmod -R a+rX {shlex.quote(source)}`.",
            )


def _samples(packages: Path) -> Iterator[str]:
    with os.scandir(packages) as entries:
        for entry in entries:
            yield entry.path
            yield os.path.join(entry.path, "__init__.py")


def _may_be_read(place: str) -> bool:
    try:
        mode = os.stat(place).st_mode
    except OSError:  # There is none, or it is a link that leads nowhere.
        return True
    return bool(mode & stat.S_IROTH) and (not stat.S_ISDIR(mode) or bool(mode & stat.S_IXOTH))


def _binds(inside: Inside) -> Iterator[tuple[str, str]]:
    yield "/usr", "/usr"
    for name in _SYSTEM_FOLDERS:
        folder = f"/{name}"
        if os.path.isdir(folder) and not os.path.islink(folder):
            yield folder, folder
    for place in _SYSTEM_FILES:
        if os.path.exists(place):
            yield os.path.realpath(place), place
    prefix = inside.python.prefix
    if not prefix.is_relative_to("/usr"):
        yield str(prefix.resolve()), str(prefix)
    if inside.packages is not None:
        yield str(inside.packages), PACKAGES
    yield str(Path(pyexec.__file__).parent.parent / "pyexec_guest"), f"{GUEST}/pyexec_guest"
    for place, source in inside.more.items():
        yield str(source), place


def _links() -> Iterator[tuple[str, str]]:
    for name in _SYSTEM_FOLDERS:
        if os.path.islink(f"/{name}"):
            yield f"/{name}", os.readlink(f"/{name}")
