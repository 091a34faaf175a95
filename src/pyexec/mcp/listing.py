"""How tools are listed and found: short schemas, and the names that some had once."""

from collections.abc import Sequence
from typing import Any, cast

from fastmcp.server.transforms import GetToolNext, Transform
from fastmcp.tools import Tool
from fastmcp.utilities.versions import VersionSpec

OLD_PREFIX = "py_"
_NULL = {"type": "null"}


class Listing(Transform):
    """Lists every tool with a short input schema; finds one under its old name too, which is not listed."""

    async def list_tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        """Return the tools as clients see them."""
        return [tool.model_copy(update={"parameters": short(tool.parameters)}) for tool in tools]

    async def get_tool(self, name: str, call_next: GetToolNext, *, version: VersionSpec | None = None) -> Tool | None:
        """Find a tool by its name; `py_run_script_in_dir` is `run_script_in_dir`."""
        tool = await call_next(name, version=version)
        if tool is None and name.startswith(OLD_PREFIX):
            return await call_next(name.removeprefix(OLD_PREFIX), version=version)
        return tool


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
