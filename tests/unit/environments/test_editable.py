import csv
import importlib.metadata
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from pyexec.environments.editable import make_editable, say_where_from
from pyexec.environments.tool import ToolError

FILES = {
    "my_lib/__init__.py": "WHERE = 'wheel'\n",
    "my_lib/deep/er/module.py": "",
    "my_lib/deep/data.txt": "data",
    "single.py": "",
}
INFO = "my_lib-1.0.dist-info"


class Site:
    """A folder that a wheel was installed into, and the project it was built from."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "env" / "lib" / "python3.11" / "site-packages"
        self.folder.mkdir(parents=True)
        self.wheel = root / "my_lib-1.0-py3-none-any.whl"
        self.project = root / "my lib"
        (self.project / "src" / "my_lib").mkdir(parents=True)
        (self.project / "src" / "my_lib" / "__init__.py").write_text("WHERE = 'source'\n")
        (self.project / "src" / "single.py").touch()

    def install(
        self,
        name: str = "My.Lib",
        info: str = INFO,
        files: Mapping[str, str] = FILES,
        *,
        pure: bool = True,
        compiled: bool = False,
    ) -> None:
        (self.root / "env" / "bin").mkdir(exist_ok=True)
        (self.root / "env" / "bin" / "my-lib").touch()
        metadata = {
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
            f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: {str(pure).lower()}\n",
            f"{info}/direct_url.json": "{}",
        }
        for path, content in {**files, **metadata}.items():
            file = self.folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
            if compiled and path.endswith(".py"):
                cache = file.parent / "__pycache__"
                cache.mkdir(exist_ok=True)
                (cache / f"{file.stem}.cpython-311.pyc").touch()
        with (self.folder / info / "RECORD").open("w", newline="") as file:
            rows = [[path, "sha256=x", "1"] for path in (*files, *metadata)]
            csv.writer(file).writerows([*rows, ["../../../bin/my-lib", "", ""], [f"{info}/RECORD", "", ""]])

    def make_editable(self) -> None:
        make_editable(self.folder, self.wheel, self.project)

    def files(self) -> list[str]:
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file())

    def record(self, info: str = INFO) -> list[list[str]]:
        with (self.folder / info / "RECORD").open(newline="") as file:
            return list(csv.reader(file))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


KEPT = sorted(
    [f"{INFO}/{name}" for name in ("METADATA", "RECORD", "WHEEL", "direct_url.json")] + ["__editable__.my_lib.pth"]
)


@pytest.mark.parametrize("compiled", [False, True])
def test_modules_are_gone_with_their_folders_and_metadata_and_commands_stay(site: Site, *, compiled: bool) -> None:
    site.install(compiled=compiled)
    site.make_editable()
    assert site.files() == KEPT
    assert not (site.folder / "my_lib").exists()
    assert (site.root / "env" / "bin" / "my-lib").exists()
    assert [row[0] for row in site.record()] == [
        f"{INFO}/METADATA",
        f"{INFO}/WHEEL",
        f"{INFO}/direct_url.json",
        "../../../bin/my-lib",
        f"{INFO}/RECORD",
        "__editable__.my_lib.pth",
    ]


def test_modules_are_imported_from_the_source(site: Site) -> None:
    site.install()
    site.make_editable()
    code = "import site, sys; site.addsitedir(sys.argv[1]); import my_lib; print(my_lib.WHERE, my_lib.__file__)"
    done = subprocess.run(
        [sys.executable, "-I", "-B", "-c", code, str(site.folder)], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"source {site.project}/src/my_lib/__init__.py\n"


def test_what_belongs_to_others_stays(site: Site) -> None:
    others = {"other/__init__.py": "", "my_lib/plugin.py": "", "my_lib/__pycache__/plugin.cpython-311.pyc": ""}
    site.install("other", "other-2.dist-info", dict.fromkeys(others, ""))
    site.install(compiled=True)
    site.make_editable()
    assert set(site.files()) == {
        *KEPT,
        *others,
        *(f"other-2.dist-info/{name}" for name in ("METADATA", "RECORD", "WHEEL", "direct_url.json")),
    }
    assert len(site.record("other-2.dist-info")) == 8


def test_a_record_that_leads_out_of_the_folder_removes_nothing_there(site: Site) -> None:
    site.install()
    outside = site.root / "precious"
    outside.touch()
    with (site.folder / INFO / "RECORD").open("a", newline="") as file:
        csv.writer(file).writerows([[str(outside), "", ""], ["my_lib/../../../../../precious", "", ""]])
    site.make_editable()
    assert outside.exists()


def test_a_package_with_compiled_parts_is_refused_in_a_sentence_and_stays_as_it_is(site: Site) -> None:
    site.install(pure=False)
    before = site.files()
    with pytest.raises(ToolError) as caught:
        site.make_editable()
    assert caught.value.failure.kind == "build"
    assert caught.value.failure.message == (
        "my-lib has compiled parts and cannot be used from its source; give its path without -e."
    )
    assert site.files() == before


def test_a_wheel_that_was_not_installed_is_an_error(site: Site) -> None:
    site.install("other", "other-2.dist-info")
    with pytest.raises(FileNotFoundError, match="my-lib was not installed"):
        site.make_editable()


@pytest.mark.parametrize("editable", [False, True])
def test_a_package_says_which_project_it_was_built_from(site: Site, *, editable: bool) -> None:
    site.install()
    say_where_from(site.folder, site.wheel, site.project, editable=editable)
    (found,) = importlib.metadata.distributions(path=[os.fspath(site.folder)])
    assert json.loads(found.read_text("direct_url.json") or "") == {
        "url": f"file://{site.root}/my%20lib",
        "dir_info": {"editable": True} if editable else {},
    }


def test_modules_are_looked_for_where_builds_keep_them_and_must_be_somewhere(site: Site) -> None:
    site.install(files={"my_lib/__init__.py": ""})
    (site.project / "src").rename(site.project / "lib")
    (site.project / "src").mkdir()
    site.make_editable()
    (pth,) = site.folder.glob("__editable__*.pth")
    assert pth.read_text() == f"{site.project}/lib\n"
    site.install(files={"elsewhere/__init__.py": ""})
    with pytest.raises(ToolError, match=r"The modules of my-lib \(elsewhere\) are in no folder of .* together"):
        site.make_editable()
    assert (site.folder / "elsewhere" / "__init__.py").exists()
