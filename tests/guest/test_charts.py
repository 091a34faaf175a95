"""The numbers behind figures, against those that were plotted."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.guest.guests import Guest

pytestmark = pytest.mark.needs_uv


@pytest.fixture(scope="module")
def plotting(guest_python: Path) -> Generator[Guest]:
    """A guest that has pyplot."""
    guest = Guest(guest_python)
    guest.run("import matplotlib.pyplot as plt\nimport numpy as np")
    yield guest
    guest.close()


def axes_of(guest: Guest, code: str) -> list[dict[str, Any]]:
    cell = guest.run(code)
    assert cell.kinds == ["figure"], cell
    assert cell.only.chart is not None
    return cell.only.chart["axes"]


def only_series(guest: Guest, code: str) -> dict[str, Any]:
    (axes,) = axes_of(guest, code)
    (series,) = axes["series"]
    return series


def test_lines_with_titles_labels_and_scales(plotting: Guest) -> None:
    (axes,) = axes_of(
        plotting,
        "plt.plot([1, 2, 3], [10, 100, 1000], label='growth'); plt.plot([1, 2, 3], [5, float('nan'), 7], '--')\n"
        "plt.title('T'); plt.xlabel('time (s)'); plt.ylabel('size (kB)'); plt.yscale('log'); plt.xlim(0, 4)",
    )
    assert (axes["title"], axes["x_label"], axes["y_label"]) == ("T", "time (s)", "size (kB)")
    assert (axes["y_scale"], axes["x_range"]) == ("log", [0, 4])
    assert "x_scale" not in axes
    assert axes["series"] == [
        {"kind": "line", "label": "growth", "x": [1, 2, 3], "y": [10, 100, 1000]},
        {"kind": "line", "x": [1, 2, 3], "y": [5, "nan", 7]},
    ]


def test_scatter(plotting: Guest) -> None:
    series = only_series(plotting, "plt.scatter([1, 2], [3, 4], c=[0.5, 0.7], label='s')")
    assert series == {"kind": "scatter", "label": "s", "x": [1, 2], "y": [3, 4], "colour_values": [0.5, 0.7]}
    assert only_series(plotting, "plt.plot([1, 2], [3, 4], 'o')")["kind"] == "scatter"


def test_bars_with_their_categories(plotting: Guest) -> None:
    series = only_series(plotting, "plt.bar(['a', 'b', 'c'], [3, 1, 2], label='n')")
    assert series == {"kind": "bar", "label": "n", "x": ["a", "b", "c"], "y": [3, 1, 2]}
    lying = only_series(plotting, "plt.barh(['a', 'b'], [3, 1])")
    assert lying == {"kind": "bar", "x": ["a", "b"], "y": [3, 1], "horizontal": True}
    named = only_series(plotting, "plt.bar([0, 1], [3, 1]); plt.xticks([0, 1], ['x', 'y'])")
    assert named["x"] == ["x", "y"]


def test_stacked_bars(plotting: Guest) -> None:
    (axes,) = axes_of(
        plotting, "plt.bar(['a', 'b'], [3, 1], label='p'); plt.bar(['a', 'b'], [2, 5], bottom=[3, 1], label='q')"
    )
    assert axes["series"] == [
        {"kind": "bar", "label": "p", "x": ["a", "b"], "y": [3, 1]},
        {"kind": "bar", "label": "q", "x": ["a", "b"], "y": [2, 5], "base": [3, 1]},
    ]


def test_histogram(plotting: Guest) -> None:
    series = only_series(plotting, "_ = plt.hist([1, 1, 2, 3, 3, 3], bins=[0.5, 1.5, 2.5, 3.5])")
    assert series == {"kind": "histogram", "edges": [0.5, 1.5, 2.5, 3.5], "y": [2, 1, 3]}


def test_pie(plotting: Guest) -> None:
    series = only_series(plotting, "_ = plt.pie([3, 1], labels=['a', 'b'], autopct='%d%%')")
    assert series == {"kind": "pie", "labels": ["a", "b"], "values": [3, 1], "fractions": [0.75, 0.25]}


def test_box(plotting: Guest) -> None:
    series = only_series(plotting, "_ = plt.boxplot([[1, 2, 3, 4, 5, 20], [2, 2, 2]])")
    assert series["kind"] == "box"
    first, second = series["boxes"]
    assert (first["q1"], first["median"], first["q3"], first["outliers"]) == (2.25, 3.5, 4.75, [20])
    assert (first["low"], first["high"]) == (1, 5)
    assert (second["median"], second["outliers"]) == (2, [])


def test_error_bars(plotting: Guest) -> None:
    series = only_series(plotting, "plt.errorbar([1, 2], [10, 20], yerr=[1, 2], label='e')")
    assert series == {
        "kind": "error_bars", "label": "e", "x": [1, 2], "y": [10, 20], "y_low": [9, 18], "y_high": [11, 22],
    }  # fmt: skip


def test_twin_axes(plotting: Guest) -> None:
    left, right = axes_of(
        plotting,
        "f, a = plt.subplots(); a.plot([1, 2], [3, 4]); a.set_ylabel('°C')\n"
        "b = a.twinx(); b.plot([1, 2], [300, 400]); b.set_ylabel('hPa')",
    )
    assert (left["y_label"], left["series"][0]["y"]) == ("°C", [3, 4])
    assert (right["y_label"], right["series"][0]["y"], right["twin_of"]) == ("hPa", [300, 400], 0)
    assert "twin_of" not in left


def test_sub_plots(plotting: Guest) -> None:
    cell = plotting.run(
        "f, axes = plt.subplots(2, 2, sharex=True); f.suptitle('all')\n"
        "for n, a in enumerate(axes.flat): a.plot([n]); a.set_title(f'plot {n}')"
    )
    chart = cell.only.chart
    assert chart is not None
    assert chart["title"] == "all"
    assert [axes["title"] for axes in chart["axes"]] == ["plot 0", "plot 1", "plot 2", "plot 3"]
    assert not any("twin_of" in axes for axes in chart["axes"])


def test_times_heat_maps_and_reference_lines(plotting: Guest) -> None:
    dates = only_series(
        plotting, "import datetime as d\nplt.plot([d.date(2026, 1, 1), d.datetime(2026, 1, 2, 12)], [1, 2])"
    )
    assert dates["x"] == ["2026-01-01", "2026-01-02T12:00:00"]
    grid, bar = axes_of(plotting, "plt.imshow([[1, 2], [3, 4]]); plt.colorbar(label='depth')")
    assert grid["series"] == [{"kind": "heatmap", "shape": [2, 2], "low": 1, "high": 4, "values": [[1, 2], [3, 4]]}]
    assert bar == {"kind": "colorbar", "label": "depth"}
    (axes,) = axes_of(plotting, "plt.plot([1]); plt.axhline(5, label='limit'); plt.axvline(2)")
    assert axes["series"][1:] == [
        {"kind": "horizontal_line", "label": "limit", "y": 5},
        {"kind": "vertical_line", "x": 2},
    ]


def test_long_series_are_thinned_and_counted(plotting: Guest) -> None:
    series = only_series(plotting, "plt.plot(range(1000))")
    assert (len(series["y"]), series["y"][0], series["y"][-1], series["points"]) == (100, 0, 999, 1000)
