from pathlib import Path

import pytest

from pyexec.environments.projects import Project, find_virtual_environment, read_project
from tests.unit.environments.conftest import Write

PROJECT = "[project]\nname = 'x'\nversion = '1'\ndependencies = ['rich']\nrequires-python = '>=3.12'\n"


def test_a_project_gives_its_dependencies_range_and_settings(write: Write, tmp_path: Path) -> None:
    file = write("pyproject.toml", PROJECT + "[tool.uv]\npackage = false\n")
    assert read_project(tmp_path, {}) == Project(
        file=file, dependencies=("rich",), requires_python=">=3.12", uv_settings={"package": False}
    )


def test_a_folder_without_a_project_gives_none(tmp_path: Path) -> None:
    assert read_project(tmp_path, {"HOME": str(tmp_path)}) is None


@pytest.mark.case("B030")
def test_a_file_without_a_project_table_is_no_project(write: Write, tmp_path: Path) -> None:
    write("pyproject.toml", "[tool.ruff]\nline-length = 100\n")
    assert read_project(tmp_path, {}) is None


@pytest.mark.parametrize("boundary", ["git", "git-file", "home"])
def test_the_search_goes_up_to_the_repository_or_the_home_folder_and_no_further(
    write: Write, tmp_path: Path, boundary: str
) -> None:
    write("pyproject.toml", PROJECT)
    folder = tmp_path / "top" / "a" / "b"
    folder.mkdir(parents=True)
    environ = {"HOME": str(tmp_path / "top")} if boundary == "home" else {}
    if boundary == "git":
        (tmp_path / "top" / ".git").mkdir()
    elif boundary == "git-file":
        write("top/.git", "gitdir: elsewhere")
    assert read_project(folder, environ) is None
    inside = write("top/pyproject.toml", PROJECT)
    write("top/a/pyproject.toml", "[tool.ruff]\n")
    found = read_project(folder, environ)
    assert found is not None
    assert found.file == inside


def test_where_there_is_no_boundary_only_the_folder_itself_counts(write: Write, tmp_path: Path) -> None:
    write("pyproject.toml", PROJECT)
    (tmp_path / "sub").mkdir()
    assert read_project(tmp_path / "sub", {"HOME": "/somewhere/else"}) is None
    assert read_project(tmp_path, {"HOME": "/somewhere/else"}) is not None


@pytest.mark.parametrize("content", ["[project\n", b"\xff", "a = 1\na = 2\n"], ids=["toml", "bytes", "twice"])
def test_a_damaged_file_is_a_note_and_no_error(write: Write, tmp_path: Path, content: str | bytes) -> None:
    file = write("pyproject.toml", content)
    found = read_project(tmp_path, {})
    assert found is not None
    assert found.dependencies == ()
    assert found.notes[0].startswith(f"{file} cannot be read (")


def test_dependencies_only_a_build_backend_knows_are_a_note(write: Write, tmp_path: Path) -> None:
    file = write("pyproject.toml", "[project]\nname = 'x'\ndynamic = ['dependencies', 'version']\n")
    found = read_project(tmp_path, {})
    assert found is not None
    assert found.notes == (f"The dependencies of {file} are dynamic and were not installed.",)


def test_values_of_the_wrong_type_are_passed_over(write: Write, tmp_path: Path) -> None:
    file = write("pyproject.toml", "tool = 1\n[project]\ndependencies = 'x'\nrequires-python = 3\ndynamic = 1\n")
    assert read_project(tmp_path, {}) == Project(file=file)


@pytest.mark.parametrize(
    ("table", "is_package"),
    [
        ("", False),
        ("[build-system]\nrequires = ['hatchling']\n", True),
        ("[tool.uv]\npackage = true\n", True),
        ("[tool.uv]\npackage = false\n", False),
    ],
)
def test_a_project_that_is_built_is_a_package(write: Write, tmp_path: Path, table: str, *, is_package: bool) -> None:
    write("pyproject.toml", PROJECT + table)
    found = read_project(tmp_path, {})
    assert found is not None
    assert (found.is_package, found.folder) == (is_package, tmp_path)


# -- locks ---------------------------------------------------------------------------------------------------------


def lock_of(directory: Path) -> Path | None:
    found = read_project(directory, {})
    assert found is not None
    return found.lock


def test_a_project_has_the_lock_beside_it(write: Write, tmp_path: Path) -> None:
    write("pyproject.toml", PROJECT)
    assert lock_of(tmp_path) is None
    lock = write("uv.lock", "")
    assert lock_of(tmp_path) == lock


def test_dynamic_dependencies_are_no_matter_where_there_is_a_lock(write: Write, tmp_path: Path) -> None:
    write("pyproject.toml", "[project]\nname = 'x'\ndynamic = ['dependencies']\n")
    write("uv.lock", "")
    found = read_project(tmp_path, {})
    assert found is not None
    assert found.notes == ()


@pytest.mark.parametrize(
    ("workspace", "member"),
    [
        ("members = ['packages/*']", True),
        ("members = ['other', './packages/o*']", True),
        ("members = ['packages/one']", True),
        ("members = ['packages/*']\nexclude = ['packages/one']", False),
        ("members = ['packages/*']\nexclude = ['packages/t*']", True),
        ("members = ['one']", False),
        ("members = ['*']", False),
        ("members = 'packages/*'", False),
        ("", False),
    ],
)
def test_the_lock_of_a_workspace_is_that_of_its_members(
    write: Write, tmp_path: Path, workspace: str, *, member: bool
) -> None:
    write("a[b]/.git", "")
    write("a[b]/pyproject.toml", f"[tool.uv.workspace]\n{workspace}\n")
    lock = write("a[b]/uv.lock", "")
    write("a[b]/packages/one/pyproject.toml", PROJECT)
    assert lock_of(tmp_path / "a[b]" / "packages" / "one") == (lock if member else None)


@pytest.mark.parametrize("content", [None, "[project\n", "tool = 1\n"])
def test_a_lock_of_something_else_above_is_not_taken(write: Write, tmp_path: Path, content: str | None) -> None:
    write(".git", "")
    write("uv.lock", "")
    if content is not None:
        write("pyproject.toml", content)
    write("inner/pyproject.toml", PROJECT)
    assert lock_of(tmp_path / "inner") is None


def test_a_lock_below_the_project_is_not_the_projects(write: Write, tmp_path: Path) -> None:
    write(".git", "")
    write("pyproject.toml", PROJECT)
    write("inner/uv.lock", "")
    assert lock_of(tmp_path / "inner") is None
    lock = write("uv.lock", "")
    assert lock_of(tmp_path / "inner") == lock


def test_a_lock_above_the_repository_is_not_seen(write: Write, tmp_path: Path) -> None:
    write("pyproject.toml", "[tool.uv.workspace]\nmembers = ['*']\n")
    write("uv.lock", "")
    write("inner/.git", "")
    write("inner/pyproject.toml", PROJECT)
    assert lock_of(tmp_path / "inner") is None


# -- environments of a project's own -------------------------------------------------------------------------------


def test_the_nearest_environment_is_found_up_to_the_repository(write: Write, tmp_path: Path) -> None:
    folder = tmp_path / "top" / "a" / "b"
    folder.mkdir(parents=True)
    write(".venv/bin/python", "")
    write("top/.git", "")
    assert find_virtual_environment(folder, {}) is None
    outer = write("top/.venv/bin/python", "")
    assert find_virtual_environment(folder, {}) == outer
    inner = write("top/a/.venv/bin/python", "")
    assert find_virtual_environment(folder, {}) == inner


def test_without_a_boundary_only_an_environment_in_the_folder_itself_counts(write: Write, tmp_path: Path) -> None:
    python = write(".venv/bin/python", "")
    (tmp_path / "sub").mkdir()
    assert find_virtual_environment(tmp_path, {}) == python
    assert find_virtual_environment(tmp_path / "sub", {}) is None
    assert find_virtual_environment(tmp_path / "sub", {"HOME": str(tmp_path)}) == python


def test_an_environment_whose_interpreter_is_gone_is_none(tmp_path: Path) -> None:
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").symlink_to(tmp_path / "gone")
    assert find_virtual_environment(tmp_path, {}) is None
