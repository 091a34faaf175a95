"""The wall as an ordinary user has it: no range of users, control groups or a watcher, the rest as ever."""

import errno
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pyexec
import pyexec_guest
from pyexec.walls.bubblewrap.program import find_bubblewrap
from pyexec_guest.outside.groups import delegation
from pyexec_guest.outside.groups.mounts import own_groups
from tests.walls.bubblewrap import HERE, copy_interpreter

pytestmark = pytest.mark.root
ORDINARY = 54_321
OWN_USER = f"waived: it is {ORDINARY}, who runs pyexec, with their groups: only root has other users to give"


def _version2() -> str | None:
    """Return this process's own group of version 2, where that has what sandboxes need."""
    folder = own_groups().version2
    if folder is None or os.geteuid() != 0:
        return None
    available = Path(folder, "cgroup.controllers").read_text("ascii").split()
    return folder if {*delegation.CONTROLLERS} <= {*available} else None


VERSION2 = _version2()


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that anybody may read, with an interpreter, bubblewrap and pyexec in it."""
    with tempfile.TemporaryDirectory(prefix="pe-wall-", dir="/var/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        copy_interpreter(folder / "python")
        for package in (pyexec, pyexec_guest):
            assert package.__file__ is not None
            source = Path(package.__file__).parent
            shutil.copytree(source, folder / "src" / source.name, ignore=shutil.ignore_patterns("__pycache__"))
        bwrap = find_bubblewrap(os.environ["PATH"])
        for part in bwrap.folders:
            shutil.copytree(Path(bwrap.root) / part, folder / "src" / part)
        shutil.copytree(HERE / "inside", folder / "inside")
        for path in (folder, *folder.rglob("*")):
            if not path.is_symlink() and path.stat().st_nlink == 1:
                path.chmod(path.stat().st_mode | 0o444 | (0o111 if path.is_dir() else 0))
        yield folder


def told_by_ordinary_user(reachable: Path, group: Path | None = None) -> dict[str, Any]:
    """Return what an ordinary user finds, in a control group of their own where one is given."""
    with subprocess.Popen(
        [reachable / "python/bin/python3", "-B", reachable / "inside/as_ordinary_user.py", reachable],
        env={"PYTHONPATH": str(reachable / "src"), "LD_LIBRARY_PATH": str(reachable / "python/lib")},
        user=ORDINARY,
        group=ORDINARY,
        extra_groups=[ORDINARY, ORDINARY + 1],
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        if group is not None:
            (group / "cgroup.procs").write_text(str(process.pid))
        out, err = process.communicate("go\n", timeout=200)
    assert process.returncode == 0, err
    return json.loads(out)


def check_the_wall(told: dict[str, Any]) -> None:
    """See that it is the wall that everybody has."""
    assert told["uid"] == ORDINARY
    zero = "0" * 16
    assert (
        told["looks"]
        == [
            {
                "Uid": "1000\t1000\t1000\t1000",
                "CapEff": zero,
                "CapBnd": zero,
                "NoNewPrivs": "1",
                "Seccomp": "2",
                "pids": ["1", "2"],
                "map": ["1000", "1", "1"],
                "usr": 30,
            }
        ]
        * 2
    )
    # The first process, the guest, and the one that it has started.
    assert told["members"] == [3, 3]
    for usage in told["usages"]:
        assert usage["processes"] == 3
        assert 0 < usage["memory"] <= usage["peak_memory"] < 32 << 20
        assert usage["cpu_seconds"] == pytest.approx(usage["user_seconds"] + usage["system_seconds"], abs=1e-4)
        assert usage["out_of_memory"] == 0
    assert told["gone"] == [True, True]
    assert told["alone"]
    ended, went_on = told["ends"]
    assert (ended["cause"], ended["memory_limit"]) == ("out_of_memory", 64 << 20)
    assert went_on is None
    assert told["left"] == [0, False]
    check_the_folders(told["folders"])


def check_the_folders(told: dict[str, Any]) -> None:
    """See that folders of the machine are in a sandbox as they shall be."""
    above = told.pop("above")
    assert "workspace" in above
    assert not {"sales", "home"} & {*above}
    options = {place: {*given.split(",")} for place, given in told.pop("options").items()}
    assert {"rw", "nosuid", "nodev"} <= options["/workspace"]
    assert {"ro", "nosuid", "nodev", "noexec"} <= options["/data/sales"]
    assert told == {
        "cwd": "/workspace",
        "owner": 1000,
        "seen": "a",
        "data": errno.EROFS,
        "places": [[], [], ["sales"]],
        "next": "written\n",
        "here": ["writtenagain", ORDINARY],
        "mounted": False,
        "watched": [
            "only root can mount them",
            "killed",
            "its workspace held more than its limit of 8 MB",
            True,
            ["data", "written"],
        ],
    }


def test_an_ordinary_user_without_control_groups_has_the_same_wall_and_is_watched(reachable: Path) -> None:
    told = told_by_ordinary_user(reachable)
    message, hint = told["refused"]
    what = "Sandboxes cannot be held to their limits here (memory of a sandbox as a whole)"
    assert message.startswith(f"{what}: version 2: ")
    assert "; version 1: " in message
    assert "`systemd-run --user --scope -p Delegate=yes pyexec …`" in hint
    assert "With version 1, run it as root." in hint
    assert hint.endswith("PYEXEC_SANDBOX_WAIVE=memory,cpu.")
    assert told["waived"] == ["memory of a sandbox as a whole", "processor time"]
    assert told["tier"] == "watched"
    check_the_wall(told)
    waived = "waived: nothing holds it to that; the operator has waived the limit"
    assert told["proof"] == {
        "memory-together": waived,
        "memory-shared": waived,
        "processor": waived,
        "user": OWN_USER,
    }
    # It had taken 96 MB before anybody looked, or was about to.
    assert 64 << 20 < told["ends"][0]["peak_memory"] < 128 << 20


if VERSION2 is not None:

    @pytest.fixture
    def delegated() -> Iterator[Path]:
        """A control group that belongs to an ordinary user, with all that is in it."""
        own = own_groups()
        assert own.version2 is not None
        systemd = os.path.isdir(delegation.SYSTEMD)
        group = Path(delegation.divisible(own.version2, own.version2_top, root=True, systemd=systemd)) / "delegated"
        group.mkdir()
        for path in (group, *(group / f"cgroup.{name}" for name in ("procs", "threads", "subtree_control"))):
            os.chown(path, ORDINARY, ORDINARY)
        yield group
        for folder in (group / delegation.LEAF, group):
            folder.rmdir()

    def test_an_ordinary_user_with_a_delegated_group_is_held_hard(reachable: Path, delegated: Path) -> None:
        told = told_by_ordinary_user(reachable, delegated)
        assert (told["refused"], told["waived"], told["tier"]) == (None, [], "cgroup2")
        check_the_wall(told)
        assert told["proof"] == {"user": OWN_USER}
        assert (64 << 20) * 0.9 < told["ends"][0]["peak_memory"] <= 64 << 20
