"""The script library as a client sees it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.mcp import Mcp, as_json

SERVER_ENV: dict[str, str] = {}

HELLO = "import sys\nprint('hello', sys.argv[1:], __name__)\n"


def folder(mcp: Mcp) -> Path:
    return mcp.home / "scripts"


async def listed(mcp: Mcp, name: str) -> dict[str, Any]:
    rows = (await mcp.get("py_list_scripts"))["scripts"]
    (row,) = [row for row in rows if row["name"] == name]
    return row


@pytest.mark.needs_uv
async def test_a_script_is_saved_listed_viewed_run_and_deleted(mcp: Mcp) -> None:
    saved = await mcp.call(
        "save_script", script_name="hello", source=HELLO, requires_python=">=3.8", description="Says hello.\n\nTo all."
    )
    path = folder(mcp) / "hello.py"
    assert saved.data["script"] == {
        "name": "hello",
        "path": str(path),
        "docstring": "Says hello.",
        "requires_python": ">=3.8",
    }
    assert "Python >=3.8" in saved.text
    source = (
        '# /// script\n# requires-python = ">=3.8"\n# dependencies = []\n# ///\n\n'
        f'"""Says hello.\n\nTo all.\n"""\n\n{HELLO}'
    )
    assert path.read_text() == source
    assert (await mcp.get("py_view_script", script_name="hello"))["source"] == source
    assert "```python\n# /// script" in (await mcp.call("py_view_script", script_name="hello.py")).text
    assert (await listed(mcp, "hello")).get("last_status") is None

    ran = await mcp.get("run_saved_script", script_name="hello", args=["a", "b c"], wait_seconds=50)
    assert ran["stdout"] == "hello ['a', 'b c'] __main__\n"
    row = await listed(mcp, "hello")
    assert (row["last_status"], row["last_job_id"]) == ("completed", ran["job_id"])
    assert (await mcp.job(ran["job_id"]))["label"] == "hello"
    table = (await mcp.call("py_list_scripts")).text
    assert f"`{ran['job_id']}`" in table
    assert "Says hello." in table

    assert (await mcp.get("delete_script", script_name="hello")) == {"name": "hello", "path": str(path)}
    assert not path.exists()
    gone = await mcp.refused("run_saved_script", script_name="hello")
    assert gone["error_code"] == "not_found"
    assert "There is no script 'hello'; there are: " in gone["error"]
    assert (await mcp.refused("delete_script", script_name="hello"))["error_code"] == "not_found"


@pytest.mark.needs_uv
async def test_a_script_imports_its_neighbours_and_runs_where_it_is_told(mcp: Mcp) -> None:
    await mcp.get("save_script", script_name="shared_parts", source="NAME = 'shared'\n")
    code = (
        "import os, sys, shared_parts\nprint(shared_parts.NAME, os.getcwd(), sys.path[0], os.environ['KEY'], input())\n"
    )
    await mcp.get("save_script", script_name="user-of-parts", source=code)
    ran = await mcp.get(
        "run_saved_script",
        script_name="user-of-parts",
        directory=str(mcp.directory),
        env_vars={"KEY": "value"},
        stdin="typed",
        wait_seconds=50,
    )
    assert ran["stdout"] == f"shared {mcp.directory} {folder(mcp)} value typed\n"
    assert (folder(mcp) / ".gitignore").read_text() == "__pycache__/\n"


async def test_a_name_that_is_taken_is_replaced_only_when_asked(mcp: Mcp) -> None:
    await mcp.get("save_script", script_name="taken", source="a = 1\n")
    refusal = await mcp.refused("save_script", script_name="taken", source="a = 2\n")
    assert refusal["error_code"] == "invalid_argument"
    assert "overwrite=true" in refusal["error"]
    assert "a = 1" in (await mcp.get("py_view_script", script_name="taken"))["source"]
    await mcp.get("save_script", script_name="taken", source="a = 2\n", overwrite=True)
    assert "a = 2" in (await mcp.get("py_view_script", script_name="taken"))["source"]
    assert not list(folder(mcp).glob(".taken*")), "nothing half-written stays"


async def test_what_a_source_says_itself_is_kept_and_completed(mcp: Mcp) -> None:
    source = '# /// script\n# dependencies = ["rich", "httpx<1"]\n# ///\n"""Has a docstring."""\nimport rich\n'
    saved = await mcp.get("save_script", script_name="merged", source=source, dependencies=["httpx>=0.20", "six"])
    assert saved["script"]["dependencies"] == ["rich", "httpx>=0.20", "six"]
    assert saved["script"]["docstring"] == "Has a docstring."
    told = await mcp.get("save_script", script_name="merged", source=source, description="Has another.", overwrite=True)
    assert told["script"]["docstring"] == "Has another."
    assert told["script"]["dependencies"] == ["rich", "httpx<1"]


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../x", "a/b", "/etc/passwd", "a\\b", "a.b", ".hidden", "-rf", "a b", "x" * 65, "é", "a\0b", "a\n"],
)
async def test_a_name_is_never_a_path(mcp: Mcp, name: str) -> None:
    for tool, more in (
        ("save_script", {"source": "a = 1\n"}),
        ("run_saved_script", {}),
        ("py_view_script", {}),
        ("delete_script", {}),
    ):
        refusal = await mcp.refused(tool, script_name=name, **more)
        assert refusal["error_code"] == "invalid_argument", tool
        assert "letters, digits, '_' and '-'" in refusal["error"]
    assert (await mcp.refused("py_view_script", script_name=name, autosaved=True))["error_code"] == "not_found"


async def test_what_cannot_be_saved_is_refused_and_leaves_nothing(mcp: Mcp) -> None:
    for wrong, expected in (
        ({"script_name": "random"}, "a module of Python's own"),
        ({"source": "a\0b"}, "NUL"),
        ({"source": "#" * (1024 * 1024 + 1)}, "at most 1048576"),
        ({"dependencies": ["./here"]}, "relative path"),
        ({"dependencies": ["x @ https://me:secret@host/x.whl"]}, "credentials"),
        ({"requires_python": "three"}, "version range"),
        ({"description": "x" * 5000}, "description is 5000"),
        ({"source": "def (", "description": "x"}, "description cannot be put"),
        ({"source": "# /// script\n# x\n"}, "not closed"),
    ):
        given = {"script_name": "wrong", "source": "a = 1\n", **wrong}
        refusal = await mcp.refused("save_script", **given)
        assert refusal["error_code"] == "invalid_argument"
        assert expected in refusal["error"]
        assert "secret" not in refusal["error"]
        assert not (folder(mcp) / f"{given['script_name']}.py").exists()


async def test_files_that_a_person_broke_are_listed_with_their_fault(mcp: Mcp, tmp_path: Path) -> None:
    await mcp.get("save_script", script_name="whole", source="'''Works.'''\n")
    secret = tmp_path / "secret.py"
    secret.write_text("TOKEN = 'swordfish'\n")
    broken: dict[str, str] = {
        "syntax": "Line 1: ",
        "header": "is not closed",
        "bytes": "(read as Python ",
        "link": "It is a link",
        "folder": "no regular file",
        "pipe": "no regular file",
        "large": "larger than 1 MiB",
        "with space": "Its name",
        "json": "Python's own module",
    }
    (folder(mcp) / "syntax.py").write_text("def (\n")
    (folder(mcp) / "header.py").write_text("'''Has one.'''\n# /// script\n# dependencies = []\n")
    (folder(mcp) / "bytes.py").write_bytes(b"\xff\xfe\x00")
    (folder(mcp) / "link.py").symlink_to(secret)
    (folder(mcp) / "folder.py").mkdir()
    os.mkfifo(folder(mcp) / "pipe.py")
    (folder(mcp) / "large.py").write_bytes(b"#" * (1024 * 1024 + 1))
    (folder(mcp) / "with space.py").write_text("a = 1\n")
    (folder(mcp) / "json.py").write_text("a = 1\n")
    rows = {row["name"]: row for row in (await mcp.get("py_list_scripts"))["scripts"]}
    assert {name: rows[name].get("fault", "") for name in broken} == {
        name: rows[name].get("fault", "") for name, fault in broken.items() if fault in rows[name].get("fault", "")
    }
    assert rows["header"]["docstring"] == "Has one."
    assert "fault" not in rows["whole"]
    for name in ("link", "folder", "pipe"):
        for tool in ("run_saved_script", "py_view_script"):
            refusal = await mcp.refused(tool, script_name=name)
            assert refusal["error_code"] == "invalid_argument"
            assert "swordfish" not in refusal["error"]
    await mcp.get("delete_script", script_name="link")
    assert secret.exists(), "the link goes, not what it leads to"


async def test_overwriting_a_link_leaves_what_it_led_to(mcp: Mcp, tmp_path: Path) -> None:
    await mcp.get("save_script", script_name="first", source="a = 1\n")
    target = tmp_path / "target.py"
    target.write_text("untouched")
    (folder(mcp) / "linked.py").symlink_to(target)
    assert "overwrite" in (await mcp.refused("save_script", script_name="linked", source="a = 2\n"))["error"]
    await mcp.get("save_script", script_name="linked", source="a = 2\n", overwrite=True)
    assert target.read_text() == "untouched"
    assert not (folder(mcp) / "linked.py").is_symlink()


async def test_inline_code_is_kept_with_its_arguments_and_without_secrets(mcp: Mcp) -> None:
    source = "'''Adds up.'''\nprint(1 + 1)\n"
    ran = await mcp.run(
        source,
        args=["--token", "https://me:swordfish@host/x"],
        env_vars={"KEY": "swordfish"},
        stdin="swordfish",
        job_label="sums",
    )
    again = await mcp.run(source)
    rows = (await mcp.get("py_list_scripts", include_autosaved=True))["autosaved"]
    (row,) = [row for row in rows if row.get("docstring") == "Adds up."]
    assert (row["runs"], row["last_status"], row["last_job_id"]) == (2, "completed", again["job_id"])
    shown = await mcp.call("py_view_script", script_name=row["name"], autosaved=True)
    assert shown.data["source"] == source
    latest, first = shown.data["sidecar"]["runs"]
    assert (latest["job_id"], first["job_id"]) == (again["job_id"], ran["job_id"])
    assert first["arguments"] == {
        "directory": str(mcp.directory),
        "args": ["--token", "https://***@host/x"],
        "use_uv": False,
        "env_vars": {"KEY": "***"},
        "stdin": "***",
        "job_label": "sums",
    }
    assert "swordfish" not in shown.text
    kept = mcp.home / "autosaved_scripts"
    assert (kept / ".gitignore").read_text() == "*\n"
    assert (kept / f"{row['name']}.py").read_text() == source
    assert json.loads((kept / f"{row['name']}.json").read_text()) == shown.data["sidecar"]
    assert "swordfish" not in (kept / f"{row['name']}.json").read_text()
    assert f"`{row['name']}`" in (await mcp.call("py_list_scripts", include_autosaved=True)).text


async def test_a_file_that_is_run_is_not_kept(mcp: Mcp) -> None:
    (mcp.directory / "mine.py").write_text("'''A file of mine.'''\n")
    await mcp.get("run_script_in_dir", directory=str(mcp.directory), script_path="mine.py", use_uv=False)
    rows = (await mcp.get("py_list_scripts", include_autosaved=True))["autosaved"]
    assert not [row for row in rows if row.get("docstring") == "A file of mine."]


async def test_the_text_is_markdown_or_the_structured_content_as_json(mcp: Mcp) -> None:
    for tool, arguments in (
        ("save_script", {"script_name": "plain", "source": "a = 1\n", "overwrite": True}),
        ("py_list_scripts", {"include_autosaved": True}),
        ("py_view_script", {"script_name": "plain"}),
        ("delete_script", {"script_name": "plain"}),
        ("delete_script", {"script_name": "plain"}),
    ):
        answer = await mcp.call(tool, **arguments, markdown_output=False)
        assert as_json(answer) == answer.data, tool


async def test_a_folder_that_is_a_link_is_not_followed(mcp: Mcp, tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_text("TOKEN = 'swordfish'\n")
    await mcp.get("save_script", script_name="moved", source="a = 1\n")
    aside = folder(mcp).rename(mcp.home / "aside")
    folder(mcp).symlink_to(tmp_path)
    try:
        for tool, arguments in (
            ("py_list_scripts", {}),
            ("py_view_script", {"script_name": "outside"}),
            ("run_saved_script", {"script_name": "outside"}),
            ("delete_script", {"script_name": "outside"}),
            ("save_script", {"script_name": "new", "source": "a = 1\n"}),
        ):
            refusal = await mcp.refused(tool, **arguments)
            assert refusal["error_code"] == "state_unusable", tool
            assert "swordfish" not in refusal["error"]
        assert [path.name for path in tmp_path.iterdir()] == ["outside.py"]
    finally:
        folder(mcp).unlink()
        aside.rename(folder(mcp))
