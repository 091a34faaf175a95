"""The wall as an ordinary user has it: no range of users, no control groups, the rest as ever."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import pyexec
import pyexec_guest
from pyexec.walls.bubblewrap.program import find_bubblewrap
from tests.walls.bubblewrap import HERE, copy_interpreter

pytestmark = pytest.mark.root
ORDINARY = 54_321


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


def test_an_ordinary_user_has_the_same_wall_without_control_groups(reachable: Path) -> None:
    done = subprocess.run(
        [reachable / "python/bin/python3", "-B", reachable / "inside/as_ordinary_user.py", reachable],
        env={"PYTHONPATH": str(reachable / "src"), "LD_LIBRARY_PATH": str(reachable / "python/lib")},
        user=ORDINARY,
        group=ORDINARY,
        extra_groups=[],
        cwd="/",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["uid"] == ORDINARY
    assert told["waived"] == ["memory of a sandbox as a whole", "processor time"]
    assert told["groups"].endswith("Permission denied")
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
    assert told["gone"] == [True, True]
    assert told["alone"]
    waived = "waived: nothing holds it to that; the operator has waived the limit"
    assert told["proof"] == {
        "memory-together": waived,
        "memory-shared": waived,
        "processor": waived,
        "user": f"waived: it is {ORDINARY}, who runs pyexec: only root has other users to give",
    }
