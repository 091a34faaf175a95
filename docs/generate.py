"""Writes the reference pages from the code: `make docs`. A test holds that they are up to date.

What the code does not say (what a result field means) stands in `meanings.py`; a field without a meaning is an error.
"""

import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import anyio
import click
from fastmcp.tools import Tool

from docs.meanings import EXCEPTIONS, FIELDS
from pyexec.app.lazy import LazyServices
from pyexec.app.principal import local_principal
from pyexec.cli.main import COMMANDS, root
from pyexec.domain.errors import PyexecError
from pyexec.domain.limits import DAY, MEGABYTE, ExecutionLimits
from pyexec.domain.toolsets import DEFAULT_TOOLSETS, TOOLSETS
from pyexec.mcp.server import build_server
from pyexec.settings import VARIABLES, Settings
from pyexec_idp.settings import VARIABLES as IDP_VARIABLES

FOLDER = Path(__file__).parent / "reference"
NOTE = "<!-- Written by docs/generate.py; `make docs` writes it anew. -->"

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
    "workspace://{session_id}/{path*}": (
        "Text as text, all else as a blob; no more than `PYEXEC_DOWNLOAD_MB`. Names are percent-encoded."
    ),
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
# Which a model understands by its name, and is spared.
UNSAID = {
    **{(tool, "session_id"): "The session" for tool in ("upload_file", "download_file", "list_files", "delete_file")},
    ("upload_file", "content"): "What is to be in it",
    ("upload_file", "encoding"): "What the content is",
    ("upload_file", "overwrite"): "Replace what has that name",
    ("upload_file", "append"): "Add to the end of the file, which is made if there is none",
    ("download_file", "encoding"): "How it is to come; left out: as what it is",
    ("list_files", "path"): "The folder to begin with; left out: the session's own",
    ("list_files", "recursive"): "Go into the folders in it",
    ("delete_file", "path"): "As for `download_file`; a link itself is deleted, not what it leads to",
}
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
            IN_EVERY_TOOL.get(name) or _sentence({"description": UNSAID.get((tool.name, name), ""), **schema}),
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
