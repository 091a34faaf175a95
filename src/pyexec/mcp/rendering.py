"""Results as markdown: what a model or a person reads first."""

import json
import re

from pyexec.mcp import results

_BACKTICKS = re.compile(r"`{3,}")
_FINAL = {"completed", "failed", "cancelled", "timed_out", "lost"}


def render_error(code: str, message: str, hint: str | None) -> str:
    """Return what a caller reads when pyexec refused or failed."""
    return f"**Error** `{code}`: {message}" + (f"\n\n{hint}" if hint else "")


def render_run(result: results.RunResult) -> str:
    """Return a run as markdown."""
    parts = [_headline(result)]
    if result.error:
        parts.append(f"**{result.error}**")
    if result.advice:
        parts.append(result.advice)
    parts += _streams(result.stdout, result.stderr)
    if result.truncated and result.status in _FINAL:
        parts.append(
            f"Output was cut: {result.stdout_bytes} bytes on stdout and {result.stderr_bytes} on stderr in all; the "
            f'rest is `py_job_status(job_id, cursor="{result.next_cursor}")`.'
        )
    if result.leftover_processes:
        names = ", ".join(f"{left.command} (pid {left.pid})" for left in result.leftover_processes)
        parts.append(f"Processes left behind were ended: {names}.")
    parts += result.notes or []
    if result.resolved_dependencies:
        parts.append("Dependencies: " + ", ".join(result.resolved_dependencies))
    if result.status not in _FINAL:
        parts.append(
            "It goes on in the background: `get_job_output(job_id)` reads its output, `py_job_status` its state, "
            "`py_cancel_job` ends it."
        )
    return "\n\n".join(parts)


def render_started(result: results.Started) -> str:
    """Return the answer of a tool that does not wait, as markdown."""
    parts = [f"Job `{result.job_id}` has been started (`{result.execution_strategy}`)."]
    if result.resolved_dependencies:
        parts.append("Dependencies: " + ", ".join(result.resolved_dependencies))
    parts.append(
        "`py_job_status(job_id)` tells how it is and what it printed since a cursor, `get_job_output` all of it."
    )
    return "\n\n".join(parts)


def render_running(result: results.RunningJobs) -> str:
    """Return `list_running_jobs` as markdown."""
    if not result.result:
        return "No jobs are running."
    rows = ["| job | status | pid | seconds | label |", "|---|---|---|---|---|"]
    rows += [
        f"| `{job.job_id}` | {job.status} | {job.pid or ''} | {job.elapsed_seconds:.1f} | {cell(job.label)} |"
        for job in result.result
    ]
    return "\n".join(rows)


def render_output(result: results.JobOutput) -> str:
    """Return `get_job_output` as markdown."""
    code = "" if result.exit_code is None else f", exit code {result.exit_code}"
    parts = [f"Job `{result.job_id}` is {result.status} ({result.state}{code}) after {result.elapsed_seconds:.2f} s"]
    if result.error:
        parts.append(f"**{result.error}**")
    parts += _gap_note(result.gap_bytes)
    parts += _streams(result.stdout, result.stderr)
    if result.result is not None:
        parts.append(f"result:\n{fenced(result.result)}")
    if result.files:
        parts.append("Files: " + ", ".join(f"`{uri}`" for uri in result.files))
    parts += result.notes or []
    if result.resolved_dependencies:
        parts.append("Dependencies: " + ", ".join(result.resolved_dependencies))
    parts.append(f"next_cursor: `{result.next_cursor}`")
    return "\n\n".join(parts)


def render_ended(result: results.JobEnded) -> str:
    """Return the answer to a cancel or kill as markdown."""
    code = "" if result.exit_code is None else f" (exit code {result.exit_code})"
    return f"Job `{result.job_id}`: {result.status}{code}." + (f" {result.note}" if result.note else "")


def render_status(result: results.JobStatus) -> str:
    """Return `py_job_status` as markdown."""
    job = result.job
    if job is None:
        return ""
    label = f" ({job.label})" if job.label else ""
    parts = [f"Job `{job.id}`{label} is **{job.status}** after {job.elapsed_seconds:.2f} s"]
    if job.progress:
        parts.append(_progress_line(job.progress))
    if not isinstance(job.result, results.JobResult):
        parts += [] if job.result is None else [f"Result:\n{fenced(json.dumps(job.result, ensure_ascii=False))}"]
    elif job.result.exit_code is not None:
        used = f"{job.result.cpu_seconds:.2f} s CPU, peak {job.result.peak_rss_mb:.0f} MB"
        parts.append(f"Exit code {job.result.exit_code}, {used}")
    if job.error:
        parts.append(f"**{job.error}**")
    parts += _gap_note(result.gap_bytes)
    parts += _streams(job.new_stdout or "", job.new_stderr or "")
    parts.append(f"next_cursor: `{result.next_cursor}`")
    return "\n\n".join(parts)


def _progress_line(progress: results.Progress) -> str:
    total = "?" if progress.total is None else f"{progress.total:.12g}"
    message = f": `{progress.message.replace('`', ' ')}`" if progress.message else ""
    return f"Progress: {progress.current:.12g} of {total}{message}"


def render_list(result: results.JobList) -> str:
    """Return `py_list_jobs` as markdown."""
    if not result.jobs:
        return "There are no such jobs."
    rows = [
        f"{len(result.jobs)} of {result.total} jobs",
        "",
        "| job | status | created | seconds | label |",
        "|---|---|---|---|---|",
    ]
    rows += [
        f"| `{job.id}` | {job.status} | {job.created_at} | {job.elapsed_seconds:.2f} | {cell(job.label)} |"
        for job in result.jobs
    ]
    return "\n".join(rows)


def render_pruned(result: results.Pruned) -> str:
    """Return `py_prune_jobs` as markdown."""
    return f"Removed {result.removed} jobs; {result.remaining} remain."


def fenced(text: str, language: str = "") -> str:
    """Return text as a block that nothing in it can end."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}"


def cell(text: str | None) -> str:
    """Return text for a cell of a table."""
    return (text or "").replace("|", "\\|").replace("\n", " ")


def _headline(result: results.RunResult) -> str:
    match result.status:
        case "pending" | "running":
            return f"**{result.status}** after {result.elapsed_seconds:.2f} s · job `{result.job_id}`"
        case _:
            code = "" if result.exit_code is None else f", exit code {result.exit_code}"
            return f"**{result.status}**{code} in {result.elapsed_seconds:.2f} s · job `{result.job_id}`"


def _streams(stdout: str, stderr: str) -> list[str]:
    return [f"{name}:\n{fenced(text)}" for name, text in (("stdout", stdout), ("stderr", stderr)) if text]


def _gap_note(gap: int | None) -> list[str]:
    return [f"gap: {gap} bytes are no longer kept."] if gap else []
