"""How tools are listed and found: short schemas, and the names that some had once."""

from collections.abc import Sequence
from typing import Any, cast

from fastmcp.server.transforms import GetToolNext, Transform
from fastmcp.tools import Tool
from fastmcp.utilities.json_schema import dereference_refs
from fastmcp.utilities.versions import VersionSpec

OLD_PREFIX = "py_"
_NULL = {"type": "null"}


_DIALECT = "$schema"


class Listing(Transform):
    """Lists every tool with schemas that are short, and whole where they stand; finds one under its old name too.

    That name is not listed. A schema that names its dialect was written by somebody, and is left letter by letter.
    """

    async def list_tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        """Return the tools as clients see them."""
        return [_as_listed(tool) for tool in tools]

    async def get_tool(self, name: str, call_next: GetToolNext, *, version: VersionSpec | None = None) -> Tool | None:
        """Find a tool by its name; `py_run_script_in_dir` is `run_script_in_dir`."""
        tool = await call_next(name, version=version)
        if tool is None and name.startswith(OLD_PREFIX):
            return await call_next(name.removeprefix(OLD_PREFIX), version=version)
        return tool


def _as_listed(tool: Tool) -> Tool:
    schemas: dict[str, dict[str, Any]] = {}
    if _DIALECT not in tool.parameters:
        schemas["parameters"] = short(_whole(tool.parameters))
    if tool.output_schema is not None and _DIALECT not in tool.output_schema:
        schemas["output_schema"] = _whole(tool.output_schema)
    return tool.model_copy(update=schemas)


def _whole(schema: dict[str, Any]) -> dict[str, Any]:
    """Put in what a schema refers to: some clients do not follow references."""
    return dereference_refs(schema) if "$defs" in schema else schema


def short(schema: dict[str, Any]) -> dict[str, Any]:
    """Drop what an optional argument says twice: that it may be null, and that null is its default.

    A call may pass null all the same; a model that reads the schema leaves the argument out. That there are no other
    arguments goes without saying, and is said to whoever gives one.
    """
    properties = cast("dict[str, dict[str, Any]]", schema.get("properties", {}))
    rest = {key: value for key, value in schema.items() if key != "additionalProperties"}
    return {**rest, "properties": {name: _short(value) for name, value in properties.items()}}


def _short(schema: dict[str, Any]) -> dict[str, Any]:
    options = cast("list[dict[str, Any]]", schema.get("anyOf", []))
    if len(options) != 2 or _NULL not in options:
        return schema
    option = next(option for option in options if option != _NULL)
    rest = {key: value for key, value in schema.items() if key != "anyOf" and (key, value) != ("default", None)}
    return {**option, **rest}
