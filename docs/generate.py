"""Writes the reference pages from the code: `make docs`. A test holds that they are up to date.

What the code does not say (what a result field means) stands here; a field without a meaning is an error.
"""

import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import anyio
import click
from fastmcp.tools import Tool

from pyexec.app.lazy import LazyServices
from pyexec.app.principal import local_principal
from pyexec.cli.main import COMMANDS, root
from pyexec.domain.errors import PyexecError
from pyexec.domain.executions import STATES
from pyexec.domain.limits import DAY, MEGABYTE, ExecutionLimits
from pyexec.domain.toolsets import DEFAULT_TOOLSETS, TOOLSETS
from pyexec.mcp.server import build_server
from pyexec.settings import VARIABLES, Settings
from pyexec_idp.settings import VARIABLES as IDP_VARIABLES

FOLDER = Path(__file__).parent / "reference"
NOTE = "<!-- Written by docs/generate.py; `make docs` writes it anew. -->"

FIELDS: Mapping[str, str] = {
    "advice": "One sentence on what to do next, when there is something useful to say.",
    "artifacts": "The files it left, each to be read as a resource: `flamegraph.html`, and what else the tool writes.",
    "autosaved": "Inline code that was run, the latest 50; only when it was asked for.",
    "bytes": "How much disk they took.",
    "changed": "Whether formatting changes anything.",
    "ci_high": "The upper end of the 95 % interval of the median, left out with fewer than six runs.",
    "ci_low": "The lower end of the 95 % interval of the median, left out with fewer than six runs.",
    "column": "The column, from 1; left out where there is none.",
    "chart": "The numbers behind a figure: titles, labels, scales, and the series of each pair of axes.",
    "command": "The short name of the program; never its arguments, which may hold a secret.",
    "completed_at": "When it ended; null before.",
    "count": "How many there were.",
    "cpu": "CPU time, user and system together.",
    "cpu_seconds": "CPU time of the program and everything it started, user and system together.",
    "cpu_time_seconds": "CPU time of a run, user and system together: the median, of the first variant.",
    "created_at": "When it was submitted.",
    "current": "How far it is.",
    "dependencies": "What its header asks for, credentials masked; left out when it asks for nothing.",
    "detail": "What the tools said that could not make it.",
    "diff": "A unified diff.",
    "directory": "Where it runs.",
    "docstring": "The first paragraph of its docstring, at most 200 characters of it.",
    "dry_run": "Whether nothing was removed.",
    "edits": "What to put in place of what, the first ten.",
    "displays": "What was shown, in order.",
    "elapsed_seconds": "How long the program has run, or ran; 0 before it started. Waiting in line is not counted.",
    "end_column": "The column behind its end, from 1.",
    "end_line": "The line of its end, from 1.",
    "environment_id": "The environment it runs in, where it has one of its own; `lock_environment` takes it.",
    "environments": "The environments, named ones first, then the most recently used.",
    "error": "One sentence on what went wrong; left out when nothing did.",
    "execution_strategy": "How it was run: by uv, or by the `python3` on PATH.",
    "exception": "The exception that ended the code; left out when none did.",
    "exit_code": "The program's own code, or 128 + n when signal n ended it; null while there is none.",
    "failed_run": "The number of the run that failed; there are no figures then.",
    "fault": "What is wrong with a file that cannot be read or run as it is.",
    "file": "The file; left out for a source that came with the call.",
    "findings": "The findings by place; the gravest, when they are too many.",
    "fix": "How it can be mended, where the tool knows.",
    "fixed": "How many findings were fixed, with `fix=true`.",
    "fixed_source": "The source after fixing, where it changed and came with the call.",
    "formatted": "The formatted source.",
    "formatter": "What formatted it.",
    "freed_bytes": "How much disk it was altogether.",
    "files": "The files that were made for it, each to be read as a resource by its URI, and those that its code has "
    "created or changed in the directory, at most 50.",
    "freed_mb": "How much disk it took, in MiB.",
    "function": "Its name.",
    "gap_bytes": "So many bytes after the cursor are no longer kept; the text goes on behind them.",
    "height": "Its height in pixels.",
    "id": "The job's id.",
    "in_use": "Whether something runs in it.",
    "involuntary_switches": "How often its processes were taken off a core: the median.",
    "job": "The job.",
    "job_id": "The id by which the other tools know this run.",
    "jobs": "The jobs, newest first.",
    "kind": (
        "What was run: `script`, `cell`, `notebook`, `benchmark`, `profile`, `environment` for the making of a named "
        "one, `quality` for a tool on code, `smart_async` for work inside a server."
    ),
    "label": "What the caller named it with `job_label`; null when it has no name.",
    "last_job_id": "The job that ran it last, whoever started it.",
    "last_run_at": "When it was run last.",
    "last_status": "The state of that job, while it is still known: "
    + ", ".join(f"`{state}`" for state in STATES)
    + ".",
    "last_used_at": "When something last began to use it; null for never.",
    "leftover_processes": "Processes that were still there when the program had ended, and were ended: at most 50.",
    "line": "The line, from 1; left out where there is none.",
    "lock": "The exact packages with their hashes, as a requirements file.",
    "mad": "The median distance from the median.",
    "major_page_faults": "Page faults that read from a disk: the median.",
    "max": "The largest.",
    "measured": "What is timed, and how.",
    "median": "The median.",
    "memory_mb": "Memory over time in the run of median wall time: seconds since its start and MiB, at most 40.",
    "media_type": "What is in it.",
    "message": "What it is doing.",
    "min": "The smallest.",
    "minor_page_faults": "Page faults that needed no disk: the median.",
    "mode": "What was measured.",
    "name": "Its name.",
    "names": "The names it has been given.",
    "new_stderr": "What it wrote to stderr since the cursor.",
    "new_stdout": "What it wrote to stdout since the cursor.",
    "next_cursor": "Where to read on: pass it as `cursor` to `py_job_status`.",
    "note": "Why nothing was done, when nothing was.",
    "notes": "What else the reader of this result should know, a sentence each.",
    "outlier_runs": "The numbers of the runs whose wall time lies far outside.",
    "overhead": "What measuring costs, and what it does not see.",
    "own": "Its own share, without what it calls.",
    "packages": "What is installed, each package with its version or with where it came from.",
    "path": "Where it lies.",
    "peak_memory_mb": "The most memory that one of its processes had at once, in MiB.",
    "peak_rss_mb": "The most memory that one of its processes had at once, in MiB.",
    "pid": "The program's process id; null before it started.",
    "processes": "The most processes that were seen at one time.",
    "progress": "How far it is, for jobs that say so; null otherwise.",
    "python_version": "The version of Python in it.",
    "python_version_used": "The version of Python that runs it, once it is known.",
    "ratio": "The wall time as a multiple of the first variant's: the median of the rounds.",
    "ratio_high": "The upper end of the 99 % interval of the ratio; left out with fewer than eight runs.",
    "ratio_low": "The lower end of the 99 % interval of the ratio; left out with fewer than eight runs.",
    "remaining": "How many jobs are left, running ones included.",
    "removed": "How many jobs were removed.",
    "requires_python": "The versions of Python it runs on, by its header.",
    "resolved_dependencies": "What the requirements came to: each package with its version.",
    "result": "How it ended, or what the `@smart_async` function returned; null before.",
    "rows": "What takes most, the largest share of its own first: functions, or for memory lines.",
    "rule": "The rule's code; `syntax-error` for source that cannot be parsed.",
    "running": "Whether the program runs; false while it waits in line or its environment is made.",
    "runs": "How many times it was run.",
    "safe": "Whether the meaning of the code stays; `fix=true` applies these.",
    "script": "The script as it is now.",
    "scripts": "The saved scripts, by name; at most 500.",
    "severities": "How many findings there are of each severity.",
    "severity": "`error`, `warning` or `info`.",
    "sidecar": "What is known about the runs of inline code: how many, and the arguments of the latest.",
    "signal": "The signal that ended the program, such as `SIGTERM`; left out when none did.",
    "size": "Its size in bytes.",
    "size_mb": "How much disk it takes, in MiB.",
    "source": "The file that was run, or `inline`.",
    "started_at": "When the program began; null before.",
    "state": "Its state: " + ", ".join(f"`{state}`" for state in STATES) + ".",
    "status": "Its state: " + ", ".join(f"`{state}`" for state in STATES) + ".",
    "stderr": "What it wrote to stderr: head and tail when it is long. After a time-out `[TIMEOUT]` is added.",
    "stderr_bytes": "How many bytes it wrote to stderr altogether, kept or not.",
    "stderr_chunks": "How many entries of the event log are about stderr.",
    "stdout": "What it wrote to stdout: head and tail when it is long.",
    "stdout_at": "After how many bytes of stdout it was shown.",
    "stdout_bytes": "How many bytes it wrote to stdout altogether, kept or not.",
    "stdout_chunks": "How many entries of the event log are about stdout.",
    "stopped_by": "The last signal that pyexec sent to end it: `SIGINT`, `SIGTERM` or `SIGKILL`.",
    "stream": "Kept for older clients; every job can be read while it runs.",
    "system_cpu_seconds": "CPU time in the kernel: the median.",
    "text": "The largest calls as indented lines, each with its share.",
    "tool": "The tool that found it.",
    "tools": "How many findings there are by each tool.",
    "success": "Whether the code ran to its end without an exception, or left with exit code 0.",
    "table": "Columns with their types, shape and first rows of a table.",
    "total": "How many there are altogether; null when that is not known.",
    "total_mb": "How much disk they take together, in MiB; what they share with uv's cache counts too.",
    "traceback": "Where it was raised, by the code's own lines.",
    "truncated": "Whether output that was asked for is not in this answer.",
    "unit": "What amounts are in.",
    "url": "The page about the rule, where the tool gives one.",
    "usage": "How to make it again elsewhere.",
    "user_cpu_seconds": "CPU time in the program itself: the median.",
    "variants": "What was measured of each program, the first one first.",
    "verdict": "`faster` or `slower` than the first variant, or `no difference beyond noise`.",
    "voluntary_switches": "How often its processes waited for something: the median.",
    "wall": "From the start of the program to its end.",
    "wall_time_seconds": "How long a run takes: the median, of the first variant.",
    "warmup_runs": "How many runs went before and do not count.",
    "written": "Whether the file was replaced.",
    "type": "Its type.",
    "uri": "Where it can be read as a resource.",
    "width": "Its width in pixels.",
}
"""What each result field means, whichever tool it comes from; exceptions are in `EXCEPTIONS`."""

EXCEPTIONS: Mapping[tuple[str, str], str] = {
    ("rows", "count"): "How often it was called; for memory, how many allocations it holds. Left out when not counted.",
    ("rows", "file"): (
        "Where it is written: relative to the directory, the script, the packages or the standard library; empty for "
        "what is not Python."
    ),
    ("rows", "line"): "Where the function begins; for memory, the line that allocates or calls.",
    ("edits", "text"): "The text to put there.",
    ("format_code", "path"): "The file, as it may be given again.",
    ("analyze_code", "path"): "The file or folder, as it may be given again.",
    ("benchmark_script", "runs"): "How many runs count.",
    ("run_script_in_dir_async", "status"): "Always `started`.",
    ("run_script_with_dependencies_async", "status"): "Always `started`.",
    ("run_script_in_dir_async", "resolved_dependencies"): "What it is known to need by now.",
    ("run_script_with_dependencies_async", "resolved_dependencies"): (
        "What the requirements came to; the requirements themselves while that is not known yet."
    ),
    ("analyze_code", "total"): "How many findings there are altogether.",
    ("analyze_code", "truncated"): "Whether there are more than the answer carries.",
    ("cleanup_jobs", "removed"): "What was removed, or would be, by kind.",
    ("findings", "message"): "What is wrong.",
    ("fix", "message"): "What the fix does.",
    ("removed", "kind"): "`jobs`, `autosaved_scripts` or `temporary_files`.",
    ("get_job_output", "status"): "`running` until the job has ended, then `finished`.",
    ("environments", "created_at"): "When it was made.",
    ("environments", "id"): "Its id: the same packages on the same Python have the same.",
    ("job", "error"): "One sentence on what went wrong; null when nothing did.",
    ("jobs", "error"): "One sentence on what went wrong; null when nothing did.",
    ("kill_job", "status"): "`killed`; or the job's state, when it had ended before.",
    ("py_cancel_job", "status"): "`cancelled`; or the job's state, when it had ended before.",
    ("benchmark_script", "peak_rss_mb"): "The most memory that its processes had together in any run, in MiB.",
    ("benchmark_script", "stdout"): "What the first run of the first variant wrote to stdout; that of others is lost.",
    ("benchmark_script", "stderr"): "What the first run of the first variant wrote to stderr; or the run that failed.",
    ("variants", "peak_rss_mb"): "The most memory that its processes had together in any run, in MiB.",
    ("profile_script", "total"): "All that was measured; for memory, the most that was held at once.",
    ("rows", "total"): "Its share with what it calls.",
    ("leftover_processes", "pid"): "Its process id.",
    ("py_view_script", "source"): "What is in it.",
    ("execute_python", "result"): "The value of the last expression, as text.",
    ("get_job_output", "result"): "The value of a cell's last expression, as text.",
    ("get_job_output", "files"): "The files that a cell has made, by their URIs.",
    ("displays", "kind"): "What it is: `figure`, `picture`, `table`, `html`, `plotly`, …",
    ("exception", "message"): "What it says.",
    ("exception", "line"): "The line of the code that it points to.",
    ("displays", "text"): "It as text, where it has one; long text by head and tail.",
    ("list_running_jobs", "result"): "The jobs that run or wait, newest first.",
}


TOOLS = """\
# Tools

What an MCP client sees. Every answer has structured content with the fields below; its text is markdown, or the same
fields as JSON with `markdown_output=false`. Optional fields that say nothing are left out. Sizes are bytes, durations
seconds, times ISO 8601 in UTC. Lists and objects are taken as JSON text too, since some clients send them so.

Tools come in toolsets; `pyexec serve --toolsets core,jobs` or `PYEXEC_TOOLSETS` says which a server offers, and
`pyexec tools` lists them with their size. The names of older servers that begin with `py_`, such as
`py_run_script_in_dir`, are understood though they are not listed.

A program that failed is a result with `isError` set, never an error of the protocol. How states and exit codes come
about is in [states and outcomes](../concepts/states-and-outcomes.md).

Two more fields may be in any result: `error`, one sentence on what went wrong, and `error_code`, which is there only
when pyexec itself refused or failed: see [errors](errors.md).
"""

RESOURCES: Mapping[str, str] = {
    "job-stream://{job_id}": (
        "Plain text: a line `---STDOUT---` and the text so far, a line `---STDERR---` and the text so far; long output "
        "by head and tail. It no longer changes once the job has ended."
    ),
    "job-file://{job_id}/{name}": "Text, HTML and JSON as text, all else as a blob; at most 64 MiB.",
}

COMMAND_LINE = """\
# Command line

`pyexec` works on the same state folder as the servers: what an agent started is listed, read and ended from here, and
the other way round. Every command has `-h` and `--help`.

`mcp-pyexec`, `python-executor-mcp`, `python-mcp-server` and `python -m python_mcp_server` are other names of
`pyexec serve`; `python -m pyexec` is `pyexec`.
"""

EXIT_STATUS = """\
## Exit status

| status | meaning |
| --- | --- |
| the program's own | `pyexec run` waited for it to end; 128 + n when signal n ended it. |
| 0 | Done. With `--detach`: the job was submitted. |
| 1 | pyexec refused or failed (`error:` on stderr), or the program ended without a code of its own. |
| 2 | The command line was not understood. |
| 130 | `pyexec serve` was ended with Ctrl-C. |
| 141 | Whoever read the output has gone (128 + SIGPIPE). |
"""

SETTINGS = """\
# Settings

Read from the environment once, when a server or a command starts; in a client's configuration they go into `env`. An
empty value counts as unset. A value that is not allowed is an error that says what is; a name that begins with
`PYEXEC_` and is none of these is a warning in the server's log. Programs that are run do not get them.

The limits are each server's own: of several servers on one state folder, each keeps to its own for what it submits.
"""

IDP_SETTINGS = """
# Settings of the identity provider

Read from the environment once, when `pyexec-idp` starts. An empty value counts as unset. A value that is not allowed
is an error, and so is a name that begins with `PYEXEC_IDP_` and is none of these.
"""

ERRORS = """\
# Errors

What pyexec itself refuses or fails at. The code is stable: over MCP it is `error_code` in the structured content of an
answer with `isError`, and `error` says which value was wrong, what is allowed, and mostly what to do next. The command
line prints `error:` and `hint:` to stderr and exits with 1.

A program that failed is none of these: it is a result, see [states and outcomes](../concepts/states-and-outcomes.md).
"""

IN_EVERY_TOOL = {"markdown_output": "The text as markdown; false: as JSON."}
IN_EVERY_RESULT = frozenset({"error", "error_code"})


async def _server_parts(toolsets: tuple[str, ...]) -> tuple[list[Tool], list[tuple[str, str]]]:
    services = LazyServices(Settings(home=Path("/nonexistent"), directory=Path("/")))  # Never opened.
    server = build_server(services, local_principal, 20, toolsets)
    templates = await server.list_resource_templates()
    return list(await server.list_tools()), [(each.uri_template, each.description or "") for each in templates]


def tools_page() -> str:
    """Return the page on tools and resources."""
    parts = [TOOLS]
    for toolset, meaning in TOOLSETS.items():
        offered = "Offered by default." if toolset in DEFAULT_TOOLSETS else "Offered when it is named."
        parts += [f"## Toolset {toolset}", f"{meaning} {offered}"]
        for tool in anyio.run(_server_parts, (toolset,))[0]:
            parts += _tool(tool)
    parts.append("## Resources")
    for template, description in anyio.run(_server_parts, tuple(TOOLSETS))[1]:
        parts += [f"`{template}`: {description}", RESOURCES[template]]
    return _page(parts)


def _tool(tool: Tool) -> Iterator[str]:
    yield f"### {tool.name}"
    yield inspect.cleandoc(tool.description or "")
    yield "Tags: " + ", ".join(sorted(tool.tags)) + "."
    properties: dict[str, Any] = tool.parameters.get("properties", {})
    required: list[str] = tool.parameters.get("required", [])
    rows = [
        (
            f"`{name}`",
            _type(schema).removesuffix(" or null"),
            "required" if name in required else _default(schema),
            IN_EVERY_TOOL.get(name) or _sentence(schema),
        )
        for name, schema in properties.items()
    ]
    yield _table(("argument", "type", "default", "meaning"), rows)
    schema = tool.output_schema or {}
    yield "Result:"
    yield _fields(tool.name, schema)
    for path, inner in _inner(schema, schema):
        yield f"In `{path}`:"
        yield _fields(path.rpartition(".")[2], inner)


def _fields(place: str, schema: dict[str, Any]) -> str:
    rows = [
        (f"`{name}`", _type(field), EXCEPTIONS.get((place, name)) or FIELDS[name])
        for name, field in schema["properties"].items()
        if name not in IN_EVERY_RESULT or place in ("job", "jobs")
    ]
    return _table(("field", "type", "meaning"), rows)


def _inner(schema: dict[str, Any], top: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects inside a result, each with its place in it."""
    for name, field in schema["properties"].items():
        options: list[Any] = [field, field.get("items", {}), *field.get("anyOf", [])]
        for option in options:
            part = _resolved(option, top)
            if "properties" in part:
                yield f"{path}{name}", part
                yield from _inner(part, top, f"{path}{name}.")


def _resolved(schema: dict[str, Any], top: dict[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref")
    return top["$defs"][reference.rpartition("/")[2]] if isinstance(reference, str) else schema


def _type(schema: dict[str, Any]) -> str:
    if not schema:
        return "anything"
    options: list[dict[str, Any]] = schema.get("anyOf", [])
    if options:
        return " or ".join(dict.fromkeys(_type(option) for option in options))
    kind: str | list[str] = schema.get("type", "object")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        kind = _type(schema.get("items", {}))
        return f"list of lists{kind[4:]}" if kind.startswith("list of ") else f"list of {kind}s"
    values = schema.get("additionalProperties")
    if kind == "object" and isinstance(values, dict):  # True: any values at all.
        return f"object of {_type(cast('dict[str, Any]', values))}s"
    return kind


def _default(schema: dict[str, Any]) -> str:
    value = schema.get("default")
    return "none" if value is None else f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _sentence(schema: dict[str, Any]) -> str:
    return str(schema.get("description", "")).rstrip(".") + "."


def command_line_page() -> str:
    """Return the page on the command line."""
    context = click.Context(root, info_name="pyexec")
    return _page([COMMAND_LINE, *_commands(root, context), EXIT_STATUS])


def _commands(command: click.Command, context: click.Context) -> Iterator[str]:
    yield from _command(command, context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = cast("click.Command", command.get_command(context, name))
            yield from _commands(below, click.Context(below, info_name=name, parent=context))


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"## {context.command_path}"
    yield f"    {usage}"
    yield inspect.cleandoc(command.help or "")
    if isinstance(command, click.Group):
        rows = [(f"`{name}`", _help_of(command, context, name)) for name in command.list_commands(context)]
        yield _table(("command", "meaning"), rows)
    records = [
        record
        for parameter in command.params
        if isinstance(parameter, click.Option) and (record := parameter.get_help_record(context))
    ]
    if records:
        yield _table(("option", "meaning"), [(f"`{option}`", " ".join(text.split())) for option, text in records])


def _help_of(group: click.Group, context: click.Context, name: str) -> str:
    command = group.get_command(context, name)
    return COMMANDS.get(name) or (inspect.cleandoc((command and command.help) or "").partition("\n\n")[0])


def settings_page() -> str:
    """Return the page on settings."""
    limits = ExecutionLimits()
    variables = [
        (f"`{each.name}`", each.meaning, each.default, f"{each.allowed[:1].upper()}{each.allowed[1:]}.")
        for each in VARIABLES
    ]
    fixed = [
        ("inline code, and stdin text, each", f"{limits.source // MEGABYTE} MiB"),
        ("all items of `args` together", f"{limits.arguments // 1024} KiB"),
        ("`timeout_seconds`", f"{limits.timeout_ceiling / DAY:g} days, or 0 for none"),
        ("`max_output_bytes`", f"{limits.answer_output_ceiling // MEGABYTE} MiB"),
        ("from one sweep of old jobs to the next", f"{limits.sweep_interval / 60:g} minutes"),
    ]
    return _page(
        [
            SETTINGS,
            _table(("variable", "meaning", "default", "allowed"), variables),
            "## Fixed limits",
            _table(("what", "limit"), fixed),
        ]
    )


def idp_settings_page() -> str:
    """Return the page on settings of the identity provider."""
    variables = [
        (f"`{each.name}`", each.meaning, each.default, f"{each.allowed[:1].upper()}{each.allowed[1:]}.")
        for each in IDP_VARIABLES
    ]
    return _page([IDP_SETTINGS, _table(("variable", "meaning", "default", "allowed"), variables)])


def errors_page() -> str:
    """Return the page on error codes."""
    kinds = (*_below(PyexecError), PyexecError)
    return _page([ERRORS, _table(("code", "meaning"), [(f"`{each.code}`", _meaning_of(each)) for each in kinds])])


def _meaning_of(error: type[PyexecError]) -> str:
    if error is PyexecError:
        return "A fault of pyexec's own; `logs/pyexec.log` in the state folder says where."
    return inspect.cleandoc(error.__doc__ or "").partition("\n\n")[0].replace("\n", " ")


def _below(error: type[PyexecError]) -> Iterator[type[PyexecError]]:
    for kind in error.__subclasses__():
        yield kind
        yield from _below(kind)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines)


def _page(parts: list[str]) -> str:
    return "\n\n".join(part.strip("\n") for part in (NOTE, *parts)) + "\n"


def pages() -> dict[Path, str]:
    """Return every reference page by its file."""
    return {
        FOLDER / "tools.md": tools_page(),
        FOLDER / "command-line.md": command_line_page(),
        FOLDER / "settings.md": settings_page(),
        FOLDER / "errors.md": errors_page(),
        FOLDER / "idp-settings.md": idp_settings_page(),
    }


def main() -> None:
    """Write the pages that are not up to date."""
    for path, text in pages().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path}")


if __name__ == "__main__":
    main()
