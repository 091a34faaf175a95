"""Cells that a real guest has run, as a session would have."""

import sys
from collections.abc import Sequence
from pathlib import Path

from pyexec.sessions.cells import Cell
from tests.guest.guests import Guest

CELLS = (
    "import os, math\nx = 20",
    "print('printed', x)\nx + 1",
    "from IPython.display import HTML, display\ndisplay(HTML('<b>bold</b>'))",
    "words = !echo one two\nwords[0]",
    "%%capture caught\nprint('inside')",
    "caught.stdout",
    "1/0",
    "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 'awaited'\nawait f()",
    "s = '''\n%time\n!ls'''\nlen(s)",
    "math.factorial(x)",
)


def ran(*codes: str) -> Sequence[Cell]:
    """Run cells in a guest of their own; return them with what came of them."""
    guest = Guest(Path(sys.executable))
    cells: list[Cell] = []
    try:
        for number, code in enumerate(codes, start=1):
            found = guest.run(code)
            cells.append(
                Cell(code=code, execution_count=number, stdout=found.stdout, stderr=found.stderr, turn=found.turn)
            )
    finally:
        guest.close()
    return cells
