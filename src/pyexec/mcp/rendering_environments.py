"""Environments as markdown."""

from pyexec.mcp import results

MOST_PACKAGES_SHOWN = 8


def render_environments(result: results.Environments) -> str:
    """Return `list_environments` as markdown."""
    if not result.environments:
        return "There are no environments yet; the first run with dependencies makes one."
    rows = [
        f"{len(result.environments)} environments, {result.total_mb:.0f} MB",
        "",
        "| environment | id | python | MB | last used | in use | packages |",
        "|---|---|---|---|---|---|---|",
    ]
    rows += [
        f"| {', '.join(one.names) or '-'} | `{one.id[:12]}` | {one.python_version} | {one.size_mb:.0f} "
        f"| {one.last_used_at or 'never'} | {'yes' if one.in_use else 'no'} | {_packages(one.packages)} |"
        for one in result.environments
    ]
    return "\n".join(rows)


def render_lock(result: results.EnvironmentLocked) -> str:
    """Return `lock_environment` as markdown."""
    head = f"Environment `{result.environment_id}` on Python {result.python_version}. {result.usage}"
    return f"{head}\n\n```\n{result.lock}```"


def render_created(result: results.EnvironmentCreated) -> str:
    """Return `create_environment` as markdown."""
    if result.status == "completed":
        packages = result.packages or []
        what = f"Python {result.python_version}, {len(packages)} package{'' if len(packages) == 1 else 's'}"
        how = f"Run in it with `environment={result.name!r}`."
        parts = [f"Environment **{result.name}** is ready: {what}. {how}", ", ".join(packages)]
    elif result.error:
        parts = [f"Environment **{result.name}** was not made: **{result.error}**", result.detail or ""]
    else:
        made_by = f"Environment **{result.name}** is being made by job `{result.job_id}` ({result.status})"
        parts = [f"{made_by}: `py_job_status(job_id)` shows how far it is."]
    return "\n\n".join(part for part in [*parts, *(result.notes or [])] if part)


def render_removed(result: results.EnvironmentRemoved) -> str:
    """Return `remove_environment` as markdown."""
    return f"Removed {', '.join(result.names) or result.environment_id} ({result.freed_mb:.0f} MB)."


def _packages(packages: list[str]) -> str:
    shown = ", ".join(packages[:MOST_PACKAGES_SHOWN])
    more = len(packages) - MOST_PACKAGES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
