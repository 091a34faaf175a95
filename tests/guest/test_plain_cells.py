"""Cells that are nothing but Python are run without IPython's way of running them: nobody can tell."""

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.guest.guests import Guest

pytestmark = pytest.mark.needs_uv

_HEARD = """
def heard(result):
    print(result.execution_count, result.info.raw_cell, type(result.error_in_exec).__name__)
ip = get_ipython()
ip.events.register('post_run_cell', heard)
"""

CELLS = [
    "1 + 1",
    "_ + 1",
    "(_, __)",
    "'a;b'",
    "5;",
    "5 # a remark",
    "# nothing else",
    "x = y = 3",
    "x\n\n",
    "print(x); x",
    "if x:\n    x\nx + 1",
    "'its text'\n'and another'\nprint(__doc__)",
    "(n := 4)",
    "n",
    "f'{n!r} {n % 3} {n != 3}'",
    "def f():\n    return g()\ndef g():\n    raise ValueError('no')",
    "f()",
    "f()\nprint('never')",
    "try:\n    f()\nexcept ValueError as error:\n    raise KeyError('b') from error",
    "print('a')\nreturn 5",
    "return",
    "yield 1",
    "1 +",
    "1 1",
    "def f(:\n  pass",
    "if True:\npass",
    "  x = 5\n  x",
    "'''a\n   \nb'''",
    "'''\n>>> 1\n... 2\n'''",
    ">>> 1 + 1",
    "In [1]: 1 + 2",
    "a\u2028b",
    "x\r\ny",
    "'\x0c'",
    "pwd = 'shadowed'\npwd",
    "pwd",
    "del pwd",
    "len(pwd())",
    "alias_magic t timeit",
    "%alias_magic u timeit",
    "u",
    "y = %pwd\nlen(y) > 1",
    "y = !echo a b\ny",
    "!echo c",
    "%%capture out\nprint(1)",
    "out.stdout",
    "len?",
    "%macro -q m 1",
    "m",
    "exit",
    "quit()",
    "raise SystemExit(3)",
    "import sys; sys.exit('gone')",
    "raise KeyboardInterrupt",
    "raise BaseException('odd')",
    "import bdb; raise bdb.BdbQuit",
    "from __future__ import annotations",
    "def h(a: nowhere) -> nothing: ...\nh.__annotations__",
    "import warnings\nwarnings.warn('mind')",
    "warnings.warn('mind')",
    "'\\d'",
    "1 is 1",
    "[i for i in range(3)]\n[i * n for i in range(2)]",
    "class C:\n    def __repr__(self): raise OSError('hidden')\nC()",
    "import sys\nsys.excepthook = sys.displayhook = None\n7",
    "sys.excepthook is None, sys.displayhook is None",
    "get_ipython().execution_count, len(In), In[-2], _i, _ii, _ih[2]",
    "'get_ipython' in dir(__builtins__), __name__, 'exit' in globals()",
    "async def one():\n    return 1\nawait one()",
    "[await one() for _ in range(2)]",
    "get_ipython().run_cell('8 + 1').result",
    "get_ipython().last_execution_succeeded",
    "get_ipython().ast_node_interactivity = 'all'",
    "1\n2",
    "get_ipython().ast_node_interactivity = 'last_expr'",
    "ip = get_ipython()\nip.set_custom_exc((ZeroDivisionError,), lambda *_, **__: print('mine'))\n1 / 0",
    "1 / 0",
    "ip.set_custom_exc((), None)",
    "ip.input_transformers_cleanup.append(lambda lines: [line.replace('plus', '+') for line in lines])",
    "1 plus 1",
    "del ip.input_transformers_cleanup[-1]",
    "import ast\nclass T(ast.NodeTransformer):\n    def visit_Constant(self, node): return ast.Constant(9)",
    "ip.ast_transformers.append(T())",
    "1",
    "ip.ast_transformers.clear()",
    _HEARD,
    "f()",
    "ip.events.unregister('post_run_cell', heard)",
    "5",
    "%precision 2\n3.14159",
    "3.14159",
    "10 ** 5000",
    "'long' * 100000",
    "eval('(' * 300 + ')' * 300)",
    "(" * 300 + ")" * 300,
    "%autocall 1",
    "abs -3",
    "%autocall 0",
    "abs -3",
    "",
    " ",
    "\n\n",
]


@pytest.fixture(scope="module")
def both(guest_python: Path) -> Generator[tuple[Guest, Guest]]:
    """Two guests; in the second one IPython runs all cells, because somebody wants to hear of each."""
    plain, heard = Guest(guest_python), Guest(guest_python)
    plain.run("def hear(_info): pass")
    heard.run("def hear(_info): pass\nget_ipython().events.register('pre_run_cell', hear)")
    yield plain, heard
    plain.close()
    heard.close()


@pytest.mark.parametrize("code", CELLS, ids=[f"{number}" for number in range(len(CELLS))])
def test_a_cell_gives_what_it_gives_in_ipythons_own_way(both: tuple[Guest, Guest], code: str) -> None:
    one, other = (guest.run(code) for guest in both)
    assert (one.stdout, one.turn.value, one.turn.value_type) == (other.stdout, other.turn.value, other.turn.value_type)
    assert (one.turn.status, one.turn.exit_code, one.turn.notes) == (
        other.turn.status,
        other.turn.exit_code,
        other.turn.notes,
    )
    assert one.turn.failure == other.turn.failure
    assert one.stderr == other.stderr


def test_the_program_finds_no_thread_but_its_own(guest: Guest) -> None:
    assert guest.run("import threading\nthreading.enumerate() == [threading.main_thread()]").value == "True"


def test_what_is_printed_is_not_kept(guest: Guest) -> None:
    guest.run("print('x' * 1000)")
    assert guest.run("dict(getattr(get_ipython().history_manager, 'outputs', {}))").value == "{}"
