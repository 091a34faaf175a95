"""The builder with a uv that only pretends: what is made once, what is remembered, and what is left of a failure."""

import os
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pyexec.environments.building import Builder
from pyexec.environments.names import NameRegister
from pyexec.environments.orders import BuildOrder
from pyexec.environments.store import Environment, EnvironmentStore
from pyexec.environments.tool import ToolError
from tests.unit.environments.conftest import Write

KEY = "k" * 32
# "Installs" a folder with metadata for each line it reads, and fails at the step that FAIL names.
PROGRAM = """\
#!{python} -IS
import os, sys
words = [word for word in sys.argv[1:] if word != "--offline"]
step = words[1] if words[0] == "pip" else words[0]
print(step, file=open(os.environ["CALLS"], "a"))
failing, _, how = os.environ.get("FAIL", "").partition(":")
if step == failing and ("--offline" not in sys.argv or how != "once"):
    sys.exit("error: " + {{"once": "error sending request", "disk": "No space left on device"}}.get(how, how))
lines = [line.split(" --hash")[0].strip() for line in sys.stdin if line.strip()]
if step == "compile":
    with open(words[words.index("--output-file") + 1], "w") as file:
        for line in lines:
            pinned = line + "==1 \\\\\\n    --hash=sha256:" + os.environ.get("HASH", "00")
            print(line if "@" in line else pinned, file=file)
    print(os.environ.get("WARN", ""), file=sys.stderr)
elif step == "run":
    print({interpreter!r}, "3.14.1", sep="\\n")
elif step == "venv":
    os.makedirs(words[-1] + "/bin")
    os.makedirs(words[-1] + "/lib/python3.11/site-packages")
    os.symlink(words[words.index("--python") + 1], words[-1] + "/bin/python")
elif step == "sync":
    site = words[words.index("--python") + 1].replace("bin/python", "lib/python3.11/site-packages")
    for line in lines:
        name = line.replace(" @ ", "==").split("==")[0]
        os.mkdir(f"{{site}}/{{name}}-1.dist-info")
        with open(f"{{site}}/{{name}}-1.dist-info/METADATA", "w") as file:
            print("Metadata-Version: 2.1", f"Name: {{name}}", "Version: 1", sep="\\n", file=file)
    with open(os.environ["CALLS"] + ".installed", "a") as file:
        print(*lines, sep="\\n", file=file)
"""


class World:
    """A store, a uv that pretends, and orders."""

    def __init__(self, tmp_path: Path, write: Write) -> None:
        self.root = tmp_path
        self.write = write
        python = write("bin/python3", "")
        program = write("bin/uv", PROGRAM.format(python=sys.executable, interpreter=str(python)))
        program.chmod(0o755)
        self.environ = {"CALLS": str(tmp_path / "calls"), "LC_ALL": "C.UTF-8"}
        self.store = EnvironmentStore(tmp_path / "environments")
        self.said: list[str] = []
        (tmp_path / "lock").touch()
        self.order = BuildOrder(
            root=str(self.store.root),
            uv=str(program),
            key=KEY,
            python=str(python),
            python_version="3.11.7",
            requirements=("rich", "pluggy"),
            fresh_seconds=3600.0,
            folder=str(tmp_path),
            holder="1",
            holder_lock=str(tmp_path / "lock"),
        )

    def build(self, *, environ: dict[str, str] | None = None, **changes: Any) -> Environment:
        order = replace(self.order, **changes)
        return Builder(order, {**self.environ, **(environ or {})}, self.said.append).build()

    def calls(self) -> list[str]:
        """Return what uv was asked to do since the last time."""
        file = self.root / "calls"
        calls = file.read_text().split() if file.exists() else []
        file.unlink(missing_ok=True)
        return calls

    def folders(self) -> list[str]:
        return self.store.digests()

    def age(self, seconds: float) -> None:
        """Make what is remembered of the request so much older, and have the index asked again."""
        known = self.store.resolution(KEY)
        assert known is not None
        lock = self.store.lock_text(known.digest)
        self.store.keep_resolution(KEY, replace(known, created_at=time.time() - seconds, put_off_until=0.0), lock or "")


@pytest.fixture
def world(tmp_path: Path, write: Write) -> World:
    return World(tmp_path, write)


def test_an_environment_is_resolved_made_leased_and_told_about(world: World) -> None:
    made = world.build()
    assert made == world.store.get(made.digest)
    assert (made.packages, made.python_version) == (("pluggy==1", "rich==1"), "3.11.7")
    assert made.python == world.store.folder(made.digest) / "bin" / "python"
    assert made.size_bytes > 0
    assert (world.store.root / "leases" / made.digest / "1").read_text() == str(world.root / "lock")
    assert world.store.lock_text(made.digest) == (
        "rich==1 \\\n    --hash=sha256:00\npluggy==1 \\\n    --hash=sha256:00\n"
    )
    assert world.calls() == ["compile", "venv", "sync"]
    assert world.said[0] == "resolving 2 requirements"
    assert world.said[1].startswith("resolved 2 packages in ")
    assert world.said[2] == "installing 2 packages"
    assert world.said[-1] == "ready"


def test_the_same_request_is_resolved_and_made_once_until_it_is_too_old(world: World) -> None:
    made = world.build()
    world.calls()
    assert world.build(holder="2") == made
    assert world.calls() == []
    world.age(3601)
    assert world.build() == made
    assert world.calls() == ["compile"]
    assert sorted(os.listdir(world.store.root / "leases" / made.digest)) == ["1", "2"]


def test_two_requests_that_resolve_to_the_same_share_an_environment(world: World) -> None:
    made = world.build()
    assert world.build(key="o" * 32) == made
    assert world.build(key=None) == made
    assert world.calls() == ["compile", "venv", "sync", "compile", "compile"]


@pytest.mark.parametrize(
    "changes",
    [
        {"requirements": ("rich",)},
        {"python_version": "3.11.8"},
        {"paths": ("/srv/app",)},
        {"environ": {"HASH": "01"}},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_resolves_to_something_else_has_a_folder_of_its_own(world: World, changes: dict[str, Any]) -> None:
    assert world.build(key=None).digest != world.build(key=None, **changes).digest


def test_many_who_ask_at_once_make_one_environment(world: World) -> None:
    made: list[Environment] = []
    threads = [
        threading.Thread(target=lambda number=number: made.append(world.build(holder=str(number))))
        for number in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 4
    assert {one.digest for one in made} == set(world.folders())
    assert world.calls() == ["compile", "venv", "sync"]
    assert sorted(os.listdir(world.store.root / "leases" / made[0].digest)) == ["0", "1", "2", "3"]


def test_what_a_build_that_was_cut_off_has_left_is_made_anew(world: World, write: Write) -> None:
    made = world.build()
    (world.store.folder(made.digest) / "environment.json").unlink()
    rest = write(f"environments/{made.digest}/lib/rest", "")
    assert world.build().digest == made.digest
    assert not rest.exists()


@pytest.mark.parametrize("step", ["compile", "venv", "sync"])
def test_a_failure_leaves_nothing_half(world: World, step: str) -> None:
    with pytest.raises(ToolError) as caught:
        world.build(environ={"FAIL": f"{step}:disk"})
    assert caught.value.failure.kind == "disk"
    assert world.folders() == []
    assert (world.store.resolution(KEY) is None) == (step == "compile")
    assert world.build().packages == ("pluggy==1", "rich==1")


def test_nothing_has_to_be_installed_where_nothing_is_asked_for(world: World) -> None:
    assert world.build(requirements=()).packages == ()
    assert world.calls() == ["venv"]


def test_folders_of_a_project_are_importable(world: World) -> None:
    made = world.build(requirements=(), paths=("/srv/app/src", "/srv/more"))
    (file,) = world.store.folder(made.digest).glob("lib/python*/site-packages/*.pth")
    assert file.read_text() == "/srv/app/src\n/srv/more\n"


def test_a_python_that_has_to_be_fetched_gives_the_environment_its_version(world: World) -> None:
    made = world.build(key=None, python="3.14", python_version=None)
    assert made.python_version == "3.14.1"
    assert made.python.readlink() == world.root / "bin" / "python3"
    assert world.calls() == ["run", "compile", "venv", "sync"]
    assert world.said[0] == "fetching Python 3.14"


# -- without the network -------------------------------------------------------------------------------------------


@pytest.mark.case("B036")
def test_where_the_index_is_away_and_the_cache_suffices_that_is_noted(world: World) -> None:
    made = world.build(environ={"FAIL": "compile:once"})
    assert made.notes == ("The package index could not be reached; the packages are those that uv has in its cache.",)


@pytest.mark.case("B036")
@pytest.mark.parametrize(("age", "told"), [(5 * 3600.0, "5 hours"), (72 * 3600.0, "3 days")])
def test_where_the_index_is_away_what_was_found_before_is_used_again_and_noted(
    world: World, age: float, told: str
) -> None:
    made = world.build()
    world.age(age)
    away = {"FAIL": "compile:error sending request"}
    again = world.build(environ=away)
    assert again.digest == made.digest
    assert again.notes == (f"The package index could not be reached; the packages are those of {told} ago.",)
    with pytest.raises(ToolError, match="cannot be reached"):
        world.build(key="o" * 32, environ=away)


@pytest.mark.case("B031")
def test_a_local_package_that_has_changed_is_never_taken_for_what_it_was_while_the_index_is_away(world: World) -> None:
    wheel = world.write("lib-1-py3-none-any.whl", "one")
    wanted = (f"lib @ {wheel.as_uri()}",)
    first = world.build(requirements=wanted)
    world.age(5 * 3600.0)
    wheel.write_text("another one")
    second = world.build(requirements=wanted, environ={"FAIL": "compile:once"})
    assert second.digest != first.digest
    assert second.notes == ("The package index could not be reached; the packages are those that uv has in its cache.",)


@pytest.mark.case("B036")
def test_an_index_that_is_away_is_asked_again_soon_but_not_at_once(world: World) -> None:
    world.build()
    world.age(5 * 3600.0)
    away = {"FAIL": "compile:error sending request"}
    noted = world.build(environ=away).notes
    world.calls()
    assert world.build(environ=away).notes == noted
    assert world.calls() == []
    world.age(50 * 3600.0)
    (told,) = world.build(environ=away).notes
    assert told.endswith("those of 2 days ago.")
    world.age(50 * 3600.0)
    assert world.build().notes == ()


def test_what_uv_warns_about_is_noted_and_remembered(world: World) -> None:
    warned = {"WARN": "warning: rich is yanked: https://SECRET@x.org/rich"}
    assert world.build(environ=warned).notes == ("rich is yanked: https://***@x.org/rich",)
    assert world.build().notes == ("rich is yanked: https://***@x.org/rich",)


# -- names ---------------------------------------------------------------------------------------------------------


def test_a_name_is_given_to_what_was_made_with_all_it_takes_to_make_it_again(world: World) -> None:
    made = world.build(name="tools", owner="me", asked=("rich", "pluggy"))
    named = NameRegister(world.store.root / "named").get("me", "tools")
    assert named is not None
    assert (named.digest, named.python_version, named.dependencies) == (made.digest, "3.11.7", ("rich", "pluggy"))
    assert world.store.evict(made.digest, at_once=True)
    world.calls()
    again = world.build(key=None, requirements=(), digest=named.digest, lock=named.lock)
    assert (again.digest, again.packages) == (made.digest, made.packages)
    assert world.calls() == ["venv", "sync"]


def test_a_build_that_fails_gives_no_name(world: World) -> None:
    with pytest.raises(ToolError):
        world.build(name="tools", owner="me", environ={"FAIL": "sync:x"})
    assert NameRegister(world.store.root / "named").all_of("me") == []


# -- secrets -------------------------------------------------------------------------------------------------------


@pytest.mark.case("B037")
def test_credentials_reach_uv_and_are_found_nowhere_in_the_store(world: World) -> None:
    url = "lib @ https://u:SECRET@x.org/lib-1.whl"
    made = world.build(
        requirements=("rich", url),
        constraints=("numpy @ https://u:SECRET@x.org/numpy.whl",),
        index_url="https://u:SECRET@x.org/simple",
        name="tools",
        asked=("rich", "lib @ https://x.org/lib-1.whl"),
    )
    assert url in (world.root / "calls.installed").read_text().splitlines()
    assert "SECRET" not in repr(made)
    kept = [file for file in world.store.root.rglob("*") if file.is_file()]
    assert len(kept) > 5
    assert not [file for file in kept if b"SECRET" in file.read_bytes()]
    assert not [line for line in world.said if "SECRET" in line]
