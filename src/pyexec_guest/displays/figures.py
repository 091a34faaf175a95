"""Matplotlib's figures: each one shown exactly once, and gone when the cell is over."""

import io
import weakref
from collections.abc import Callable
from typing import Any

from pyexec_guest.displays import charts, pictures
from pyexec_guest.hooks import ImportHooks
from pyexec_guest.text import describe

MOST = 20
AXES = 24
WORDS = 40
_SLACK = 0.01

OnFigure = Callable[[pictures.Picture, "dict[str, Any] | None"], None]


class Figures:
    """Watches pyplot. A figure is shown by `plt.show()`, by being a cell's value, or by being open at its end.

    `plt.show()` takes the figures out of pyplot, as closing their windows would; one that is changed after that is
    shown again by another `plt.show()`.
    """

    def __init__(self, on_figure: OnFigure, note: "Callable[[str], None]") -> None:
        self._on_figure = on_figure
        self._note = note
        self._shown: weakref.WeakSet[Any] = weakref.WeakSet()
        self._pyplot: Any = None
        self._count = 0
        self._left_out = 0

    def install(self, hooks: ImportHooks) -> None:
        """Have pyplot show its figures here, once it is imported."""
        hooks.after("matplotlib.axes._axes", charts.patch_axes)
        hooks.after("matplotlib.pyplot", self._patch_pyplot)

    def begin(self) -> None:
        """Begin a turn."""
        if len(self._shown):
            self._shown = weakref.WeakSet()
        self._count = self._left_out = 0

    def show(self, figure: Any) -> None:
        """Show a figure, unless it has been and is still the same."""
        if figure in self._shown and not figure.stale:
            return
        self._shown.add(figure)
        if self._count >= MOST:
            self._left_out += 1
            return
        self._count += 1
        try:
            picture = draw(figure)
        except Exception as error:  # noqa: BLE001 - whatever drawing runs into is in the program's figure
            self._note(f"A figure could not be drawn: {describe(error)}")
            return
        try:
            chart = charts.chart_of(figure)
        except Exception:  # noqa: BLE001 - artists that we do not know; the picture is there
            chart = None
        figure.stale = False
        self._on_figure(picture, chart)

    def finish(self) -> None:
        """Show what is still open, and close it: the next cell begins without figures."""
        if self._pyplot is None:
            return
        for figure in self._open():
            if figure not in self._shown:
                self.show(figure)
        self._pyplot.close("all")
        if self._left_out:
            self._note(f"{self._left_out} more figures were left out; at most {MOST} are shown.")

    def _patch_pyplot(self, pyplot: Any) -> None:
        self._pyplot = pyplot
        pyplot.rcParams["figure.max_open_warning"] = 0

        def show(*_args: Any, **_options: Any) -> None:
            """Show all open figures."""
            shown = [*(figure for figure in self._shown if figure.stale), *self._open()]
            for figure in shown:
                self.show(figure)
            pyplot.close("all")
            for figure in shown:
                figure.stale = False  # Closing changes nothing that could be seen.

        def show_one(figure: Any, *_args: Any, **_options: Any) -> None:
            """Show the figure."""
            self.show(figure)

        pyplot.show = show
        pyplot.Figure.show = show_one

    def _open(self) -> "list[Any]":
        return [self._pyplot.figure(number) for number in self._pyplot.get_fignums()]


def draw(figure: Any) -> pictures.Picture:
    """Draw a figure within the budget; what sticks out of it, such as a legend beside the axes, counts as a part."""
    width, height = (float(side) for side in figure.get_size_inches())
    dpi = min(float(figure.dpi), pictures.PIXELS / max(width, height))
    data = _saved(figure, dpi)
    if _sticks_out(figure):
        data = _saved(figure, dpi, bbox_inches="tight")
    if len(data) > pictures.BYTES:
        return pictures.from_bytes("image/png", data)
    return pictures.Picture("image/png", data, *_png_size(data))


def _saved(figure: Any, dpi: float, **options: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, **options)
    return buffer.getvalue()


def _sticks_out(figure: Any) -> bool:
    """Tell whether words of a figure, or a legend, lie beyond its edge; all artists would take too long."""
    words: list[Any] = [*figure.legends, *figure.texts]
    for axes in figure.axes[:AXES]:
        words += [axes.get_legend(), axes.title, axes.xaxis.label, axes.yaxis.label, *axes.texts[:WORDS]]
        words += [label for axis in (axes.xaxis, axes.yaxis) for label in _tick_labels(axis)]
    left, bottom, right, top = figure.bbox.extents
    slack = _SLACK * max(right - left, top - bottom)
    for word in words:
        if word is None or not word.get_visible() or (hasattr(word, "get_text") and not word.get_text()):
            continue
        x0, y0, x1, y1 = word.get_window_extent().extents
        if x0 < left - slack or y0 < bottom - slack or x1 > right + slack or y1 > top + slack:
            return True
    return False


def _tick_labels(axis: Any) -> "list[Any]":
    low, high = sorted(axis.get_view_interval())
    return [tick.label1 for tick in axis.majorTicks[:WORDS] if low <= tick.get_loc() <= high]


def _png_size(data: bytes) -> "tuple[int, int]":
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
