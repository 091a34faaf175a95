import os
import shutil
from pathlib import Path

import pytest

from pyexec.environments import local
from pyexec.environments.local import (
    fingerprint_of,
    local_path,
    metadata_fingerprint,
    project_name,
    source_root,
)
from tests.unit.environments.conftest import Write


@pytest.fixture
def project(write: Write, tmp_path: Path) -> Path:
    write("lib/pyproject.toml", "[project]\nname = 'My_Lib'\n")
    write("lib/src/lib/__init__.py", "V = 1\n")
    write("lib/README.md", "")
    return tmp_path / "lib"


# -- where a requirement points ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("requirement", "path"),
    [
        ("file:///srv/lib", "/srv/lib"),
        ("lib @ file:///srv/lib", "/srv/lib"),
        ("lib[x] @ file:///srv/lib", "/srv/lib"),
        ("file:///srv/lib[x,y]", "/srv/lib"),
        ("lib @ file:///srv/lib ; python_version > '3'", "/srv/lib"),
        ("file:///srv/lib[x] ; python_version > '3'", "/srv/lib"),
        ("lib @ file:///srv/lib.zip#subdirectory=py", "/srv/lib.zip"),
        ("file:///srv/my%20lib/100%25%5Bx%5D", "/srv/my lib/100%[x]"),
        ("file:///srv/%C3%BC%20;%3B", "/srv/ü ;;"),
        ("file:///srv/%FF", os.fsdecode(b"/srv/\xff")),
        ("file://localhost/srv/lib", "/srv/lib"),
        ("rich>=13", None),
        ("lib @ https://x.org/lib.whl", None),
        ("./lib", None),
        ("file://[x", None),
    ],
)
def test_a_file_url_leads_to_a_path(requirement: str, path: str | None) -> None:
    assert local_path(requirement) == (None if path is None else Path(path))


@pytest.mark.parametrize("name", ["my lib", "100%", "a#b", "a?b", "ü", "a[b]", "a;b", "a@b", "a%20b"])
def test_any_name_of_a_folder_comes_back_from_its_url(tmp_path: Path, name: str) -> None:
    url = (tmp_path / name).as_uri()
    for requirement in (url, f"{url}[x]", f"lib @ {url} ; python_version > '3'"):
        assert local_path(requirement) == tmp_path / name


# -- what has changed ----------------------------------------------------------------------------------------------


def test_a_project_that_nobody_touched_has_the_same_fingerprint(project: Path) -> None:
    assert fingerprint_of(project) == fingerprint_of(project)
    (project / "README.md").read_text()
    assert len(fingerprint_of(project)) == 64


@pytest.mark.case("B031")
def test_a_change_of_the_same_size_is_seen(project: Path, write: Write) -> None:
    before = fingerprint_of(project)
    file = write("lib/src/lib/__init__.py", "V = 2\n")
    os.utime(file, ns=(1, 1))
    assert fingerprint_of(project) != before


@pytest.mark.case("B031")
@pytest.mark.parametrize("path", ["lib/new.py", "lib/src/lib/data/x.bin", "lib/src/lib/build/x.py", "lib/src/dist/x"])
def test_a_new_file_is_seen(project: Path, write: Write, path: str) -> None:
    before = fingerprint_of(project)
    write(path, "")
    assert fingerprint_of(project) != before


def test_a_file_that_is_gone_or_renamed_is_seen(project: Path) -> None:
    seen = {fingerprint_of(project)}
    (project / "README.md").rename(project / "README.rst")
    seen.add(fingerprint_of(project))
    (project / "README.rst").unlink()
    assert fingerprint_of(project) not in seen
    assert len(seen) == 2


@pytest.mark.parametrize(
    "path",
    [
        ".git/HEAD",
        "src/lib/__pycache__/x.pyc",
        "build/lib/x.py",
        "dist/lib-1.whl",
        "src/lib.egg-info/PKG-INFO",
        ".venv/x",
        "venv/x",
        "node_modules/x/y.js",
        ".tox/x",
        ".nox/x",
        ".pytest_cache/x",
        ".mypy_cache/x",
        ".ruff_cache/x",
        ".hypothesis/x",
    ],
)
def test_what_builds_and_tools_leave_behind_is_no_change(project: Path, write: Write, path: str) -> None:
    before = fingerprint_of(project)
    write(f"lib/{path}", "")
    # A folder that appears is no change of its own; only files are.
    assert fingerprint_of(project) == before


def test_an_environment_is_no_part_of_a_project_whatever_it_is_called(project: Path, write: Write) -> None:
    before = fingerprint_of(project)
    write("lib/env/pyvenv.cfg", "")
    write("lib/env/lib/x.py", "")
    assert fingerprint_of(project) == before
    shutil.rmtree(project / "env")
    write("lib/env/x.py", "")
    assert fingerprint_of(project) != before


def test_links_that_lead_nowhere_or_in_circles_do_no_harm(project: Path) -> None:
    (project / "gone").symlink_to("nowhere")
    (project / "circle").symlink_to(project)
    (project / os.fsdecode(b"\xff")).touch()
    assert fingerprint_of(project) == fingerprint_of(project)


def test_a_huge_folder_counts_as_changed_since_nobody_looks_at_all_of_it(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "_MOST_FILES", 2)
    before = fingerprint_of(project)
    assert fingerprint_of(project) != before


def test_a_wheel_has_the_fingerprint_of_a_file(write: Write, tmp_path: Path) -> None:
    wheel = write("lib.whl", "one")
    before = fingerprint_of(wheel)
    write("lib.whl", "three")
    assert fingerprint_of(wheel) not in (before, fingerprint_of(tmp_path / "gone"))
    assert fingerprint_of(tmp_path / "gone") == fingerprint_of(tmp_path / "gone, too")


def test_what_a_project_needs_changes_with_its_metadata_and_not_with_its_modules(project: Path, write: Write) -> None:
    seen = [metadata_fingerprint(project)]
    write("lib/src/lib/__init__.py", "V = 22\n")
    assert metadata_fingerprint(project) == seen[0]
    for name in ("pyproject.toml", "setup.py", "setup.cfg"):
        write(f"lib/{name}", "# changed\n")
        seen.append(metadata_fingerprint(project))
    assert len(set(seen)) == 4


# -- what a project says of itself ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("[project]\nname = 'My_Lib.x'\n", "my-lib-x"),
        ("[project]\nname = 3\n", None),
        ("[tool.poetry]\nname = 'x'\n", None),
        ("project = 1\n", None),
        ("[project\n", None),
        (b"\xff", None),
    ],
)
def test_the_name_of_a_project_is_written_as_an_index_would(
    write: Write, tmp_path: Path, content: str | bytes, name: str | None
) -> None:
    assert project_name(tmp_path) is None
    write("pyproject.toml", content)
    assert project_name(tmp_path) == name


@pytest.mark.parametrize(
    ("content", "folders", "root"),
    [
        ("", [], "."),
        ("", ["src"], "src"),
        ("[project\n", ["src"], "src"),
        ("[tool.setuptools.package-dir]\n'' = 'lib'\n", ["lib", "src"], "lib"),
        ("[tool.setuptools.packages.find]\nwhere = ['code', 'more']\n", ["code", "src"], "code"),
        ("[tool.setuptools.packages.find]\nwhere = []\n", ["src"], "src"),
        ("[tool.setuptools]\npackages = ['x']\n", ["src"], "src"),
        ("[tool.maturin]\npython-source = 'python'\n", ["python", "src"], "python"),
        ("[tool.maturin]\npython-source = 'gone'\n", ["src"], "src"),
        ("[tool.maturin]\npython-source = 3\n", [], "."),
    ],
)
def test_modules_are_imported_from_where_the_build_finds_them(
    write: Write, tmp_path: Path, content: str, folders: list[str], root: str
) -> None:
    write("pyproject.toml", content)
    for folder in folders:
        (tmp_path / folder).mkdir()
    assert source_root(tmp_path) == tmp_path / root


def test_a_file_called_src_is_no_folder_of_modules(write: Write, tmp_path: Path) -> None:
    write("src", "")
    assert source_root(tmp_path) == tmp_path
