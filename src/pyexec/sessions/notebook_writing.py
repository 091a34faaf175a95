"""A session as a notebook. Imports nbformat, which takes a while: import this module when it is needed."""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, cast

import nbformat
import nbformat.v4

from pyexec.domain.text import legible
from pyexec.domain.turns import Display, Part
from pyexec.sessions.cells import Cell, SessionEnvironment

_MAY_FAIL = "raises-exception"
_NOT_AGAIN = "skip-execution"
_JSON_ENDINGS = ("/json", "+json")
_TEXT = ("image/svg+xml", "application/javascript", "application/xml")

Bundle = dict[str, Any]

_format: Any = nbformat
_v4: Any = nbformat.v4


def notebook_of(cells: Sequence[Cell], environment: SessionEnvironment) -> str:
    """Return cells with their outputs as the JSON of a notebook.

    Those that failed are marked as ones that may, those that did not end as ones that are not to be run again: so the
    whole notebook can be run.
    """
    notebook = _v4.new_notebook(
        cells=[_cell(cell, number) for number, cell in enumerate(cells, start=1)],
        metadata={
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python", "version": environment.python_version},
        },
    )
    _format.validate(notebook)
    return cast("str", _format.writes(notebook, version=4, ensure_ascii=False))


def _cell(cell: Cell, number: int) -> Any:
    tag = None if cell.went_wrong is None else _MAY_FAIL if cell.would_end else _NOT_AGAIN
    return _v4.new_code_cell(
        id=f"cell-{number}",
        source=legible(cell.code),
        execution_count=cell.execution_count,
        metadata={} if tag is None else {"tags": [tag]},
        outputs=list(_outputs(cell)),
    )


def _outputs(cell: Cell) -> Iterator[Any]:
    """Yield the outputs in the order in which they came, as far as it is known; stderr, which is apart, at its end."""
    turn = cell.turn
    printed = cell.stdout.encode("utf-8", "backslashreplace")
    shown = turn.displays if turn else ()
    done = 0
    for display in sorted((one for one in shown if not one.late), key=lambda one: one.number):
        at = min(max(display.stdout_at, done), len(printed))
        yield from _stream("stdout", printed[done:at])
        done = at
        yield _v4.new_output("display_data", data=_bundle(display, cell.files))
    yield from _stream("stdout", printed[done:])
    said = cell.stderr.encode("utf-8", "backslashreplace")
    if turn is not None and turn.told_bytes:
        said = said[: max(0, len(said) - turn.told_bytes)]
    yield from _stream("stderr", said)
    for display in shown:
        if display.late:
            yield _v4.new_output("display_data", data=_bundle(display, cell.files))
    if turn is None:
        return
    for late in turn.late:
        yield from _stream(late.stream, late.text.encode("utf-8", "backslashreplace"))
    if turn.failure is not None:
        failure = turn.failure
        lines = legible(failure.traceback).split("\n")
        yield _v4.new_output("error", ename=legible(failure.type), evalue=legible(failure.message), traceback=lines)
    elif turn.value is not None:
        data = {"text/plain": legible(turn.value)}
        yield _v4.new_output("execute_result", data=data, execution_count=cell.execution_count)


def _stream(name: str, data: bytes) -> Iterator[Any]:
    if data:
        yield _v4.new_output("stream", name=name, text=data.decode("utf-8", "replace"))


def _bundle(display: Display, files: Mapping[str, bytes]) -> Bundle:
    bundle: Bundle = {}
    for part in display.parts:
        bundle.update(_form(part, files))
    if display.table is not None:
        bundle.setdefault("text/html", _table(display.table))
    return bundle or {"text/plain": f"[{legible(display.kind)}]"}


def _form(part: Part, files: Mapping[str, bytes]) -> Bundle:
    """Return one form of a display as notebooks have it: text, JSON, or base64."""
    media_type = legible(part.media_type)
    data = part.data if part.file is None else files.get(part.file)
    if part.text is None and data is None:
        return {"text/plain": f"[{media_type}, {part.size} bytes, which are not kept]"}
    is_json = media_type.endswith(_JSON_ENDINGS)
    if (
        part.text is None
        and data is not None
        and not (is_json or media_type.startswith("text/") or media_type in _TEXT)
    ):
        return {media_type: base64.b64encode(data).decode("ascii")}
    text = legible(part.text) if part.text is not None else (data or b"").decode("utf-8", "backslashreplace")
    if not is_json:
        return {media_type: text}
    try:
        return {media_type: json.loads(text, parse_constant=str)}
    except (ValueError, RecursionError):
        return {"text/plain": text}


def _table(table: Mapping[str, Any]) -> str:
    """Return the first rows of a table as HTML."""
    columns = [_name(column) for column in _list(table.get("columns"))]
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    rows = ["".join(f"<td>{escape(_text(one))}</td>" for one in _list(row)) for row in _list(table.get("rows"))]
    shape = " x ".join(_text(side) for side in _list(table.get("shape")))
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table>\n<tr>{head}</tr>\n{body}\n</table>\n<p>{escape(shape)}, the first {len(rows)} rows</p>"


def _name(column: Any) -> str:
    return _text(cast("dict[str, Any]", column).get("name")) if isinstance(column, dict) else _text(column)


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _text(value: Any) -> str:
    return "" if value is None else legible(str(value))
