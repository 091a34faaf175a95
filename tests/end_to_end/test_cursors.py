"""Reading on from cursor to cursor: every byte once, whatever the program prints."""

import pytest

from tests.helpers.mcp import Mcp

SERVER_ENV = {"PYEXEC_KEPT_OUTPUT_MB": "1"}
HALF_KEPT = 512 * 1024
MIXED = "aé€😀\n"


@pytest.mark.parametrize(
    "most", [pytest.param(1, marks=pytest.mark.exhaustive), 2, 3, pytest.param(5, marks=pytest.mark.exhaustive), 7, 64]
)
async def test_characters_cut_anywhere_come_out_whole(mcp: Mcp, most: int) -> None:
    text = MIXED * (4 if most < 4 else 12)
    job_id = (await mcp.run(f"print({text!r}, end='')"))["job_id"]
    read = await mcp.read_on(job_id, max_output_bytes=most)
    assert read.stdout == text
    assert read.steps > len(text.encode()) // max(most, 4)


async def test_a_character_that_is_half_written_is_waited_for(mcp: Mcp) -> None:
    source = f"""
import os, time
for number, byte in enumerate({MIXED.encode() * 3!r}):
    os.write(1, bytes([byte]))
    while not os.path.exists(f"step {{number}}"): time.sleep(0.005)
os.write(1, b"cut off: " + "€".encode()[:2])
"""
    job_id = await mcp.start(source)
    cursor, seen = None, ""
    for number in range(len(MIXED.encode()) * 3):
        (mcp.directory / f"step {number}").touch()
        step = await mcp.get("py_job_status", job_id=job_id, **({"cursor": cursor} if cursor else {}))
        cursor = step["next_cursor"]
        seen += step["job"]["new_stdout"]
    await mcp.finished(job_id)
    assert seen + (await mcp.read_on(job_id, cursor)).stdout == MIXED * 3 + "cut off: \N{REPLACEMENT CHARACTER}"


async def test_both_streams_are_read_on_side_by_side(mcp: Mcp) -> None:
    source = """
import sys
for number in range(3000):
    print(f"out {number}")
    print(f"error {number}", file=sys.stderr)
"""
    result = await mcp.run(source, max_output_bytes=1000)
    assert result["truncated"]
    assert len(result["stdout"]) + len(result["stderr"]) < 1200
    read = await mcp.read_on(result["job_id"], max_output_bytes=9999)
    assert read.stdout == "".join(f"out {number}\n" for number in range(3000))
    assert read.stderr == "".join(f"error {number}\n" for number in range(3000))
    assert read.gap == 0


async def test_a_progress_bar_reads_as_its_last_state_and_the_log_keeps_every_one(mcp: Mcp) -> None:
    source = r"""
import sys
for percent in range(101): sys.stdout.write(f"\r{percent:3}%")
sys.stdout.write("\nnext\nhalf way\r")
"""
    result = await mcp.run(source)
    assert result["stdout"] == "100%\nnext\nhalf way"
    kept = (mcp.home / "executions" / result["job_id"] / "stdout").read_bytes()
    assert kept == b"".join(b"\r%3d%%" % n for n in range(101)) + b"\nnext\nhalf way\r"
    assert result["stdout_bytes"] == len(kept)
    assert (await mcp.read_on(result["job_id"], max_output_bytes=9)).stdout == result["stdout"]


async def test_a_bar_is_read_while_it_moves(mcp: Mcp) -> None:
    source = r"""
import os, sys, time
for percent in (10, 20, 30):
    sys.stdout.write(f"{percent}%\r"); sys.stdout.flush()
    while not os.path.exists(f"seen {percent}"): time.sleep(0.005)
print("done")
"""
    job_id = await mcp.start(source)
    cursor = None
    for percent in (10, 20, 30):
        await mcp.printed(job_id, f"{percent}%")
        step = await mcp.get("py_job_status", job_id=job_id, **({"cursor": cursor} if cursor else {}))
        assert step["job"]["new_stdout"] == f"{percent}%"
        cursor = step["next_cursor"]
        (mcp.directory / f"seen {percent}").touch()
    assert (await mcp.finished(job_id))["stdout"] == "done\n"


async def test_lines_that_end_as_on_windows_are_lines_not_bars(mcp: Mcp) -> None:
    result = await mcp.run("import os; os.write(1, b'a long line\\r\\n' * 3 + b'last\\r\\n')")
    assert result["stdout"] == "a long line\n" * 3 + "last\n"
    short = await mcp.read_on(result["job_id"], max_output_bytes=5)
    assert short.stdout == result["stdout"], "no part of a line is lost, however little fits an answer"


@pytest.mark.case("B048")
async def test_nul_escape_and_bell_arrive_as_they_are(mcp: Mcp) -> None:
    result = await mcp.run("print('a\\0b\\x1b[31mred\\x1b[0m\\x07')")
    assert result["stdout"] == "a\0b\x1b[31mred\x1b[0m\x07\n"


@pytest.mark.case("B047")
async def test_bytes_that_are_no_text_and_lone_surrogates_never_break_the_channel(mcp: Mcp) -> None:
    bad = await mcp.run("import os; os.write(1, b'\\xff\\xfe ok \\xed\\xb3\\xbf')")
    assert bad["stdout"] == "\ufffd\ufffd ok \ufffd\ufffd\ufffd"
    refused = await mcp.run("print('\\udcff')", env_vars={"PYTHONIOENCODING": "utf-8:strict"})
    assert (refused["status"], refused["exit_code"]) == ("failed", 1)
    assert "surrogates not allowed" in refused["error"]
    raised = await mcp.run("raise Exception(chr(0xd8ff))")
    assert raised["error"] == "Exception: \\ud8ff"
    escaped = await mcp.run("print('\\udcff')", env_vars={"PYTHONIOENCODING": "utf-8:backslashreplace"})
    assert escaped["stdout"] == "\\udcff\n"


@pytest.mark.case("B044")
async def test_a_very_long_line_is_cut_with_its_true_length_said(mcp: Mcp) -> None:
    result = await mcp.run("print('x' * 200_000); print('tail')")
    assert (result["status"], result["stdout_bytes"], result["truncated"]) == ("completed", 200_006, True)
    head, note, tail = result["stdout"].partition("\n[... ")
    omitted = int(note + tail.partition(" bytes left out ...]\n")[0] or 0) if not tail else int(tail.split()[0])
    ending = tail.partition(" bytes left out ...]\n")[2]
    assert ending.endswith("x\ntail\n")
    assert len(head) + omitted + len(ending) == 200_006
    assert len(result["stdout"]) < 60_100
    assert (await mcp.read_on(result["job_id"])).stdout == "x" * 200_000 + "\ntail\n"


async def test_what_is_no_longer_kept_is_a_gap_of_known_size(mcp: Mcp) -> None:
    lines = "".join(f"{number:09}\n" for number in range(500_000))
    source = "import sys\nsys.stdout.write(''.join(f'{number:09}\\n' for number in range(500_000)))"
    result = await mcp.run(source, wait_seconds=60)
    assert (result["stdout_bytes"], result["truncated"]) == (5_000_000, True)
    assert result["stdout"].startswith("000000000\n000000001\n")
    assert result["stdout"].endswith("\n000499998\n000499999\n")
    read = await mcp.read_on(result["job_id"], max_output_bytes=400_000)
    assert read.gap == 5_000_000 - len(read.stdout)
    assert len(read.stdout) > HALF_KEPT * 1.7, "head and most of the tail are there"
    assert read.stdout == lines[:HALF_KEPT] + lines[HALF_KEPT + read.gap :]


async def test_a_reader_that_falls_behind_is_told_what_it_missed(mcp: Mcp) -> None:
    source = """
import os, sys, time
sys.stdout.write("early\\n"); sys.stdout.flush()
while not os.path.exists("flood"): time.sleep(0.02)
sys.stdout.write("x" * 3_000_000); sys.stdout.flush()
print("late", flush=True)
time.sleep(300)
"""
    job_id = await mcp.start(source)
    await mcp.printed(job_id, "early")
    cursor = (await mcp.get("py_job_status", job_id=job_id))["next_cursor"]
    (mcp.directory / "flood").touch()
    await mcp.printed(job_id, "late")
    pieces, gap = "", 0
    while not pieces.endswith("late\n"):
        step = await mcp.get("py_job_status", job_id=job_id, cursor=cursor, max_output_bytes=400_000)
        assert step["truncated"] or step["job"]["new_stdout"].endswith("late\n")
        cursor = step["next_cursor"]
        pieces += step["job"]["new_stdout"]
        gap += step.get("gap_bytes", 0)
    assert gap > 1_500_000
    assert len(pieces) + gap == 3_000_005
    assert "gap: " in (await mcp.call("py_job_status", job_id=job_id, cursor="MTo2MDAwMDA6MA")).text
    await mcp.get("kill_job", job_id=job_id)
