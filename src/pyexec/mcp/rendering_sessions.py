"""Sessions as markdown."""

from pyexec.mcp.results_sessions import SessionChange, SessionEntry, SessionInfo, SessionList
from pyexec.mcp.views_sessions import variable_line

PACKAGES_SHOWN = 60


def render_list(result: SessionList) -> str:
    """Return `list_sessions` as markdown."""
    if not result.sessions:
        return "There are no sessions; execute_python with a session_id starts one."
    rows = ["| session | state | idle | memory | waiting |", "|---|---|---|---|---|"]
    rows += [
        f"| `{one.session_id}`{_environment(one)} | {one.state}{f': {one.reason}' if one.reason else ''} "
        f"| {'' if one.idle_seconds is None else f'{one.idle_seconds:.0f} s'} | {_memory(one)} | {one.waiting or ''} |"
        for one in result.sessions
    ]
    return "\n".join(rows)


def render_info(result: SessionInfo) -> str:
    """Return `session_info` as markdown."""
    one = result.session
    if one is None:
        return ""
    told = [f"**{one.state}**", one.reason, result.python and f"Python {result.python}", _memory(one)]
    parts = [f"Session `{one.session_id}`{_environment(one)}: {', '.join(filter(None, told))}.", result.note or ""]
    if result.variables:
        parts.append("\n".join(f"- {variable_line(variable)}" for variable in result.variables))
    elif result.variables is not None:
        parts.append("It has no variables.")
    if result.packages:
        more = len(result.packages) - PACKAGES_SHOWN
        parts.append(
            f"Packages: {', '.join(result.packages[:PACKAGES_SHOWN])}" + (f" and {more} more" if more > 0 else "")
        )
    return "\n\n".join(part for part in parts if part)


def render_change(result: SessionChange) -> str:
    """Return what was done with a session as markdown."""
    job = f" Job `{result.job_id}`." if result.job_id else ""
    return f"Session `{result.session_id}`: {result.message}{job}"


def _environment(one: SessionEntry) -> str:
    return f" in environment `{one.environment}`" if one.environment else ""


def _memory(one: SessionEntry) -> str:
    if one.memory_mb is None:
        return ""
    limit = f" of {one.memory_limit_mb:.0f}" if one.memory_limit_mb is not None else ""
    return f"{one.memory_mb:.0f}{limit} MB"
