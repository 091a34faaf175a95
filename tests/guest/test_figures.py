"""Matplotlib's figures: each one once, and none in the next cell."""

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.guest.guests import Guest

pytestmark = pytest.mark.needs_uv


@pytest.fixture(scope="module")
def plotting(guest_python: Path) -> Generator[Guest]:
    """A guest that has pyplot."""
    guest = Guest(guest_python)
    guest.run("import matplotlib.pyplot as plt")
    yield guest
    guest.close()


ONCE = {
    "left open": "plt.plot([1])",
    "shown": "plt.plot([1]); plt.show()",
    "shown, semicolon": "plt.plot([1]); plt.show();",
    "shown, comment": "plt.plot([1]); plt.show()  # end",
    "shown, newline and spaces": "plt.plot([1])\nplt.show()\n    ",
    "the last value": "f = plt.figure(); plt.plot([1]); f",
    "shown and the last value": "f = plt.figure(); plt.plot([1]); plt.show(); f",
    "displayed": "f = plt.figure(); plt.plot([1]); display(f)",
    "figure.show": "f = plt.figure(); plt.plot([1]); f.show()",
    "saved and open": "plt.plot([1]); plt.savefig('saved.png')",
    "the axes as the last value": "f, ax = plt.subplots(); ax.plot([1]); ax",
    "without pyplot": "from matplotlib.figure import Figure\nf = Figure(); f.subplots().plot([1]); f",
    "another backend": "import matplotlib\nmatplotlib.use('svg'); plt.plot([1]); plt.show()",
    "inline": "%matplotlib inline\nplt.plot([1])",
    "inline and shown": "%matplotlib inline\nplt.plot([1])\nplt.show()",
    "the inline backend itself": "plt.switch_backend('module://matplotlib_inline.backend_inline'); plt.plot([1])",
    "agg again": "plt.switch_backend('agg'); plt.plot([1]); plt.show()",
    "a from-import": "from matplotlib.pyplot import plot, show\nplot([1]); show()",
    "pandas": "import pandas as pd\npd.Series([1, 2]).plot()",
}


@pytest.mark.case("B103")
@pytest.mark.case("B107")
@pytest.mark.parametrize("code", ONCE.values(), ids=ONCE.keys())
def test_a_figure_is_shown_exactly_once(plotting: Guest, code: str) -> None:
    cell = plotting.run(code)
    assert (cell.turn.status, cell.kinds, cell.stderr) == ("ok", ["figure"], "")
    assert plotting.run("len(plt.get_fignums())").turn.displays == ()


@pytest.mark.case("B101")
def test_output_value_and_figure_come_in_one_answer(plotting: Guest) -> None:
    cell = plotting.run("import sys; print('o'); print('e', file=sys.stderr); plt.plot([1, 2]); plt.show(); 42")
    assert (cell.stdout, cell.stderr, cell.value, cell.kinds) == ("o\n", "e\n", "42", ["figure"])
    assert (cell.only.width, cell.only.height) == (640, 480)
    assert (plotting.files / "figure-1.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.case("B109")
def test_a_figure_from_before_an_exception_is_shown_with_it(plotting: Guest) -> None:
    cell = plotting.run("plt.plot([1]); raise ValueError")
    assert (cell.turn.status, cell.kinds) == ("error", ["figure"])
    assert plotting.run("1").turn.displays == ()
    assert plotting.run("plt.plot([1]); plt.close()").turn.displays == ()
    assert plotting.run("plt.plot([1]); plt.savefig('a.png'); plt.close('all')").turn.displays == ()


@pytest.mark.case("B104")
def test_what_is_changed_after_showing_is_shown_again_by_another_show(plotting: Guest) -> None:
    cell = plotting.run("fig, ax = plt.subplots(); ax.plot([0, 1]); plt.show(); ax.plot([1, 0]); plt.show()")
    assert cell.kinds == ["figure", "figure"]
    apart = plotting.run("plt.plot([0, 1]); plt.show(); plt.plot([1, 0]); plt.show(); plt.show()")
    assert [len(display.chart["axes"][0]["series"]) for display in apart.turn.displays if display.chart] == [1, 1]


@pytest.mark.case("B106")
def test_many_figures_are_capped_and_none_is_kept(plotting: Guest) -> None:
    cell = plotting.run("for i in range(22):\n    plt.figure(figsize=(1, 1)); plt.plot([i])")
    assert len(cell.turn.displays) == 20
    assert cell.turn.notes == ("2 more figures were left out; at most 20 are shown.",)
    assert cell.stderr == ""
    assert plotting.run("len(plt.get_fignums())").value == "0"


def test_a_figure_that_cannot_be_drawn_is_noted(plotting: Guest) -> None:
    cell = plotting.run("plt.title(r'$\\frac{$'); plt.plot([1])")
    assert (cell.turn.status, cell.turn.displays) == ("ok", ())
    assert "could not be drawn" in cell.turn.notes[0]
    assert plotting.run("plt.plot([1])").kinds == ["figure"]


def test_figures_fit_the_budget_and_nothing_is_cut_off(plotting: Guest) -> None:
    large = plotting.run("plt.figure(figsize=(30, 10)); plt.plot([1])")
    assert (large.only.width, large.only.height) == (1000, 333)
    dense = plotting.run("import numpy as np\nplt.figure(figsize=(10, 10)); plt.imshow(np.random.rand(1000, 1000))")
    assert dense.only.parts[0].size <= 300_000
    beside = plotting.run("plt.plot([1], label='a label'); plt.legend(bbox_to_anchor=(1.05, 1), loc='upper left')")
    assert beside.only.width > 640


def test_children_draw_without_a_window_system(plotting: Guest) -> None:
    cell = plotting.run("import os; os.environ['MPLBACKEND']")
    assert cell.value == "'agg'"
