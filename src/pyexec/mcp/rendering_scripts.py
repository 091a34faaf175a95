"""Scripts as markdown."""

import json

from pyexec.mcp import results_scripts as results
from pyexec.mcp.rendering import cell, fenced


def render_scripts(result: results.Scripts) -> str:
    """Return `py_list_scripts` as markdown."""
    parts = [_table(result.scripts) if result.scripts else "There are no saved scripts; save_script makes one."]
    if result.autosaved is not None:
        parts.append(f"Autosaved:\n\n{_autosaved(result.autosaved)}" if result.autosaved else "Nothing is autosaved.")
    return "\n\n".join(parts)


def render_saved(result: results.ScriptSaved) -> str:
    """Return `save_script` as markdown."""
    script = result.script
    if script is None:
        return ""
    needs = f" It needs {_needs(script)}." if _needs(script) else ""
    fault = f"\n\n**{script.fault}**" if script.fault else ""
    run = f"`run_saved_script(script_name={script.name!r})` runs it."
    return f"Saved **{script.name}** in `{script.path}`.{needs} {run}{fault}"


def render_source(result: results.ScriptSource) -> str:
    """Return `py_view_script` as markdown."""
    parts = [f"`{result.path}`", fenced(result.source, "python")]
    if result.sidecar is not None:
        parts.append(fenced(json.dumps(result.sidecar, indent=1, ensure_ascii=False), "json"))
    return "\n\n".join(parts)


def render_deleted(result: results.ScriptDeleted) -> str:
    """Return `delete_script` as markdown."""
    return f"Deleted **{result.name}** (`{result.path}`)."


def _table(scripts: list[results.ScriptRow]) -> str:
    rows = ["| script | what | needs | last run |", "|---|---|---|---|"]
    rows += [
        f"| `{one.name}` | {cell(_what(one))} | {cell(_needs(one))} "
        f"| {f'{one.last_status} {one.last_run_at} `{one.last_job_id}`' if one.last_job_id else 'never'} |"
        for one in scripts
    ]
    return "\n".join(rows)


def _autosaved(scripts: list[results.ScriptRow]) -> str:
    rows = ["| script | what | runs | last run |", "|---|---|---|---|"]
    rows += [
        f"| `{one.name}` | {cell(one.docstring)} | {one.runs} | {one.last_status or ''} {one.last_run_at} |"
        for one in scripts
    ]
    return "\n".join(rows)


def _what(script: results.ScriptRow) -> str:
    fault = f"**{script.fault}**" if script.fault else ""
    return " ".join(part for part in (script.docstring, fault) if part)


def _needs(script: results.ScriptRow) -> str:
    python = [f"Python {script.requires_python}"] if script.requires_python else []
    return ", ".join([*python, *(script.dependencies or [])])
