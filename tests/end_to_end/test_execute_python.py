"""`execute_python`: a cell in a fresh interpreter, as a client sees it."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from mcp_types import ImageContent, ResourceLink, TextContent, TextResourceContents

from tests.helpers.mcp import Mcp
from tests.helpers.waiting import with_enough_time

SERVER_ENV = {"PYEXEC_TOOLSETS": "default,execute", "PYEXEC_WALL": "host"}

pytestmark = [pytest.mark.needs_uv, pytest.mark.usefixtures("kept_environments")]

PATIENT = {"wait_seconds": 150}
_BASE64 = re.compile(r"[A-Za-z0-9+/=]{200,}")


async def execute(mcp: Mcp, code: str, /, **arguments: Any) -> tuple[dict[str, Any], str, list[Any]]:
    """Run a cell; return the structured result, the text, and what the answer carries besides."""
    given = {"code": code, **PATIENT, **arguments}
    answer = await mcp.client.call_tool("execute_python", given, raise_on_error=False)
    text, *more = answer.content
    assert isinstance(text, TextContent)
    assert answer.structured_content is not None, text.text
    assert answer.is_error == ("error" in answer.structured_content)
    return answer.structured_content, text.text, more


async def test_a_value_and_output_come_in_one_answer(own_server: Mcp) -> None:
    data, text, more = await execute(own_server, "import sys\nprint('o'); print('e', file=sys.stderr)\n6 * 7")
    assert (data["status"], data["success"], data["exit_code"]) == ("completed", True, 0)
    assert (data["stdout"], data["stderr"], data["result"]) == ("o\n", "e\n", "42")
    assert "42" in text
    assert more == []
    assert data["peak_memory_mb"] > 0


async def test_a_cell_without_a_word_says_so(own_server: Mcp) -> None:
    data, text, _more = await execute(own_server, "x = 1")
    assert "result" not in data
    assert "printed nothing" in text


async def test_an_exception_is_told_once_with_the_users_lines(own_server: Mcp) -> None:
    data, text, _more = await execute(own_server, "print('before')\n\nint('x')")
    assert (data["status"], data["success"], data["exit_code"]) == ("failed", False, 1)
    assert (data["stdout"], data["stderr"]) == ("before\n", "")
    exception = data["exception"]
    assert (exception["type"], exception["line"]) == ("ValueError", 3)
    assert "int('x')" in exception["traceback"]
    assert text.count("Traceback") == 1
    output = await own_server.output(data["job_id"])
    assert "ValueError: invalid literal" in output["stderr"]
    assert output["error"].startswith("ValueError")


@pytest.mark.case("B059")
async def test_an_exit_code_is_the_jobs(own_server: Mcp) -> None:
    data, _text, _more = await execute(own_server, "import sys; sys.exit(3)")
    assert (data["status"], data["exit_code"], data["stderr"]) == ("failed", 3, "")


@pytest.mark.case("B060")
async def test_an_interpreter_that_ends_in_the_middle_is_told_as_that(own_server: Mcp) -> None:
    data, _text, _more = await execute(own_server, "print('before', flush=True)\nimport os; os._exit(9)")
    assert (data["status"], data["exit_code"], data["stdout"]) == ("failed", 9, "before\n")
    assert "result" not in data
    crashed, _text, _more = await execute(own_server, "print('last words')\nimport ctypes; ctypes.string_at(0)")
    assert (crashed["signal"], crashed["stdout"]) == ("SIGSEGV", "last words\n")
    assert "SIGSEGV" in crashed["error"]


async def test_stdin_is_read_and_missed_with_a_sentence(own_server: Mcp) -> None:
    data, _text, _more = await execute(own_server, "input()", stdin="Al\n")
    assert data["result"] == "'Al'"
    missed, _text, _more = await execute(own_server, "input()")
    assert "no stdin was given" in missed["exception"]["message"]


async def test_a_missing_module_is_advised_on(own_server: Mcp) -> None:
    data, _text, _more = await execute(own_server, "import cv2")
    assert "opencv" in data["advice"]


async def test_a_timeout_interrupts_and_keeps_what_was_there(own_server: Mcp) -> None:
    code = "print('x')\ndisplay('shown')\nimport time; time.sleep(300)"
    (data, _text, _more), _seconds = await with_enough_time(
        lambda seconds: execute(own_server, code, timeout_seconds=seconds),
        lambda answer: answer[0].get("displays"),
        times=3,
    )
    assert (data["status"], data["stopped_by"]) == ("timed_out", "SIGINT")
    assert data["stdout"] == "x\n"
    assert len(data["displays"]) == 1


@pytest.mark.case("B110")
async def test_pictures_are_image_content_once_and_what_is_long_is_a_link(own_server: Mcp) -> None:
    code = (
        "from PIL import Image\nfrom IPython.display import HTML\nprint('first')\n"
        "display(Image.effect_noise((1200, 900), 50))\nprint('then')\nHTML('<p>long</p>' * 5000)"
    )
    data, text, more = await execute(own_server, code, dependencies=["pillow"])
    assert data["success"], text
    image, link = more
    assert isinstance(image, ImageContent)
    encoded = base64.b64decode(image.data)
    assert len(encoded) <= 300_000
    assert encoded.startswith({"image/png": b"\x89PNG", "image/jpeg": b"\xff\xd8\xff"}[image.mime_type])
    picture, markup = data["displays"]
    assert (picture["kind"], picture["stdout_at"]) == ("picture", len("first\n"))
    assert max(picture["width"], picture["height"]) <= 1000
    assert isinstance(link, ResourceLink)
    assert (markup["kind"], markup["uri"], "text" in markup) == ("html", str(link.uri), False)
    assert markup["stdout_at"] == len("first\nthen\n")
    assert not _BASE64.search(text + json.dumps(data))
    (content,) = await own_server.client.read_resource(str(link.uri))
    assert isinstance(content, TextResourceContents)
    assert content.text == "<p>long</p>" * 5000


async def test_json_has_no_nan(own_server: Mcp) -> None:
    data, text, _more = await execute(own_server, "{'mean': float('nan'), 'max': float('inf')}", markdown_output=False)
    assert data["result"] == "{'mean': nan, 'max': inf}"
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} in the answer"))


async def test_it_is_a_job_like_any_other(own_server: Mcp) -> None:
    code = "import time\nprint('up', flush=True)\nwhile True: time.sleep(1)"
    data, _text, _more = await execute(own_server, code, wait_seconds=0, timeout_seconds=0, job_label="cell")
    job_id = data["job_id"]
    assert data["success"] is False
    await own_server.printed(job_id, "up")
    assert (await own_server.job(job_id))["kind"] == "cell"
    ended = await own_server.get("py_cancel_job", job_id=job_id)
    assert ended["status"] == "cancelled"
    assert "KeyboardInterrupt" in (await own_server.output(job_id))["stderr"]


async def test_what_was_shown_is_read_later_from_a_job_that_was_not_waited_for(own_server: Mcp) -> None:
    data, _text, _more = await execute(own_server, "display('x' * 30_000)\n1 + 1", wait_seconds=0)
    output = await own_server.finished(data["job_id"])
    assert output["result"] == "2"


async def test_the_working_directory_is_the_callers(own_server: Mcp, tmp_path: Path) -> None:
    (tmp_path / "neighbour.py").write_text("answer = 42")
    data, _text, _more = await execute(own_server, "import neighbour; neighbour.answer", directory=str(tmp_path))
    assert data["result"] == "42"


async def test_files_that_the_code_makes_or_changes_in_its_directory_are_told(own_server: Mcp, tmp_path: Path) -> None:
    (tmp_path / "changed.txt").write_text("a")
    (tmp_path / "left.txt").write_text("a")
    code = "import os; os.mkdir('sub'); open('sub/new.csv', 'w').write('a,b'); open('changed.txt', 'w').write('bc')"
    data, text, more = await execute(own_server, code + "; open('.hidden', 'w').close()", directory=str(tmp_path))
    assert data["files"] == [
        {"name": "changed.txt", "size": 2, "media_type": "text/plain", "uri": (tmp_path / "changed.txt").as_uri()},
        {"name": "sub/new.csv", "size": 3, "media_type": "text/csv", "uri": (tmp_path / "sub/new.csv").as_uri()},
    ]
    assert "sub/new.csv" in text
    assert more == []
