from collections.abc import Callable
from pathlib import Path

import pytest

from pyexec.environments.projects import Project, read_project

Write = Callable[[str, str | bytes], Path]
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
