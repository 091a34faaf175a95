"""Tables: what their columns are, how large they are, how they begin; and the whole as a file."""

import math
from typing import Any, cast

from pyexec_guest.text import clip

ROWS = 20
COLUMNS = 50
CELLS_IN_FILE = 2_000_000
CELL_CHARACTERS = 200


def from_pandas(frame: Any) -> "dict[str, Any]":
    """Describe a pandas DataFrame or Series."""
    if getattr(frame, "ndim", 2) == 1:
        frame = frame.to_frame(name=frame.name if frame.name is not None else "value")
    head = frame.iloc[:ROWS, :COLUMNS]
    names = [_name(name) for name in frame.columns[:COLUMNS]]
    types = [str(kind) for kind in frame.dtypes.iloc[:COLUMNS]]
    index = frame.index
    shows_index = type(index).__name__ != "RangeIndex" or index.name is not None
    rows = [[_cell(value) for value in row] for row in head.itertuples(index=shows_index, name=None)]
    columns: list[dict[str, Any]] = [{"name": name, "type": kind} for name, kind in zip(names, types, strict=True)]
    if shows_index:
        label = " / ".join(_name(name) for name in index.names if name is not None) or "index"
        columns.insert(0, {"name": label, "type": str(getattr(index, "dtype", "object")), "index": True})
    return _described("pandas", frame.shape, columns, rows)


def from_polars(frame: Any) -> "dict[str, Any]":
    """Describe a polars DataFrame or Series."""
    if not hasattr(frame, "columns"):
        frame = frame.to_frame()
    names = frame.columns[:COLUMNS]
    rows = [[_cell(value) for value in row] for row in frame.select(names).head(ROWS).rows()] if names else []
    columns = [{"name": _name(name), "type": str(frame.schema[name])} for name in names]
    return _described("polars", frame.shape, columns, rows)


def write_csv(frame: Any, path: str) -> bool:
    """Write the whole of a table that is more than a beginning; tell whether it was written."""
    rows, columns = frame.shape if len(frame.shape) == 2 else (frame.shape[0], 1)
    if (rows <= ROWS and columns <= COLUMNS) or rows * columns > CELLS_IN_FILE:
        return False
    if hasattr(frame, "write_csv"):
        frame.write_csv(path)
    elif hasattr(frame, "to_csv"):
        index: Any = getattr(frame, "index", None)
        frame.to_csv(path, index=type(index).__name__ != "RangeIndex" or index.name is not None)
    else:
        frame.to_frame().write_csv(path)
    return True


def _described(library: str, shape: Any, columns: "list[dict[str, Any]]", rows: "list[list[Any]]") -> "dict[str, Any]":
    return {"library": library, "shape": [int(side) for side in shape], "columns": columns, "rows": rows}


def _name(name: object) -> str:
    if isinstance(name, tuple):
        return " / ".join(str(part) for part in cast("tuple[Any, ...]", name))
    return clip(str(name), CELL_CHARACTERS)


def _cell(value: Any) -> Any:
    """Return a value as JSON has it where that is exact, else as text; a missing one as null."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()
    if type(value) is bool or (type(value) is int and abs(value) < 2**53):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else str(value)
    try:
        return clip(str(value), CELL_CHARACTERS)
    except Exception:  # noqa: BLE001 - the program's own code
        return f"<{type(value).__name__}>"
