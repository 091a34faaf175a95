"""What is printed, read and shown, in order."""

import pytest

from tests.guest.guests import Guest

pytestmark = pytest.mark.needs_uv


@pytest.mark.case("B101")
def test_output_of_children_and_of_c_code_is_caught(guest: Guest) -> None:
    cell = guest.run(
        "import ctypes, os, subprocess, sys\nprint('python')\n"
        "_ = subprocess.run(['sh', '-c', 'echo child; echo child error >&2'])\n"
        "_ = ctypes.CDLL(None).puts(b'from c')\nprint('no line end', end='')\nos.write(2, b'raw\\n')"
    )
    assert (cell.stdout, cell.stderr) == ("python\nchild\nfrom c\nno line end", "child error\nraw\n")
    assert cell.value == "4"


def test_displays_stand_where_they_were_made_among_the_output(guest: Guest) -> None:
    begin = guest.positions()[0]
    cell = guest.run(
        "import os\nfor n in range(5):\n    print('line', n)\n    _ = os.system('echo from a child')\n    display(n)"
    )
    size = len("line 0\nfrom a child\n")
    assert [display.stdout_at - begin for display in cell.turn.displays] == [size * (n + 1) for n in range(5)]
    texts = [display.parts[0].text for display in cell.turn.displays]
    assert texts == ["0", "1", "2", "3", "4"]


def test_megabytes_are_printed_without_a_hitch(guest: Guest) -> None:
    cell = guest.run("for n in range(50_000): print('0123456789')")
    assert len(cell.stdout) == 550_000


def test_text_that_is_no_unicode_is_printed_with_escapes(guest: Guest) -> None:
    assert guest.run(r"print('\ud800 é')").stdout == "\\ud800 é\n"


def test_standard_descriptors_are_in_order_again_in_the_next_cell(guest: Guest) -> None:
    guest.run("import os, sys\nos.close(1); os.close(2); sys.stdout.close(); sys.stdout = None")
    cell = guest.run("print('still here'); _ = os.system('echo children too')")
    assert cell.stdout == "still here\nchildren too\n"


@pytest.mark.case("B058")
@pytest.mark.case("B001")
def test_input_reads_what_was_given_and_fails_at_once_otherwise(guest: Guest) -> None:
    assert guest.run("input('name? ')", stdin="Al\n").value == "'Al'"
    assert guest.run("import sys; sys.stdin.read()", stdin="all of\nit").value == "'all of\\nit'"
    assert guest.run("!cat", stdin="for children\n").stdout == "for children\n"
    twice = guest.run("input(); input()", stdin="once\n")
    assert "all of the stdin" in twice.failure.message
    cell = guest.run("x = 1; print('before'); input('?')")
    assert cell.stdout == "before\n?"
    assert (cell.failure.type, "stdin" in cell.failure.message) == ("EOFError", True)
    assert guest.run("x").value == "1"
    assert guest.run("sys.stdin.read()").value == "''"


def test_what_a_thread_prints_belongs_to_its_turn_or_comes_late(guest: Guest) -> None:
    in_time = guest.run("import threading\nt = threading.Thread(target=lambda: print('in time'))\nt.start(); t.join()")
    assert in_time.stdout == "in time\n"
    guest.run(
        "go = threading.Event(); done = threading.Event()\n"
        "def later():\n    go.wait(); print('too late'); display('shown late'); done.set()\n"
        "threading.Thread(target=later).start()"
    )
    cell = guest.run("go.set(); done.wait(); print('mine')")
    assert cell.stdout == "mine\n"
    assert cell.turn.displays == ()
    texts = [getattr(said, "text", None) or said.parts[0].text for _turn, said in guest.late]  # type: ignore[union-attr]
    assert "".join(str(text) for text in texts) == "too late\n'shown late'"
    assert len({turn for turn, _said in guest.late}) == 1


def test_what_a_pool_of_an_earlier_cell_is_given_to_do_belongs_to_the_cell_that_gave_it(guest: Guest) -> None:
    guest.run(
        "import asyncio, threading\nfrom concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(1)\n"
        "pool.submit(print, 'first').result()\nloop = asyncio.new_event_loop()\n"
        "threading.Thread(target=loop.run_forever, daemon=True).start()"
    )
    cell = guest.run(
        "pool.submit(print, 'by the pool').result()\nasync def say(): print('by the loop')\n"
        "asyncio.run_coroutine_threadsafe(say(), loop).result()"
    )
    assert cell.stdout == "by the pool\nby the loop\n"
    assert guest.run("%%bash\necho again").stdout == "again\n"


@pytest.mark.case("B081")
def test_nothing_is_written_to_the_home(guest: Guest) -> None:
    guest.run("1")
    assert {path.name for path in guest.folder.iterdir()} == {"files", "work"}
    assert guest.printed[1].count(b"history") == 0
