"""From scripts to structured results."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from pyexec.domain.executions import Execution
from pyexec.domain.text import legible
from pyexec.mcp import results_scripts as results
from pyexec.mcp.views import iso_time

if TYPE_CHECKING:
    from pyexec.scripts.autosaved import AutosavedScript
    from pyexec.scripts.library import SavedScript

DOCSTRING_LENGTH = 200


def saved_script(script: "SavedScript", last: Execution | None = None) -> results.ScriptRow:
    """Return one script of the library, and its last run."""
    return results.ScriptRow(
        name=legible(script.name),
        path=legible(str(script.path)),
        docstring=docstring_start(script.docstring),
        dependencies=list(script.dependencies) or None,
        requires_python=script.requires_python,
        last_job_id=last.id if last else None,
        last_status=last.state if last else None,
        last_run_at=iso_time(last.created_at) if last else None,
        fault=script.fault,
    )


def autosaved_script(script: "AutosavedScript", last: Execution | None) -> results.ScriptRow:
    """Return one piece of inline code that was kept, and its last run."""
    return results.ScriptRow(
        name=script.name,
        path=str(script.path),
        docstring=docstring_start(script.docstring),
        last_job_id=script.last_job_id,
        last_status=last.state if last else None,
        last_run_at=iso_time(script.last_run_at),
        runs=script.runs,
    )


def scripts(
    saved: "Sequence[SavedScript]",
    last_runs: Mapping[Path, Execution],
    autosaved: "Sequence[AutosavedScript] | None" = None,
    last_jobs: Mapping[str, Execution] = MappingProxyType({}),
) -> results.Scripts:
    """Return the result of `py_list_scripts`."""
    rows = None
    if autosaved is not None:
        rows = [autosaved_script(one, last_jobs.get(one.last_job_id or "")) for one in autosaved]
    return results.Scripts(scripts=[saved_script(one, last_runs.get(one.path)) for one in saved], autosaved=rows)


def docstring_start(docstring: str | None) -> str | None:
    """Return the first paragraph of a docstring as one line, and not more than 200 characters of it."""
    if docstring is None:
        return None
    line = legible(" ".join(docstring.strip().partition("\n\n")[0].split()))
    return line if len(line) <= DOCSTRING_LENGTH else f"{line[:DOCSTRING_LENGTH]}…"
