"""What a program prints: kept, readable at once, bounded."""

import os
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from pyexec.domain.cursors import Cursor
from pyexec.domain.errors import InvalidArgumentError
from pyexec_guest import log
from tests.helpers.processes import eventually, peak_memory
from tests.helpers.waiting import eventually as sooner_or_later
from tests.integration.engine import Engine, outcome_of

MB = 1024 * 1024


async def test_a_printed_line_can_be_read_by_others_within_a_tenth_of_a_second(engine: Engine) -> None:
    execution = await engine.submit(
        "import time\nfor _ in range(30):\n    print(time.monotonic(), flush=True)\n    time.sleep(0.02)\n"
    )
    folder = str(engine.folder(execution))
    delays: list[float] = []
    seen = b""

    def all_seen() -> bool:
        nonlocal seen
        new = log.read(folder, "stdout", len(seen), MB).data
        now = time.monotonic()
        seen += new
        delays.extend(now - float(line) for line in new.split())
        return seen.count(b"\n") == 30

    eventually(all_seen)

    assert min(delays) < 0.1  # The promise itself; the best, so that a busy machine does not break it.
    await engine.wait(execution)


@pytest.mark.case("B043")
async def test_lines_come_one_by_one_though_the_program_does_not_flush(engine: Engine) -> None:
    execution = await engine.submit(
        "import os, time\n"
        "for number in range(3):\n"
        "    print(number)\n"
        "    while not os.path.exists(f'go-{number}'): time.sleep(0.01)\n"
        "time.sleep(60)\n"
    )
    for number in range(3):
        assert engine.printed(execution, number + 1) == [str(seen) for seen in range(number + 1)]
        assert (await engine.output(execution, since=Cursor(stdout=2 * number))).stdout.text == f"{number}\n"
        (engine.directory / f"go-{number}").touch()

    await engine.stop(execution)
    assert await engine.stdout(execution) == "0\n1\n2\n"


@pytest.mark.case("B050")
@pytest.mark.case("B044")
async def test_a_flood_is_counted_to_the_byte_and_neither_memory_nor_disk_follows(engine: Engine) -> None:
    execution = await engine.submit(
        "import os, sys, time\n"
        "block = b''.join(b'%07d\\n' % number for number in range(131072))\n"
        "sys.stdout.buffer.write(b'first line\\n')\n"
        "for _ in range(300): sys.stdout.buffer.write(block)\n"
        "sys.stdout.buffer.write(b'last line\\n')\n"
        "sys.stdout.buffer.flush()\n"
        "open('printed', 'w').close()\n"
        "while not os.path.exists('go'): time.sleep(0.01)\n"
    )
    keeper = engine.keeper(execution)
    eventually((engine.directory / "printed").exists)
    memory = peak_memory(keeper)
    (engine.directory / "go").touch()
    execution = await engine.wait(execution)

    outcome = outcome_of(execution)
    folder = engine.folder(execution)
    kept = sum(path.stat().st_size for path in folder.glob("stdout*"))
    answer = await engine.output(execution)
    assert memory < 64 * MB
    assert outcome.stdout_bytes == 300 * MB + 21
    assert 45 * MB < kept <= 50 * MB + 25 * MB // log.SEGMENTS
    assert answer.stdout.total == outcome.stdout_bytes
    assert answer.stdout.text.startswith("first line\n0000000\n")
    assert answer.stdout.text.endswith("0131071\nlast line\n")
    assert answer.truncated
    assert len(answer.stdout.text) < 61_000


@pytest.mark.case("B044")
async def test_a_line_of_ten_megabytes_is_kept_whole(engine: Engine) -> None:
    execution = await engine.run("print('x' * 10_000_000); print('tail')")

    assert (execution.state, (await engine.stdout(execution)).splitlines()[-1]) == ("completed", "tail")
    assert (engine.folder(execution) / "stdout").stat().st_size == 10_000_006


async def test_the_pieces_of_a_long_stream_join_without_a_seam(make_engine: Callable[..., Engine]) -> None:
    engine = make_engine(kept_output_mb=2)
    execution = await engine.run(
        "import sys\n"
        "for start in range(0, 1_000_000, 5000):\n"
        "    sys.stdout.write(''.join(f'{number:07d}\\n' for number in range(start, start + 5000)))\n"
    )

    answers = [await engine.output(execution, since=Cursor(), max_bytes=200_000)]
    while (answer := await engine.output(execution, since=answers[-1].next_cursor, max_bytes=200_000)).stdout.text:
        answers.append(answer)
    gaps = [answer.stdout.gap for answer in answers if answer.stdout.gap]
    numbers = [int(line) for answer in answers for line in answer.stdout.text.split("\n") if len(line) == 7]
    jumps = [(one, other) for one, other in pairwise(numbers) if other != one + 1]
    assert len(gaps) == 1
    assert len(jumps) == 1
    assert (numbers[0], numbers[-1]) == (0, 999_999)
    assert sum(len(answer.stdout.text) for answer in answers) + gaps[0] == 8_000_000


async def test_both_streams_are_followed_in_the_order_they_were_written(engine: Engine) -> None:
    execution = await engine.submit(
        "import os, time\n"
        "for number in range(10):\n"
        "    os.write(1 + number % 2, b'%d\\n' % number)\n"
        "    while not os.path.exists(f'go-{number}'): time.sleep(0.005)\n"
    )
    for number in range(10):
        engine.printed(execution, number // 2 + 1, ("stdout", "stderr")[number % 2])
        (engine.directory / f"go-{number}").touch()

    followed = [piece async for piece in engine.executions.follow(engine.principal, execution.id)]

    assert b"".join(piece.data for piece in followed) == b"".join(b"%d\n" % number for number in range(10))
    assert [piece.stream for piece in followed] == ["stdout", "stderr"] * 5


async def test_following_brings_every_byte_to_the_end(engine: Engine) -> None:
    execution = await engine.submit("import os\nfor _ in range(100): os.write(1, b'x' * 100_000)")

    size = 0
    async for piece in engine.executions.follow(engine.principal, execution.id):
        assert piece.gap == 0
        size += len(piece.data)

    assert size == 10_000_000


@pytest.mark.case("B047")
@pytest.mark.case("B048")
@pytest.mark.case("B057")
@pytest.mark.parametrize(
    ("code", "text"),
    [
        (r"print('\udcff')", "\N{REPLACEMENT CHARACTER}\n"),
        (r"import os; os.write(1, b'na\xe9 \xf0\x9f')", "na\N{REPLACEMENT CHARACTER} \N{REPLACEMENT CHARACTER}"),
        (r"print('a\0b\x1b[31mred\x1b[0m\x07')", "a\0b\x1b[31mred\x1b[0m\x07\n"),
        (r"print('a\u2028b\u0085c')", "a\u2028b\u0085c\n"),
        (r"import os; os.write(1, b'\xf0\x9f'); os.write(1, b'\x98\x80')", "\N{GRINNING FACE}"),
        (r"print('10%\r20%\r100%')", "100%\n"),
    ],
    ids=["lone surrogate", "no utf-8", "control characters", "unicode line breaks", "split character", "progress bar"],
)
async def test_whatever_is_printed_is_text_in_the_end(engine: Engine, code: str, text: str) -> None:
    execution = await engine.run(code, env_vars={"PYTHONIOENCODING": "utf-8:surrogateescape"})

    assert await engine.stdout(execution) == text


@pytest.mark.case("B047")
async def test_an_exception_with_a_lone_surrogate_in_it_is_shown(engine: Engine) -> None:
    execution = await engine.run("raise Exception(chr(0xd8ff))")

    assert execution.state == "failed"
    assert "Exception: \\ud8ff" in await engine.stderr(execution)


async def test_output_that_is_still_coming_can_be_read_from_cursor_to_cursor(engine: Engine) -> None:
    execution = await engine.submit(
        "import time\nfor number in range(40):\n    print(f'é{number}', flush=True)\n    time.sleep(0.01)\n"
    )
    cursor, text = Cursor(), ""
    while True:
        ended = (await engine.get(execution)).ended
        answer = await engine.output(execution, since=cursor)
        text += answer.stdout.text
        cursor = answer.next_cursor
        if ended and not answer.stdout.text:
            break

    assert text == "".join(f"é{number}\n" for number in range(40))


@pytest.mark.parametrize("max_bytes", [0, -1, 4 * MB + 1])
async def test_an_answer_of_a_size_that_is_not_allowed_is_refused(engine: Engine, max_bytes: int) -> None:
    execution = await engine.run("print(1)")

    with pytest.raises(InvalidArgumentError, match="max_output_bytes"):
        await engine.output(execution, max_bytes=max_bytes)


async def test_closed_streams_are_no_reason_to_wait_or_to_end(engine: Engine) -> None:
    execution = await engine.submit(
        "import os, time\nos.write(1, b'up\\n')\nos.close(1); os.close(2)\ntime.sleep(0.3)\nos._exit(4)\n"
    )

    execution = await engine.wait(execution)

    assert (outcome_of(execution).exit_code, await engine.stdout(execution)) == (4, "up\n")


async def test_a_keeper_uses_no_time_while_nothing_happens(engine: Engine) -> None:
    execution = await engine.submit("import time; print('up', flush=True); time.sleep(60)")
    engine.printed(execution)
    keeper = engine.keeper(execution)

    def ticks() -> int:
        fields = Path(f"/proc/{keeper}/stat").read_text("utf-8").rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    async def rests() -> bool:
        before = ticks()
        await engine.executions.wait(engine.principal, execution.id, 1.0)
        return ticks() - before <= 0.05 * os.sysconf("SC_CLK_TCK")

    await sooner_or_later(rests, what="a second of rest")
    await engine.stop(execution, "kill")
