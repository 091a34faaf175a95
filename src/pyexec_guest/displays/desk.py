"""What cells show, as MIME bundles, in order."""

import base64
import binascii
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from pyexec_guest.displays import pictures, tables
from pyexec_guest.displays.figures import Figures
from pyexec_guest.hooks import ImportHooks
from pyexec_guest.outgoing import Store
from pyexec_guest.text import clip, describe

MOST = 50
INLINE_CHARACTERS = 16_000
LARGEST_BYTES = 8 * 1024 * 1024
PLAIN_CHARACTERS = 20_000
NOTES = 10
LONGEST_TYPE = 100

_SUFFIXES = {
    "text/html": ".html",
    "text/markdown": ".md",
    "text/latex": ".tex",
    "image/svg+xml": ".svg",
    "application/pdf": ".pdf",
    "application/json": ".json",
}
_JSON_ENDINGS = ("json", "+json")
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_LEFT_OUT = ("application/javascript",)
_PLAIN_TYPES = frozenset({bool, bytes, complex, dict, float, frozenset, int, list, set, str, tuple})

_TABLES = (
    (("pandas", "DataFrame"), tables.from_pandas),
    (("pandas", "Series"), tables.from_pandas),
    (("pandas.core.frame", "DataFrame"), tables.from_pandas),
    (("pandas.core.series", "Series"), tables.from_pandas),
    (("polars.dataframe.frame", "DataFrame"), tables.from_polars),
    (("polars.series.series", "Series"), tables.from_polars),
)
_ALTAIR = tuple(f"altair.vegalite.v{version}.api" for version in (4, 5, 6, 7))

Send = Callable[["dict[str, Any]"], None]


class Displays:
    """Takes what a cell shows, makes it fit, and sends it."""

    def __init__(self, hooks: ImportHooks) -> None:
        self._send: Send | None = None
        self._files: Store | None = None
        self._notes: list[str] = []
        self._count = 0
        self._left_out = 0
        self._formatter: Any = None
        self._count_of_formatters = -1
        self._taught: list[tuple[Any, Any, Any]] = []
        self._figures = Figures(self._on_figure, self._note)
        self._figures.install(hooks)
        hooks.after("plotly.basedatatypes", self._patch_plotly)

    def install(self, formatter: Any) -> None:
        """Teach IPython's formatter about the types that have a form of their own here."""
        self._formatter = formatter
        own = formatter.ipython_display_formatter
        own.for_type_by_name("matplotlib.figure", "Figure", self._guarded(self._figures.show))
        own.for_type_by_name("PIL.Image", "Image", self._guarded(self._image))
        own.for_type_by_name("plotly.basedatatypes", "BaseFigure", self._guarded(self._plotly))
        for module in _ALTAIR:
            own.for_type_by_name(module, "TopLevelMixin", self._guarded(self._altair))
        for (module, name), describe_table in _TABLES:
            own.for_type_by_name(module, name, self._guarded(self._table_with(describe_table)))

    def connect(self, send: Send, files: "Store | None") -> None:
        """Send from now on what is shown, and have what is too large for that kept as files."""
        self._send = send
        self._files = files

    def begin(self) -> None:
        """Begin a turn."""
        self._notes = []
        self._count = self._left_out = 0
        self._figures.begin()

    def finish(self) -> None:
        """Show what is still to be shown at the end of a cell."""
        self._figures.finish()

    def notes(self) -> "list[str]":
        """Return what a reader should know about the displays."""
        left_out = (
            [f"{self._left_out} more displays were left out; at most {MOST} are shown."] if self._left_out else []
        )
        return [*self._notes, *left_out]

    def value(self, value: object) -> None:
        """Show the value of a cell's last expression in its richer forms; its text is told elsewhere."""
        if type(value) in _PLAIN_TYPES and not self._has_forms(type(value)):
            return  # Asking IPython's formatters one after the other takes as long as running a short cell.
        data, metadata = self._formatter.format(value, exclude={"text/plain"})
        if data:
            self.published(data, metadata)

    def published(self, data: "dict[str, Any]", _metadata: "dict[str, Any]") -> None:
        """Show a MIME bundle."""
        bundle = {str(kind)[:LONGEST_TYPE]: one for kind, one in data.items() if kind not in _LEFT_OUT}
        picture = next((kind for kind in _PICTURES if kind in bundle), None)
        if picture is not None:
            encoded = _bytes_of(bundle[picture])
            if encoded is not None:
                self._picture(pictures.from_bytes(picture, encoded), "picture")
                return
        parts = {kind: part for kind, one in bundle.items() if (part := self._part(kind, one)) is not None}
        rich = [kind for kind in parts if kind != "text/plain"]
        if not parts:
            return
        if rich:
            parts.pop("text/plain", None)
        self._emit({"kind": _kind_of(rich[0] if rich else "text/plain"), "data": parts})

    def _has_forms(self, kind: type) -> bool:
        """Tell whether the program has taught a formatter a form of a type that has none of itself."""
        formatters = self._formatter.formatters
        if len(formatters) != self._count_of_formatters:
            self._count_of_formatters = len(formatters)
            rich = [one for media_type, one in formatters.items() if media_type != "text/plain"]
            self._taught = [
                (one.type_printers, one.deferred_printers, one.singleton_printers)
                for one in (self._formatter.ipython_display_formatter, self._formatter.mimebundle_formatter, *rich)
            ]
        by_name = (kind.__module__, kind.__name__)
        for types, names, singletons in self._taught:  # noqa: SIM110 - which takes twice as long
            if kind in types or by_name in names or singletons:
                return True
        return False

    # -- types with a form of their own ----------------------------------------------------------------------------

    def _on_figure(self, picture: pictures.Picture, chart: "dict[str, Any] | None") -> None:
        self._picture(picture, "figure", {} if chart is None else {"chart": json.dumps(chart)})

    def _image(self, image: Any) -> None:
        width, height = image.size
        picture = pictures.from_image(image)
        more = {} if (width, height) == (picture.width, picture.height) else {"original": [width, height]}
        self._picture(picture, "picture", more)

    def _picture(self, picture: pictures.Picture, kind: str, more: "dict[str, Any] | None" = None) -> None:
        if len(picture.data) > LARGEST_BYTES:
            self._note(f"A picture of {len(picture.data)} bytes is too large to be shown.")
            return
        name = f"{kind}-{self._count + 1}{picture.suffix}"
        part = self._stored(name, picture.data) or {"base64": base64.b64encode(picture.data).decode("ascii")}
        size = {"width": picture.width, "height": picture.height} if picture.width else {}
        self._emit({"kind": kind, "data": {picture.media_type: part}, **size, **(more or {})})

    def _plotly(self, figure: Any) -> None:
        spec = json.loads(figure.to_json())
        spec.get("layout", {}).pop("template", None)  # A theme says nothing, at great length.
        self._json("plotly", "application/vnd.plotly.v1+json", json.dumps(spec))

    def _altair(self, chart: Any) -> None:
        spec = chart.to_dict()
        version = str(spec.get("$schema", "")).rpartition("/v")[2].partition(".")[0] or "5"
        self._json("altair", f"application/vnd.vegalite.v{version}+json", json.dumps(spec))

    def _json(self, kind: str, media_type: str, text: str) -> None:
        part = self._part(media_type, text)
        if part is not None:
            self._emit({"kind": kind, "data": {media_type: part}})

    def _table_with(self, describe_table: "Callable[[Any], dict[str, Any]]") -> "Callable[[Any], None]":
        def show(frame: Any) -> None:
            table = describe_table(frame)
            fields: dict[str, Any] = {"kind": "table", "data": {}, "table": json.dumps(table)}
            if self._files is not None and self._count < MOST:
                name = f"table-{self._count + 1}.csv"
                with suppress(Exception):  # Its cells may be anything; the beginning is there.
                    size = self._files.keep_written(name, lambda path: tables.write_csv(frame, path))
                    if size is not None:
                        fields["data"] = {"text/csv": {"file": name, "size": size}}
            self._emit(fields)

        return show

    def _patch_plotly(self, module: Any) -> None:
        """Have `figure.show()` show it here, instead of opening a browser."""

        def show(figure: Any, *_args: Any, **_options: Any) -> None:
            """Show the figure."""
            self._plotly(figure)

        module.BaseFigure.show = show

    # -- making it fit ---------------------------------------------------------------------------------------------

    def _part(self, media_type: str, value: Any) -> "dict[str, Any] | None":
        """Return one form of a display: its text, or the file it was put into."""
        if isinstance(value, bytes):
            return self._stored(f"display-{self._count + 1}{_suffix(media_type)}", value)
        if not isinstance(value, str):
            try:
                value = json.dumps(_finite(value), default=str)
            except (TypeError, ValueError, RecursionError) as error:
                self._note(f"A display of type {media_type[:80]} is no JSON: {describe(error)}")
                return None
        if media_type == "text/plain" or len(value) <= INLINE_CHARACTERS:
            return {"text": clip(value, PLAIN_CHARACTERS)}
        return self._long_part(media_type, value)

    def _long_part(self, media_type: str, value: str) -> "dict[str, Any] | None":
        data = value.encode("utf-8", "backslashreplace")
        stored = self._stored(f"display-{self._count + 1}{_suffix(media_type)}", data)
        if stored is not None:
            return stored
        if len(data) > LARGEST_BYTES:
            self._note(f"A display of type {media_type[:80]} has {len(data)} bytes and was left out.")
            return None
        return {"text": value}

    def _stored(self, name: str, data: bytes) -> "dict[str, Any] | None":
        """Put data into a file, where there is a folder for it and room."""
        if self._files is None or self._count >= MOST:
            return None
        try:
            if not self._files.keep(name, data):
                return None
        except OSError as error:
            self._note(f"{name} could not be written: {describe(error)}")
            return None
        return {"file": name, "size": len(data)}

    def _emit(self, shown: "dict[str, Any]") -> None:
        if self._count >= MOST:
            self._left_out += 1
            return
        self._count += 1
        if self._send is not None:
            self._send(shown)

    def _note(self, text: str) -> None:
        if text not in self._notes and len(self._notes) < NOTES:
            self._notes.append(text)

    def _guarded(self, show: "Callable[[Any], None]") -> "Callable[[Any], None]":
        """Have a fault in showing a value noted, never raised into the cell."""

        def guarded(value: Any) -> None:
            try:
                show(value)
            except Exception as error:  # noqa: BLE001 - the program's own objects
                self._note(f"A {type(value).__name__} could not be shown: {describe(error)}")

        return guarded


def _bytes_of(value: Any) -> "bytes | None":
    """Return the bytes of a picture, which is base64 in some bundles."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        with suppress(binascii.Error, ValueError):
            return base64.b64decode(value, validate=False)
    return None


def _kind_of(media_type: str) -> str:
    if media_type.endswith(_JSON_ENDINGS):
        return "json"
    name = media_type.rpartition("/")[2].partition("+")[0]
    return {"plain": "text"}.get(name, name)[:40]


def _suffix(media_type: str) -> str:
    if media_type.endswith(_JSON_ENDINGS):
        return ".json"
    return _SUFFIXES.get(media_type, ".txt" if media_type.startswith("text/") else ".bin")


def _finite(value: Any, depth: int = 0) -> Any:
    """Return a JSON value with NaN and infinities as their text."""
    if depth > 50:
        raise RecursionError("it is nested too deeply")
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    if isinstance(value, dict):
        return {str(key): _finite(one, depth + 1) for key, one in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_finite(one, depth + 1) for one in cast("list[Any]", value)]
    return value
