import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pyexec.environments.interpreters import Interpreter
from pyexec.environments.keys import EnvironmentRequest, LockedProject, request_key
from tests.unit.environments.conftest import Write

DIFFERENT: list[dict[str, Any]] = [
    {},
    {"python": "/usr/bin/python3.11"},
    {"interpreter": None},
    {"requirements": ("rich",)},
    {"requirements": ("rich", "numpy")},
    {"requirements": ("rich>=1",)},
    {"requirements": ("lib @ https://one@x.org/lib.whl",)},
    {"requirements": ("lib @ https://two@x.org/lib.whl",)},
    {"constraints": ("rich",)},
    {"options": ("--index", "https://x.org")},
    {"options": ("https://x.org", "--index")},
    {"index_url": "https://x.org/simple"},
    {"index_url": "https://one@x.org/simple"},
    {"editables": (Path("/srv/lib"),)},
    {"project": LockedProject(folder=Path("/srv/app"), lock=Path("/srv/app/uv.lock"))},
    {"project": LockedProject(folder=Path("/srv/app/one"), lock=Path("/srv/app/uv.lock"))},
    {"paths": (Path("/srv/app"),)},
    {"paths": (Path("/srv/app/src"),)},
    {"paths": (Path("/srv/app"), Path("/srv/app/src"))},
    {"paths": (Path("/srv/app/src"), Path("/srv/app"))},
]


class World:
    """A request, the folder it is made in, and the variables it is made with."""

    def __init__(self, tmp_path: Path, write: Write) -> None:
        self.root = tmp_path
        self.write = write
        self.python = write("bin/python", "3.11")
        self.directory = tmp_path / "home" / "work"
        self.directory.mkdir(parents=True)
        self.environ = {"HOME": str(tmp_path / "home"), "PATH": "/usr/bin"}
        self.request = EnvironmentRequest(
            python=str(self.python), interpreter=Interpreter(path=self.python, version=(3, 11, 7))
        )

    def key(self, *, directory: Path | None = None, environ: dict[str, str] | None = None, **changes: Any) -> str:
        request = replace(self.request, **changes)
        return request_key(request, self.environ if environ is None else environ, directory or self.directory)

    def project(self, name: str, content: str = "V = 1\n") -> Path:
        self.write(f"{name}/pyproject.toml", "[project]\n")
        self.write(f"{name}/src/lib.py", content)
        return self.root / name


@pytest.fixture
def world(tmp_path: Path, write: Write) -> World:
    return World(tmp_path, write)


def test_the_same_request_has_the_same_key_which_may_be_a_file_name(world: World) -> None:
    key = world.key(requirements=("rich",))
    assert world.key(requirements=("rich",)) == key
    assert len(key) == 32
    assert key.isalnum()


def test_whatever_is_asked_for_differently_has_another_key(world: World) -> None:
    keys = {world.key(**changes): changes for changes in DIFFERENT}
    assert list(keys.values()) == DIFFERENT


def test_the_order_in_which_packages_are_asked_for_does_not_matter(world: World) -> None:
    one, other = world.project("one"), world.project("other")
    urls = (one.as_uri(), other.as_uri(), "rich", "numpy")
    first = world.key(requirements=urls, editables=(one, other), constraints=("a", "b"))
    assert world.key(requirements=urls[::-1], editables=(other, one), constraints=("b", "a")) == first


def test_another_program_at_the_path_of_the_interpreter_is_another_python(world: World) -> None:
    before = world.key()
    assert world.key(interpreter=Interpreter(path=world.python, version=(3, 11, 8))) != before
    world.write("bin/python", "3.11.8")
    assert world.key() != before


# -- local packages ------------------------------------------------------------------------------------------------


@pytest.mark.case("B031")
def test_a_change_in_a_local_project_is_another_request(world: World) -> None:
    asked: dict[str, Any] = {"requirements": (world.project("my lib").as_uri(),)}
    before = world.key(**asked)
    assert world.key(**asked) == before
    world.project("my lib", "V = 22\n")
    assert world.key(**asked) != before


def test_the_modules_of_an_editable_project_may_change_freely_and_its_metadata_not(world: World) -> None:
    lib, other = world.project("lib"), world.project("other")
    asked: dict[str, Any] = {"requirements": (f"{lib.as_uri()}[x]", other.as_uri()), "editables": (lib,)}
    before = world.key(**asked)
    world.write("lib/src/lib.py", "V = 22\n")
    assert world.key(**asked) == before
    world.write("lib/pyproject.toml", "[project]\nname = 'lib'\n")
    after = world.key(**asked)
    assert after != before
    world.write("other/src/lib.py", "V = 22\n")
    assert world.key(**asked) != after


def test_a_project_that_is_copied_is_not_one_that_is_editable(world: World) -> None:
    lib = world.project("lib")
    assert world.key(requirements=(lib.as_uri(),)) != world.key(requirements=(lib.as_uri(),), editables=(lib,))


@pytest.mark.parametrize("name", ["app/uv.lock", "app/one/pyproject.toml"])
def test_a_change_in_a_lock_or_in_its_project_is_another_request(world: World, name: str) -> None:
    world.write("app/uv.lock", "")
    world.write("app/one/pyproject.toml", "")
    project = LockedProject(folder=world.root / "app" / "one", lock=world.root / "app" / "uv.lock")
    before = world.key(project=project)
    world.write(name, "# changed\n")
    assert world.key(project=project) != before


# -- settings of uv ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "UV_INDEX",
        "UV_DEFAULT_INDEX",
        "UV_INDEX_MINE_PASSWORD",
        "UV_EXCLUDE_NEWER",
        "UV_PRERELEASE",
        "UV_RESOLUTION",
        "UV_NO_BINARY",
        "UV_CONSTRAINT",
        "UV_SOMETHING_NEW",
    ],
)
def test_a_setting_of_uv_that_may_change_what_is_found_changes_the_key(world: World, name: str) -> None:
    keys = {world.key(environ={**world.environ, **more}) for more in ({}, {name: "1"}, {name: "2"})}
    assert len(keys) == 3


@pytest.mark.parametrize(
    "name",
    ["UV_CACHE_DIR", "UV_OFFLINE", "UV_LINK_MODE", "UV_HTTP_TIMEOUT", "UV_CONCURRENT_BUILDS", "UV", "PATH", "TOKEN"],
)
def test_a_variable_without_influence_on_what_is_found_does_not(world: World, name: str) -> None:
    assert world.key(environ={**world.environ, name: "1"}) == world.key()


def test_no_setting_is_stored_as_it_is(world: World) -> None:
    assert "SECRET" not in world.key(environ={"UV_INDEX_X_PASSWORD": "SECRET"}, index_url="https://SECRET@x.org")
    assert "SECRET" not in repr(replace(world.request, index_url="SECRET", requirements=("SECRET",)))


PLACES: dict[str, Callable[[World], str]] = {
    "uv.toml in the folder": lambda _world: "home/work/uv.toml",
    "uv.toml above": lambda _world: "home/uv.toml",
    "pyproject.toml in the folder": lambda _world: "home/work/pyproject.toml",
    "pyproject.toml above": lambda _world: "pyproject.toml",
    "the user's": lambda _world: "home/.config/uv/uv.toml",
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_a_file_with_settings_of_uv_changes_the_key_whenever_it_changes(
    world: World, place: Callable[[World], str]
) -> None:
    seen = [world.key()]
    for content in ("[tool.uv]\n", "[tool.uv]\nx = 1\n"):
        world.write(place(world), content)
        seen.append(world.key())
        assert world.key() == seen[-1]
    assert len(set(seen)) == 3


@pytest.mark.parametrize(
    ("variable", "value", "file"),
    [
        ("XDG_CONFIG_HOME", "conf", "conf/uv/uv.toml"),
        ("UV_CONFIG_FILE", "mine.toml", "mine.toml"),
        ("UV_CONSTRAINT", "pins.txt", "pins.txt"),
        ("UV_OVERRIDE", "pins.txt", "pins.txt"),
        ("UV_BUILD_CONSTRAINT", "pins.txt", "pins.txt"),
    ],
)
def test_a_file_that_a_variable_names_counts(world: World, variable: str, value: str, file: str) -> None:
    environ = {**world.environ, variable: str(world.root / value)}
    seen = {world.key(environ=environ)}
    for content in ("a", "bb"):
        world.write(file, content)
        seen.add(world.key(environ=environ))
    assert len(seen) == 3


def test_files_of_requirements_may_be_several_and_start_at_the_folder(world: World) -> None:
    environ = {**world.environ, "UV_CONSTRAINT": f"{world.root}/pins.txt more.txt"}
    before = world.key(environ=environ)
    world.write("home/work/more.txt", "rich<1\n")
    assert world.key(environ=environ) != before


def test_a_pyproject_that_says_nothing_to_uv_is_no_setting(world: World) -> None:
    before = world.key()
    world.write("home/work/pyproject.toml", "[project]\nname = 'x'\n")
    assert world.key() == before


def test_the_folder_alone_does_not_matter(world: World) -> None:
    elsewhere = world.root / "home" / "elsewhere"
    elsewhere.mkdir()
    assert world.key(directory=elsewhere) == world.key()
    world.write("home/work/uv.toml", "")
    assert world.key(directory=elsewhere) != world.key()


def test_without_a_home_there_are_no_settings_of_the_users(world: World) -> None:
    before = world.key(environ={})
    world.write("home/.config/uv/uv.toml", "")
    assert world.key(environ={}) == before


def test_a_variable_that_is_no_text_does_no_harm(world: World) -> None:
    environ = {**world.environ, "UV_INDEX": os.fsdecode(b"\xff")}
    assert world.key(environ=environ) != world.key()
