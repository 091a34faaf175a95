import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from pyexec.domain.errors import InvalidArgumentError
from pyexec.executions.programs import Program, read_program
from pyexec.sandbox.programs import NOTEBOOK
from tests.helpers.notebooks import write_notebook

MOST = 1000
HEADER = "# /// script\n# dependencies = ['six']\n# ///\n"


def refusal(path: Path) -> InvalidArgumentError:
    with pytest.raises(InvalidArgumentError) as caught:
        read_program(path, MOST)
    assert str(path) in caught.value.message
    return caught.value


def archive(path: Path, **files: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, text in files.items():
            opened.writestr(f"{name}.py", text)
    return path


def notebook(path: Path, **changes: Any) -> Path:
    return write_notebook(path / "x.ipynb", "1", **changes)


def test_a_script_is_read_whatever_it_is_called(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_bytes(b"\xff\0")
    assert read_program(script, MOST) == Program(header_source=b"\xff\0")


def test_the_header_of_a_package_is_that_of_its_main(tmp_path: Path) -> None:
    (tmp_path / "__main__.py").write_text(HEADER)
    assert read_program(tmp_path, MOST) == Program(header_source=HEADER.encode())


def test_the_header_of_an_archive_is_that_of_its_main(tmp_path: Path) -> None:
    for name in ("a.zip", "a.PYZ", "a.pyzw"):
        path = archive(tmp_path / name, __main__=HEADER, other="x")
        assert read_program(path, MOST) == Program(header_source=HEADER.encode())


def test_an_archive_that_unpacks_to_very_much_is_not_unpacked_whole(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.zip", __main__="#" * 1_000_000)
    assert len(read_program(path, MOST).header_source) == MOST


def test_what_is_compiled_only_runs_without_a_header(tmp_path: Path) -> None:
    (tmp_path / "__main__.pyc").touch()
    assert read_program(tmp_path, MOST) == Program()
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as opened:
        opened.writestr("__main__.pyc", b"")
    assert read_program(tmp_path / "a.zip", MOST) == Program()


def test_where_there_is_nothing_to_start_it_is_said_what_is_missing(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    assert "is a folder without a __main__.py" in refusal(folder).message
    (folder / "__init__.py").touch()
    assert "module='folder.…'" in refusal(folder).sentence()
    assert "without a __main__.py at its top" in refusal(archive(tmp_path / "a.zip", other="x")).message


@pytest.mark.parametrize("content", [b"", b"print(1)", b"PK\x05\x06" + b"\0" * 4])
def test_an_archive_that_is_none_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.pyz"
    path.write_bytes(content)
    assert "not an archive that Python can run" in refusal(path).message


def test_an_archive_that_is_damaged_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.zip", __main__=os.urandom(400).hex())
    content = bytearray(path.read_bytes())
    content[60:200] = b"\xff" * 140
    path.write_bytes(content)
    assert "not an archive that Python can run" in refusal(path).message


def test_a_notebook_is_run_by_a_program_of_ours_and_leaves_one_with_outputs(tmp_path: Path) -> None:
    path = write_notebook(tmp_path / "x.ipynb", "\n", HEADER + "import six\n", "2")
    program = read_program(path, MOST)
    assert program.header_source.decode() == HEADER + "import six\n"
    assert program.harness is not None
    assert (program.harness.options, program.tools) == ((str(NOTEBOOK),), ("nbclient", "ipykernel"))
    assert program.result == "x.ipynb"


@pytest.mark.parametrize("name", [".hidden.ipynb", "two\nlines.ipynb", f"{'x' * 220}.ipynb"])
def test_a_notebook_whose_name_is_no_name_for_an_artifact_is_kept_under_another(tmp_path: Path, name: str) -> None:
    assert read_program(write_notebook(tmp_path / name), MOST).result == "notebook.ipynb"


@pytest.mark.parametrize(
    ("metadata", "runs"),
    [
        ({}, True),
        ({"language_info": {"name": "python"}}, True),
        ({"kernelspec": {"name": "conda-env-py", "language": "python"}}, True),
        ({"kernelspec": {"name": "ir", "language": "R"}}, False),
        ({"language_info": {"name": "julia"}, "kernelspec": {"language": "python"}}, False),
    ],
)
def test_only_notebooks_for_python_run(tmp_path: Path, metadata: dict[str, Any], runs: bool) -> None:
    path = notebook(tmp_path, metadata=metadata)
    if runs:
        assert read_program(path, MOST).tools
    else:
        assert "only notebooks for Python" in refusal(path).message


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"nbformat": 3}, "is a notebook of format 3; only format 4"),
        ({"nbformat": 5}, "is a notebook of format 5; only format 4"),
        ({"nbformat": "4"}, "is not a notebook: no nbformat"),
        ({"cells": None}, "its cells cannot be read"),
        ({"cells": [{"cell_type": "code"}]}, "its cells cannot be read"),
        ({"cells": [{"cell_type": "code", "source": [1]}]}, "its cells cannot be read"),
        ({"cells": ["x"]}, "its cells cannot be read"),
    ],
)
def test_a_notebook_that_cannot_be_run_is_refused_with_the_reason(
    tmp_path: Path, changes: dict[str, Any], why: str
) -> None:
    assert why in refusal(notebook(tmp_path, **changes)).message


@pytest.mark.parametrize("text", ["", "{", "\x80", "[" * 100_000, json.dumps([1]), '"x"', "NaN"])
def test_a_file_that_is_no_notebook_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.ipynb"
    path.write_bytes(text.encode("latin-1"))
    assert "is not a notebook" in refusal(path).message
