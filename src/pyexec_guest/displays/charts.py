"""The numbers behind a matplotlib figure, so that whoever cannot see it can read it."""

import contextlib
import importlib
import itertools
import math
import warnings
from collections.abc import Callable, Iterable
from typing import Any, cast

from pyexec_guest.text import clip

AXES = 24
SERIES = 40
POINTS = 100
TEXTS = 20
TEXT_CHARACTERS = 200
GRID = 400
_RECORDS = "_pyexec_records"


def patch_axes(axes_module: Any) -> None:
    """Have axes remember what was given to the plots whose artists do not tell it: boxes, violins, pies."""
    axes = axes_module.Axes
    _remember(axes, "bxp", _boxes)
    _remember(axes, "violin", _violins)
    _remember(axes, "pie", _pie)


def chart_of(figure: Any) -> "dict[str, Any] | None":
    """Return titles, axes and series of a figure; None where it has none that we know."""
    axes = figure.axes[:AXES]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        described = [_axes(one, axes) for one in axes]
    described = [one for one in described if one is not None]
    if not described:
        return None
    chart: dict[str, Any] = {}
    title = getattr(figure, "_suptitle", None)
    if title is not None and title.get_text():
        chart["title"] = _text(title.get_text())
    chart["axes"] = described
    if len(figure.axes) > AXES:
        chart["axes_left_out"] = len(figure.axes) - AXES
    return chart


# -- what plots are asked for, remembered --------------------------------------------------------------------------


def _remember(axes: Any, name: str, describe: "Callable[[Any, Any], dict[str, Any]]") -> None:
    plain = getattr(axes, name)
    if hasattr(plain, _RECORDS):
        return

    def method(self: Any, *args: Any, **options: Any) -> Any:
        made = plain(self, *args, **options)
        with contextlib.suppress(Exception):  # Another version than we know: its artists are told instead.
            given = args[0] if args else next(iter(options.values()))
            record = {**describe(given, (args, options)), "artists": {id(one) for one in _artists(made)}}
            self.__dict__.setdefault(_RECORDS, []).append(record)
        return made

    method.__name__, method.__doc__ = name, plain.__doc__
    setattr(method, _RECORDS, True)
    method.__wrapped__ = plain  # type: ignore[attr-defined]
    setattr(axes, name, method)


def _artists(made: Any) -> "Iterable[Any]":
    if isinstance(made, dict):
        for value in cast("dict[str, Any]", made).values():
            yield from _artists(value)
    elif isinstance(made, list | tuple):
        for value in cast("list[Any]", made):
            yield from _artists(value)
    elif hasattr(made, "wedges"):
        yield from made.wedges
    else:
        yield made


def _boxes(stats: Any, _given: Any) -> "dict[str, Any]":
    boxes = [
        {
            "label": _text(str(one.get("label", ""))),
            "low": _number(one["whislo"]),
            "q1": _number(one["q1"]),
            "median": _number(one["med"]),
            "q3": _number(one["q3"]),
            "high": _number(one["whishi"]),
            "outliers": _numbers(one.get("fliers", ())),
        }
        for one in stats
    ]
    return {"kind": "box", "boxes": boxes}


def _violins(stats: Any, _given: Any) -> "dict[str, Any]":
    violins = [{name: _number(one[name]) for name in ("min", "median", "mean", "max") if name in one} for one in stats]
    return {"kind": "violin", "violins": violins}


def _pie(values: Any, given: Any) -> "dict[str, Any]":
    args, options = given
    labels = options.get("labels", args[2] if len(args) > 2 else None)
    numbers = [float(one) for one in values]
    total = sum(numbers)
    return {
        "kind": "pie",
        "labels": [_text(str(one)) for one in labels] if labels is not None else [],
        "values": _numbers(numbers),
        "fractions": _numbers(one / total if total else 0.0 for one in numbers),
    }


# -- axes ----------------------------------------------------------------------------------------------------------


def _axes(axes: Any, others: "list[Any]") -> "dict[str, Any] | None":
    if not axes.get_visible():
        return None
    if hasattr(axes, "_colorbar"):
        return {"kind": "colorbar", "label": _text(axes.get_ylabel() or axes.get_xlabel())}
    told: dict[str, Any] = {}
    for name, value in (("title", axes.get_title()), ("x_label", axes.get_xlabel()), ("y_label", axes.get_ylabel())):
        if value:
            told[name] = _text(value)
    twin = _twin_of(axes, others)
    if twin is not None:
        told["twin_of"] = twin
    for name in ("x", "y"):
        scale = getattr(axes, f"get_{name}scale")()
        if scale != "linear":
            told[f"{name}_scale"] = scale
        told[f"{name}_range"] = _numbers(getattr(axes, f"get_{name}lim")())
        ticks = _categories(getattr(axes, f"{name}axis"))
        if ticks:
            told[f"{name}_categories"] = [label for _at, label in ticks]
    reader = _Reader(axes)
    series = reader.series()
    told["series"] = series[:SERIES]
    if len(series) > SERIES:
        told["series_left_out"] = len(series) - SERIES
    texts = [_text(one.get_text()) for one in axes.texts if one.get_text()][:TEXTS]
    if texts and not any(one["kind"] == "pie" for one in series):
        told["texts"] = texts
    return told


def _twin_of(axes: Any, others: "list[Any]") -> "int | None":
    place = axes.get_position().bounds
    for at, other in enumerate(others):
        if other is axes:
            return None
        if other.get_position().bounds == place:
            shared = (axes.get_shared_x_axes(), axes.get_shared_y_axes())
            if any(group.joined(axes, other) for group in shared):
                return at
    return None


def _categories(axis: Any) -> "list[tuple[float, str]]":
    """Return places and names of an axis that counts things: strings that were given, or ticks that were named."""
    mapping = getattr(getattr(axis, "units", None), "_mapping", None)
    if mapping:
        return [(float(at), _text(str(name))) for name, at in list(mapping.items())[:POINTS]]
    formatter = axis.get_major_formatter()
    named = getattr(getattr(formatter, "func", None), "args", None)
    if named and isinstance(named[0], dict):  # Ticks that were given names.
        pairs = cast("dict[float, str]", named[0]).items()
        return [(float(at), _text(str(name))) for at, name in list(pairs)[:POINTS] if name]
    names = getattr(formatter, "seq", None)
    if type(formatter).__name__ == "FixedFormatter" and names:
        found = [(float(at), _text(str(name))) for at, name in zip(axis.get_ticklocs(), names, strict=False) if name]
        return found[:POINTS]
    return []


class _Reader:
    """Reads the series of one pair of axes."""

    def __init__(self, axes: Any) -> None:
        self._axes = axes
        self._x = _Scale(axes.xaxis)
        self._y = _Scale(axes.yaxis)
        self._told: set[int] = set()

    def series(self) -> "list[dict[str, Any]]":
        found: list[dict[str, Any]] = []
        for record in getattr(self._axes, _RECORDS, []):
            self._told |= record["artists"]
            found.append({name: value for name, value in record.items() if name != "artists"})
        for container in self._axes.containers:
            one = self._container(container)
            if one is not None:
                found.append(one)
        readers: tuple[tuple[Any, Callable[[Any], dict[str, Any] | None]], ...] = (
            (self._axes.lines, self._line),
            (self._axes.collections, self._collection),
            (self._axes.images, self._image),
            (self._axes.patches, self._patch),
        )
        for artists, read in readers:
            for artist in artists:
                if id(artist) in self._told or not artist.get_visible():
                    continue
                one = read(artist)
                if one is not None:
                    found.append(one)
        return found

    def _container(self, container: Any) -> "dict[str, Any] | None":
        kind = type(container).__name__
        if kind == "BarContainer":
            return self._bars(container)
        if kind == "ErrorbarContainer":
            return self._errors(container)
        if kind == "StemContainer":
            self._told |= {id(one) for one in (container.markerline, container.baseline, container.stemlines)}
            return self._points(container.markerline, "stem", container.get_label())
        return None

    def _bars(self, container: Any) -> "dict[str, Any] | None":
        patches = list(container.patches)
        self._told |= {id(one) for one in patches}
        errors = getattr(container, "errorbar", None)
        if errors is not None:
            self._forget(errors)
        if not patches:
            return None
        flat = getattr(container, "orientation", None) == "horizontal"
        places = [(one.get_y(), one.get_height()) if flat else (one.get_x(), one.get_width()) for one in patches]
        values = [one.get_width() if flat else one.get_height() for one in patches]
        bases = [one.get_x() if flat else one.get_y() for one in patches]
        label = _label(container.get_label())
        axis = self._y if flat else self._x
        if axis.counts or not _touching(places):
            told: dict[str, Any] = {"kind": "bar", **label, "x": axis.values(at + size / 2 for at, size in places)}
        else:
            edges = [*(at for at, _size in places), places[-1][0] + places[-1][1]]
            told = {"kind": "histogram", **label, "edges": axis.values(edges)}
        told["y"] = (self._x if flat else self._y).values(values)
        if any(bases):
            told["base"] = _numbers(bases)
        if flat:
            told["horizontal"] = True
        return told

    def _errors(self, container: Any) -> "dict[str, Any] | None":
        line, _caps, bars = container.lines
        self._forget(container)
        told: dict[str, Any] = {"kind": "error_bars", **_label(container.get_label())}
        if line is not None:
            told |= self._xy(line.get_xdata(), line.get_ydata())
        names = [name for name, there in (("x", container.has_xerr), ("y", container.has_yerr)) if there]
        for name, collection in zip(names, bars, strict=False):
            at = 0 if name == "x" else 1
            ends = [(segment[0][at], segment[-1][at]) for segment in collection.get_segments() if len(segment)]
            told[f"{name}_low"] = _numbers(min(pair) for pair in ends)
            told[f"{name}_high"] = _numbers(max(pair) for pair in ends)
        return told

    def _forget(self, container: Any) -> None:
        line, caps, bars = container.lines
        self._told |= {id(one) for one in (line, *caps, *bars)}

    def _line(self, line: Any) -> "dict[str, Any] | None":
        data = self._axes.transData
        if line.get_transform() != data:
            return self._reference(line)
        joined = str(line.get_linestyle()).lower() not in ("none", "", " ")
        return self._points(line, "line" if joined else "scatter", line.get_label())

    def _reference(self, line: Any) -> "dict[str, Any] | None":
        x, y = list(line.get_xdata()), list(line.get_ydata())
        if len(x) != 2 or len(y) != 2:
            return None
        if x[0] == x[1]:
            return {"kind": "vertical_line", **_label(line.get_label()), "x": self._x.values([x[0]])[0]}
        return {"kind": "horizontal_line", **_label(line.get_label()), "y": self._y.values([y[0]])[0]}

    def _points(self, line: Any, kind: str, label: Any) -> "dict[str, Any]":
        return {"kind": kind, **_label(label), **self._xy(line.get_xdata(orig=False), line.get_ydata(orig=False))}

    def _xy(self, x: Any, y: Any) -> "dict[str, Any]":
        told: dict[str, Any] = {"x": self._x.values(x), "y": self._y.values(y)}
        if len(x) > POINTS:
            told["points"] = len(x)
        return told

    def _collection(self, collection: Any) -> "dict[str, Any] | None":
        kind = type(collection).__name__
        if kind == "PathCollection":
            return self._scatter(collection)
        if kind == "QuadMesh":
            return {**self._grid(collection.get_array()), **_label(collection.get_label())}
        if kind in ("PolyCollection", "FillBetweenPolyCollection"):
            return self._polygons(collection)
        if kind in ("QuadContourSet", "TriContourSet"):
            return {"kind": "contour", "levels": _numbers(collection.levels)}
        return None

    def _scatter(self, collection: Any) -> "dict[str, Any]":
        told = {"kind": "scatter", **_label(collection.get_label()), **self._corners(collection.get_offsets())}
        values = collection.get_array()
        if values is not None:
            told["colour_values"] = _numbers(values)
        return told

    def _polygons(self, collection: Any) -> "dict[str, Any] | None":
        if len(collection.get_offsets()) > 1:
            counts = collection.get_array()
            return {"kind": "hexbin", "bins": len(counts), "y": _numbers(counts)} if counts is not None else None
        paths = collection.get_paths()
        if not paths:
            return None
        return {"kind": "area", **_label(collection.get_label()), **self._corners(paths[0].vertices)}

    def _corners(self, pairs: Any) -> "dict[str, Any]":
        return self._xy([one[0] for one in pairs], [one[1] for one in pairs])

    def _image(self, image: Any) -> "dict[str, Any] | None":
        return self._grid(image.get_array())

    def _grid(self, values: Any) -> "dict[str, Any]":
        shape = [int(side) for side in values.shape]
        if len(shape) != 2:
            return {"kind": "image", "shape": shape}
        told: dict[str, Any] = {"kind": "heatmap", "shape": shape}
        told |= {"low": _number(values.min()), "high": _number(values.max())}
        if shape[0] * shape[1] <= GRID:
            told["values"] = [_numbers(row) for row in values]
        return told

    def _patch(self, patch: Any) -> "dict[str, Any] | None":
        kind = type(patch).__name__
        if kind == "Wedge":
            fraction = (patch.theta2 - patch.theta1) / 360
            return {"kind": "wedge", **_label(patch.get_label()), "fraction": _number(fraction)}
        if kind == "StepPatch":
            data = patch.get_data()
            label = _label(patch.get_label())
            return {"kind": "steps", **label, "edges": self._x.values(data.edges), "y": self._y.values(data.values)}
        if kind == "Polygon":
            return {"kind": "polygon", **_label(patch.get_label()), **self._corners(patch.get_xy())}
        return None


class _Scale:
    """Turns the numbers of an axis into what they stand for: categories, times, or numbers."""

    def __init__(self, axis: Any) -> None:
        self._names = dict(_categories(axis))
        converter = axis.get_converter() if hasattr(axis, "get_converter") else getattr(axis, "converter", None)
        self._dates = "Date" in type(converter).__name__ or "Date" in type(axis.get_major_formatter()).__name__
        self.counts = bool(self._names)

    def values(self, numbers: "Iterable[Any]") -> "list[Any]":
        """Return them, at most so many, evenly picked."""
        picked = _picked(list(numbers))
        if self._dates:
            return [_date(one) for one in picked]
        return [self._names.get(round(float(one), 6), _number(one)) for one in picked]


def _date(number: Any) -> Any:
    dates: Any = importlib.import_module("matplotlib.dates")
    try:
        moment = dates.num2date(float(number))
    except (ValueError, OverflowError, TypeError):
        return _number(number)
    return moment.strftime("%Y-%m-%d") if moment.time().isoformat() == "00:00:00" else moment.isoformat()[:19]


def _touching(places: "list[tuple[float, float]]") -> bool:
    """Tell whether each bar begins where the last one ends, as those of a histogram do."""
    if len(places) < 2:
        return False
    scale = abs(places[-1][0] + places[-1][1] - places[0][0]) or 1.0
    return all(abs(at + size - after) < 1e-6 * scale for (at, size), (after, _size) in itertools.pairwise(places))


def _label(label: object) -> "dict[str, str]":
    text = str(label)
    return {} if label is None or text.startswith("_") or not text else {"label": _text(text)}


def _picked(numbers: "list[Any]") -> "list[Any]":
    if len(numbers) <= POINTS:
        return numbers
    step = (len(numbers) - 1) / (POINTS - 1)
    return [numbers[round(at * step)] for at in range(POINTS)]


def _numbers(numbers: "Iterable[Any]") -> "list[Any]":
    return [_number(one) for one in _picked(list(numbers))]


def _number(value: Any) -> Any:
    """Return a number at six digits, which a reader can take in; what is none as text."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None if value is None or type(value).__name__ == "MaskedConstant" else str(value)
    if type(value).__name__ == "MaskedConstant":
        return None
    if not math.isfinite(number):
        return str(number)
    short = float(f"{number:.6g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def _text(text: str) -> str:
    return clip(text, TEXT_CHARACTERS)
