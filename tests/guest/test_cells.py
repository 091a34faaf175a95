"""What a cell does and what is told about it."""

import pytest

from tests.guest.guests import Guest

pytestmark = pytest.mark.needs_uv


def test_state_stays_and_the_last_value_is_told(guest: Guest) -> None:
    guest.run("x = 20\ndef double(n):\n    return 2 * n")
    cell = guest.run("double(x)")
    assert (cell.turn.status, cell.turn.exit_code, cell.value, cell.turn.value_type) == ("ok", 0, "40", "int")
    assert guest.run("_ + 2").value == "42"
    assert guest.run("__").value == "40"
    assert guest.run("x;").value is None
    assert guest.run("").turn.status == "ok"


def test_inputs_are_in_the_history(guest: Guest) -> None:
    guest.run("'something to find'")
    assert "something to find" in guest.run("In[-2]").value  # type: ignore[operator]
    assert "something to find" in guest.run("%history").stdout


def test_top_level_await_runs_on_one_loop(guest: Guest) -> None:
    guest.run("import asyncio\nasync def m():\n    await asyncio.sleep(0)\n    return 7")
    assert guest.run("await m()").value == "7"
    guest.run("async def wait(f): return await f\nfuture = asyncio.get_event_loop().create_future()")
    guest.run("asyncio.get_event_loop().call_soon(future.set_result, 'same loop')")
    assert guest.run("await wait(future)").value == "'same loop'"


@pytest.mark.case("B070")
def test_asyncio_run_works_and_leaves_a_loop_behind(guest: Guest) -> None:
    code = "import asyncio\nasync def m(): await asyncio.sleep(0); return 7\nprint(asyncio.run(m()))"
    assert guest.run(code).stdout == "7\n"
    assert guest.run("await m()").value == "7"
    assert guest.run("asyncio.get_event_loop().run_until_complete(m())").value == "7"


def test_magics_and_commands_work(guest: Guest) -> None:
    assert "per loop" in guest.run("%timeit -n1 -r1 1").stdout
    assert guest.run("!echo $((40 + 2))").stdout == "42\n"
    assert guest.run("files = !echo a b\nfiles[0].split()").value == "['a', 'b']"
    assert guest.run("name = 'ho'\n!echo {name}").stdout == "ho\n"
    assert guest.run("%%bash\necho from bash").stdout == "from bash\n"
    assert "Docstring" in guest.run("len?").stdout


@pytest.mark.case("B083")
def test_a_magic_that_fails_is_a_failure_and_a_command_leaves_a_note(guest: Guest) -> None:
    assert guest.run("1/0").failure.type == "ZeroDivisionError"
    assert guest.run("%nosuchmagic").failure.type == "UsageError"
    assert guest.run("%%bash\nexit 5").failure.type == "CalledProcessError"
    cell = guest.run("!false")
    assert (cell.turn.status, cell.turn.notes) == ("ok", ("The last shell command ended with exit code 1.",))
    assert guest.run("_exit_code").value == "1"


@pytest.mark.parametrize("code", ["%pip install six", "!pip install six", "!python3 -m pip install six"])
def test_installing_from_inside_says_how_packages_are_had(guest: Guest, code: str) -> None:
    assert "dependencies" in guest.run(code).failure.message


@pytest.mark.case("B059")
def test_leaving_reports_the_code_and_keeps_the_session(guest: Guest) -> None:
    left = guest.run("x = 5; import sys; sys.exit(3)")
    assert (left.turn.status, left.turn.exit_code) == ("exited", 3)
    assert "use exit" not in left.stdout + left.stderr
    assert guest.run("x").value == "5"
    gone = guest.run("exit()")
    assert (gone.turn.status, gone.turn.exit_code, gone.turn.failure) == ("exited", 0, None)
    assert guest.run("quit(2)").turn.exit_code == 2
    assert guest.run("x").value == "5"


@pytest.mark.case("B061")
def test_leaving_with_a_message_from_a_handler_is_told_as_such(guest: Guest) -> None:
    cell = guest.run("import sys\ntry: 1/0\nexcept ZeroDivisionError: sys.exit('bye')")
    assert (cell.turn.exit_code, cell.failure.type, cell.failure.message) == (1, "SystemExit", "bye")


def test_a_traceback_has_the_users_lines_and_nothing_of_ours(guest: Guest) -> None:
    guest.run("def outer():\n    inner()\n\ndef inner():\n    raise ValueError('deep')")
    failure = guest.run("print('before')\nouter()").failure
    assert (failure.type, failure.message, failure.line) == ("ValueError", "deep", 2)
    assert "outer()" in failure.traceback
    assert "raise ValueError('deep')" in failure.traceback
    assert "IPython" not in failure.traceback
    assert "pyexec_guest" not in failure.traceback
    chained = guest.run("try:\n    outer()\nexcept ValueError as e:\n    raise KeyError('k') from e").failure
    assert chained.type == "KeyError"
    assert "direct cause" in chained.traceback
    assert "IPython" not in chained.traceback


@pytest.mark.case("B065")
def test_a_syntax_error_points_to_its_place_and_brings_nothing_of_the_last_cell(guest: Guest) -> None:
    guest.run("print('A')")
    cell = guest.run("x = (1,\n  2\n  y")
    assert cell.stdout == ""
    assert cell.failure.type == "SyntaxError"
    assert cell.failure.line == 1
    assert "^" in cell.failure.traceback
    assert "A" not in cell.failure.traceback


@pytest.mark.case("B066")
def test_line_numbers_are_those_that_were_sent(guest: Guest) -> None:
    assert guest.run("!echo a \\\n  b\nint( \\\n  qwerty)").failure.line == 4
    assert guest.run("if True:\n    pass\nyo").failure.line == 3
    assert guest.run("\n\n1/0").failure.line == 3
    assert guest.run("x = !echo a \\\n  b\n\n1/0").failure.line == 4
    assert guest.run("\n%%bash\necho hi").stdout == "hi\n"


@pytest.mark.case("B067")
def test_nothing_is_put_before_the_users_code(guest: Guest) -> None:
    assert guest.run("from __future__ import annotations\n1/0").failure.line == 2
    assert guest.run("   x = 1\n   print(x)").stdout == "1\n"


def test_deep_recursion_is_an_error_like_any_other(guest: Guest) -> None:
    failure = guest.run("def f():\n    return f()\nf()").failure
    assert failure.type == "RecursionError"
    assert len(failure.traceback) < 3000
    assert guest.run("1").value == "1"


@pytest.mark.case("B112")
@pytest.mark.case("B113")
@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("{'mean': float('nan'), 'max': float('inf')}", "{'mean': nan, 'max': inf}"),
        ("import numpy as np; np.int64(3)", "np.int64(3)"),
        ("np.float32('nan')", "np.float32(nan)"),
        ("{np.int64(1): {1, 2}}", "{np.int64(1): {1, 2}}"),
        (r"b'\xff'", r"b'\xff'"),
        ("from decimal import Decimal; Decimal('1.10')", "Decimal('1.10')"),
        ("{(1, 2): 3}", "{(1, 2): 3}"),
        ("import datetime; datetime.datetime(2026, 1, 2)", "datetime.datetime(2026, 1, 2, 0, 0)"),
        ("2**53 + 1", "9007199254740993"),
        (r"'\ud800'", r"'\ud800'"),
    ],
)
def test_any_value_has_its_text(guest: Guest, code: str, text: str) -> None:
    cell = guest.run(code)
    assert (cell.turn.status, cell.value) == ("ok", text)


@pytest.mark.case("B114")
def test_a_value_that_cannot_be_shown_is_said_to_be_one(guest: Guest) -> None:
    cell = guest.run("10**5000")
    assert "4300 digits" in str(cell.value)
    cell = guest.run("class Broken:\n    def __repr__(self): raise OSError('no text')\nBroken()")
    assert (cell.turn.status, cell.value) == ("ok", "<Broken that cannot be shown: OSError: no text>")
    cell = guest.run("class Mute(Exception):\n    def __str__(self): raise OSError('mute')\nraise Mute")
    assert cell.failure.type == "Mute"
    assert guest.run("1").value == "1"


def test_a_huge_value_is_cut(guest: Guest) -> None:
    cell = guest.run("'x' * 10_000_000")
    assert len(str(cell.value)) < 300_000
    assert "characters left out" in str(cell.value)
    assert guest.run("l = []\nl.append(l)\nl").value == "[[...]]"


@pytest.mark.case("B074")
def test_what_cannot_be_pickled_stays_all_the_same(guest: Guest) -> None:
    guest.run(
        "import sqlite3, threading\nf = lambda x: x\ng = (i for i in range(3)); next(g)\nh = open('t', 'w')\n"
        "c = sqlite3.connect(':memory:'); k = threading.Lock()"
    )
    assert guest.run("f(2), next(g), h.closed, c.execute('select 1').fetchone()").value == "(2, 1, False, (1,))"


@pytest.mark.case("B073")
def test_workers_that_start_anew_find_what_the_cells_define(guest: Guest) -> None:
    guest.run("import multiprocessing as mp\nSTEP = 1\nprint('only here')")
    cell = guest.run(
        "def g(x): return x + STEP\nwith mp.get_context('spawn').Pool(2) as pool: print(pool.map(g, [1, 2]))"
    )
    assert (cell.turn.status, cell.stdout) == ("ok", "[2, 3]\n")


@pytest.mark.case("B075")
def test_a_class_defined_anew_behaves_as_in_python(guest: Guest) -> None:
    guest.run("class D: pass\nd = D()")
    guest.run("class D: pass")
    cell = guest.run("import pickle\nprint(isinstance(d, D))\npickle.dumps(d)")
    assert (cell.stdout, cell.failure.type) == ("False\n", "PicklingError")


@pytest.mark.case("B071")
def test_a_failed_call_does_not_hold_its_memory_beyond_the_next_cell(guest: Guest) -> None:
    before = guest.info()["memory"]
    guest.run("def f():\n    b = bytearray(300_000_000)\n    raise ValueError\nf()")
    guest.run("pass")
    assert guest.info()["memory"] < before + 50_000_000


@pytest.mark.case("B072")
def test_old_values_do_not_pile_up(guest: Guest) -> None:
    before = guest.info()["memory"]
    for _time in range(4):
        guest.run("bytearray(b'1') * 50_000_000")
    assert guest.info()["memory"] < before + 120_000_000
    guest.run("1")
    guest.run("2")
