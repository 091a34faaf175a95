"""What sandboxes run on may lie where the users that they are could never go."""

import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pyexec.walls.bubblewrap.contents import PACKAGES
from pyexec.walls.bubblewrap.python import look_at
from tests.walls.bubblewrap import TEST_CODE, AttackedBox, copy_interpreter, inside, wall_around
from tests.walls.interface import run

pytestmark = pytest.mark.root
SOMEBODY = 54_322
LOOK = """
import json, os, sys, hello
seen = {}
for place in PLACES:
    try:
        seen[place] = sorted(os.listdir(place))
    except OSError as error:
        seen[place] = error.errno
print(json.dumps([hello.VALUE, sys.base_prefix, seen]))
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """A home that only its user may enter, with an interpreter and packages in it."""
    with tempfile.TemporaryDirectory(prefix="pe-home-", dir="/var/tmp") as name:
        home = Path(name)
        copy_interpreter(home / "python")
        (home / "packages").mkdir()
        (home / "packages/hello.py").write_text("VALUE = 42\n", "utf-8")
        (home / "secret").write_text("secret", "utf-8")
        for path in (home, home / "packages", home / "packages/hello.py"):
            os.chown(path, SOMEBODY, SOMEBODY)
        home.chmod(0o700)
        yield home


def test_an_interpreter_and_packages_in_somebodys_closed_home_can_be_used_and_nothing_else_there_be_seen(
    home: Path,
) -> None:
    needs = {"LD_LIBRARY_PATH": str(home / "python/lib")}
    what = replace(
        inside(None),
        python=look_at(home / "python/bin/python3", needs),
        packages=home / "packages",
        environment={**needs, "PYTHONPATH": f"{PACKAGES}:{TEST_CODE}"},
    )
    with wall_around(what) as wall:
        box = AttackedBox(wall.sandbox())
        try:
            ran = run(box, LOOK.replace("PLACES", repr([str(home), "/var/tmp"])))
        finally:
            box.close()
    assert ran.value == [42, str(home / "python"), {str(home): ["python"], "/var/tmp": [home.name]}]
