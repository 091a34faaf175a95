"""Argument types that take what clients really send: lists and objects also as JSON text."""

import json
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, Field


def from_json(value: Any) -> Any:
    """Read a list or object that a client has wrapped in a string; leave everything else for the type to judge."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _texts(value: Any) -> Any:
    """Take numbers in a list or object for their text: a command line and an environment hold nothing else."""
    value = from_json(value)
    if isinstance(value, list):
        return [_text(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {name: _text(item) for name, item in cast("dict[Any, Any]", value).items()}
    return value


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


Texts = Annotated[list[str], BeforeValidator(_texts)]
TextMap = Annotated[dict[str, str], BeforeValidator(_texts)]

Directory = Annotated[str, Field(description="Working directory; must exist")]
ScriptPath = Annotated[
    str | None, Field(description=".py, .ipynb, .zip or package folder to run; relative to the directory")
]
ScriptContent = Annotated[str | None, Field(description="Or Python source to run")]
Module = Annotated[str | None, Field(description="Or a module, as for python -m")]
Args = Annotated[Texts | None, Field(description="Command-line arguments")]
Sandboxed = Annotated[bool, Field(description="In a sandbox: read-only, no network")]
UseUv = Annotated[bool, Field(description="Run with uv; false: with the python on PATH")]
PythonVersion = Annotated[str | None, Field(description="3.13, 3.13.2 or >=3.11; needs uv")]
Dependencies = Annotated[Texts | None, Field(description="Requirements, as for pip")]
Constraints = Annotated[Texts | None, Field(description="Versions to stay within")]
IndexUrl = Annotated[str | None, Field(description="Package index in place of the usual one")]
EnvironmentName = Annotated[str | None, Field(description="A named environment")]
OptionalDirectory = Annotated[str | None, Field(description="Where relative paths start")]
TimeoutSeconds = Annotated[float, Field(description="End the program after this long; 0: never")]
OptionalSessionId = Annotated[
    str | None, Field(description="Keeps variables, imports and files under this name; `new`: a made-up one")
]
EnvVars = Annotated[TextMap | None, Field(description="Variables; win over env_file")]
EnvFile = Annotated[str | None, Field(description=".env file, relative to the directory")]
Stdin = Annotated[str | None, Field(description="Text for standard input; else empty")]
WaitSeconds = Annotated[float | None, Field(description="Then hand back the job_id; 0: at once", ge=0)]
AsyncMode = Annotated[bool, Field(description="Do not wait at all")]
Stream = Annotated[bool, Field(description="Kept for older clients")]
JobLabel = Annotated[str | None, Field(description="Name for the job lists")]
MaxOutputBytes = Annotated[int | None, Field(description="Most output in the answer")]
RequestId = Annotated[str | None, Field(description="A repeated call with it returns the same job")]
# Every tool has it, so what it means is said once, in the instructions of the server.
MarkdownOutput = bool
JobId = Annotated[str, Field(description="As returned by a run")]
CursorText = Annotated[str | None, Field(description="next_cursor of an earlier answer")]
