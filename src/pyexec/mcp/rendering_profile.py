"""Profiles as markdown."""

from pyexec.mcp.rendering import render_run
from pyexec.mcp.results_profile import ProfileResult, ProfileRow
from pyexec.profiles.modes import Unit

_COUNTED = {"calls": "calls", "memory": "allocations"}
_ACTIVE = {"pending", "running"}


def render_profile(result: ProfileResult) -> str:
    """Return a profile as markdown."""
    parts = [render_run(result)]
    if result.mode is None or result.unit is None:
        if result.status in _ACTIVE:
            parts.append("`profile_script(job_id)` shows the profile once it has ended.")
        return "\n\n".join(parts)
    counted = _COUNTED.get(result.mode)
    parts.append(f"Profile ({result.mode}): {amount(result.total or 0, result.unit)} in all.")
    parts.append(table(result.rows or [], result.unit, counted))
    if result.text:
        parts.append(f"The largest calls:\n```\n{result.text.replace('```', chr(39) * 3)}\n```")
    if result.artifacts:
        parts.append("Files: " + ", ".join(result.artifacts))
    if result.overhead:
        parts.append(result.overhead)
    return "\n\n".join(parts)


def table(rows: list[ProfileRow], unit: Unit, counted: str | None) -> str:
    """Return the rows as a table."""
    heads = ["own", "total", *([counted] if counted else []), "function", "where"]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for row in rows:
        cells = [amount(row.own, unit), amount(row.total, unit), *([str(row.count or 0)] if counted else [])]
        cells += [_cell(row.function), _cell(f"{row.file}:{row.line}") if row.file else ""]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def amount(value: float, unit: Unit) -> str:
    """Return seconds or bytes for people."""
    if unit == "seconds":
        return f"{value:.4f} s"
    return f"{value / 2**20:.2f} MiB" if value >= 2**20 / 10 else f"{value / 1024:.1f} KiB"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "\\<")
