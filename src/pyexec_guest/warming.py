"""Doing once, ahead of many forks, what each of them would else do at its first cell, figure or table.

What this fills are caches and imports; no fork can tell that anything was shown.
"""

import asyncio
import os
import sys
from contextlib import suppress
from typing import Any

from pyexec_guest.displays import charts, figures, tables
from pyexec_guest.shell.interpreter import GuestShell
from pyexec_guest.shell.rehearsal import rehearsing

_CELLS = ("1 + 1", "def f(n):\n    return [n]\nx = f(1)", "x", "1 / 0", "async def g():\n    return 1\n'a'", "%pwd")
_ROUNDS = 20
"""How often a cell is run: the interpreter makes code that it has run some times faster, and it does so in place."""


def warm(shell: GuestShell) -> None:
    """Run, draw and describe a little of everything; what cannot be done is left for the forks."""
    with rehearsing(shell):
        for work in (_run, _make_a_loop, _draw, _describe):
            with suppress(Exception):
                work(shell)


def _run(shell: GuestShell) -> None:
    for cell in _CELLS * _ROUNDS:
        shell.run(cell)
    shell.forget_last_failure()
    shell.text_of({"a": [1]})
    shell.display_formatter.format(1)


def _make_a_loop(_shell: GuestShell) -> None:
    asyncio.new_event_loop().close()


def _draw(_shell: GuestShell) -> None:
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return
    figure, axes = pyplot.subplots()
    axes.plot([1, 2], [1, 2], label="a")
    axes.set_title("a")
    axes.legend()
    figures.draw(figure)
    charts.chart_of(figure)
    pyplot.close("all")


def _describe(shell: GuestShell) -> None:
    pandas: Any = sys.modules.get("pandas")
    if pandas is None:
        return
    frame = pandas.DataFrame({"a": [1, 2], "b": ["a", "b"]})
    tables.from_pandas(frame)
    shell.text_of(frame)
    frame.describe()
    frame.to_csv(os.devnull)
