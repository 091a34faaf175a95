"""The result of `execute_python` as markdown."""

from typing import Any, cast

from pyexec.mcp.rendering import fenced, render_run
from pyexec.mcp.results_execute import PythonResult, Shown

COLUMNS = 20
CELL_CHARACTERS = 60
ROWS = 10
FILES = 20


def render_python(result: PythonResult) -> str:
    """Return what a reader sees first: how it ended, what it printed, its value, what it showed."""
    exception = result.exception
    plain = result
    if exception is not None or result.resolved_dependencies is not None:
        error = None if exception is not None and result.status == "failed" else result.error
        plain = result.model_copy(update={"error": error, "resolved_dependencies": None})
    head, *rest = render_run(plain).split("\n\n", 1)
    if result.session_id is not None:
        head = f"{head} Session `{result.session_id}`."
    parts = [head]
    if exception is not None:
        parts.append(f"**{exception.type}**" + (f": {exception.message}" if exception.message else ""))
        parts.append(fenced(exception.traceback) if exception.traceback else "")
    parts += rest
    if result.result is not None and not _is_told_by_a_table(result):
        parts.append(f"result:\n{fenced(result.result)}")
    parts += [_display(number, display) for number, display in enumerate(result.displays or [], start=1)]
    shown = {display.uri for display in result.displays or []}
    others = [file for file in result.files or [] if file.uri not in shown]
    if others:
        more = f", and {len(others) - FILES} more" if len(others) > FILES else ""
        parts.append("Files: " + ", ".join(f"`{file.uri}` ({file.size} bytes)" for file in others[:FILES]) + more)
    if result.success and not (result.stdout or result.stderr or result.result or result.displays):
        parts.append("It printed nothing and has no value.")
    return "\n\n".join(part for part in parts if part)


def _is_told_by_a_table(result: PythonResult) -> bool:
    return any(display.table is not None for display in (result.displays or [])[-1:])


def _display(number: int, display: Shown) -> str:
    size = f" {display.width}x{display.height}" if display.width else ""
    where = f" `{display.uri}`" if display.uri else ""
    title = f"[{number}] {display.kind}{size}{where}"
    parts = [title]
    if display.table is not None:
        parts.append(_table(display.table))
    elif display.text is not None:
        parts.append(fenced(display.text))
    if display.chart is not None:
        parts.append(_chart(display.chart))
    return "\n".join(parts)


def _table(table: dict[str, Any]) -> str:
    columns = _objects(table.get("columns"))[:COLUMNS]
    rows = [_list(row) for row in _list(table.get("rows"))[:ROWS]]
    shape = " x ".join(str(side) for side in _list(table.get("shape")))
    names = [f"{_cell(column.get('name'))} ({_cell(column.get('type'))})" for column in columns]
    lines = [f"{shape}, first {len(rows)} rows:", "", "| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(_cell(cell) for cell in row[:COLUMNS]) + " |" for row in rows]
    return "\n".join(lines)


def _chart(chart: dict[str, Any]) -> str:
    """Say in a line for each pair of axes what is in it; the numbers are in the structured result."""
    lines: list[str] = []
    for axes in _objects(chart.get("axes")):
        series = [f"{one.get('kind')} {one.get('label', '')}".strip() for one in _objects(axes.get("series"))]
        name = axes.get("title") or axes.get("y_label") or axes.get("label") or "axes"
        lines.append(f"- {_cell(name)}: {_cell(', '.join(series))}")
    return "\n".join(lines)


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _objects(value: Any) -> list[dict[str, Any]]:
    return [cast("dict[str, Any]", one) for one in _list(value) if isinstance(one, dict)]


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    short = text if len(text) <= CELL_CHARACTERS else f"{text[:CELL_CHARACTERS]}…"
    return short.replace("|", "\\|").replace("\n", " ")
