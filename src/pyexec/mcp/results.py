"""The structured results of the tools. Sizes are bytes, durations seconds, times ISO 8601 in UTC."""

from functools import cache
from typing import Annotated, Any, Literal, TypeVar, cast

from pydantic import BaseModel, Field
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from pyexec.domain.executions import State
from pyexec.domain.strategies import Strategy


def _is_none(value: object) -> bool:
    return value is None


T = TypeVar("T")
Optional = Annotated[T | None, Field(exclude_if=_is_none)]
"""A field that is left out when it says nothing; others are always there, as null if need be."""


class _Outline(GenerateJsonSchema):
    """Leaves out from the beginning what `slim` drops, but takes time to find: each default has a serializer made."""

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def field_title_should_be_set(self, schema: object) -> bool:
        return False


class Result(BaseModel):
    """What every tool answers. `error_code` is set when pyexec refused or failed; `error` says what went wrong."""

    error: Optional[str] = None
    error_code: Optional[str] = None

    def to_structured(self) -> dict[str, Any]:
        """Return plain values, without the optional ones that say nothing."""
        return self.model_dump(mode="json")

    @classmethod
    @cache
    def output_schema(cls) -> dict[str, Any]:
        """Return the output schema, short of what models do not need."""
        schema = slim(cls.model_json_schema(schema_generator=_Outline))
        return _in_place(schema, schema.pop("$defs", {}))


# Fields that are null rather than left out.
_NULLABLE = frozenset(
    {"exit_code", "pid", "started_at", "completed_at", "created_at", "last_used_at", "label", "progress", "result"}
    | {"error"}
)
_NULL = {"type": "null"}
_SAID_BY_THE_NAME = frozenset({"title", "default", "description", "required"})


def slim(schema: Any, name: str = "") -> Any:
    """Drop from an output schema what names and types say already, and `null` where a field is left out instead."""
    if isinstance(schema, list):
        return [slim(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    parts = cast("dict[str, Any]", schema)
    options: list[Any] = parts.get("anyOf", [])
    if len(options) == 2 and _NULL in options:
        option = slim(next(option for option in options if option != _NULL))
        if name not in _NULLABLE:
            return option
        return {**option, "type": [option["type"], "null"]} if "type" in option else {"anyOf": [option, _NULL]}
    return {key: _slim_part(key, value) for key, value in parts.items() if key not in _SAID_BY_THE_NAME}


def _slim_part(key: str, value: Any) -> Any:
    if key not in ("properties", "$defs"):
        return slim(value)
    return {name: slim(item, name) for name, item in cast("dict[str, Any]", value).items()}


def _in_place(schema: Any, definitions: dict[str, Any]) -> Any:
    """Put definitions where they are referred to: not all clients can, and FastMCP loads an HTTP client for it."""
    if isinstance(schema, list):
        return [_in_place(item, definitions) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    parts = cast("dict[str, Any]", schema)
    if "$ref" in parts:
        return _in_place(definitions[parts["$ref"].removeprefix("#/$defs/")], definitions)
    return {key: _in_place(value, definitions) for key, value in parts.items()}


class LeftoverProcess(BaseModel):
    """A process that outlived the program that started it, and was ended."""

    pid: int
    command: str


class RunResult(Result):
    """A run, or the handle to one that goes on. While it goes on, `exit_code` is null."""

    job_id: str = ""
    status: State = "pending"
    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    execution_strategy: Strategy = "uv-run"
    elapsed_seconds: float = 0.0
    signal: Optional[str] = None
    stopped_by: Optional[str] = None
    advice: Optional[str] = None
    truncated: bool = False
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    next_cursor: Optional[str] = None
    leftover_processes: Optional[list[LeftoverProcess]] = None
    resolved_dependencies: Optional[list[str]] = None
    python_version_used: Optional[str] = None
    environment_id: Optional[str] = None
    notes: Optional[list[str]] = None


class Started(Result):
    """The handle to a run that nobody waits for. `resolved_dependencies` is what was asked for until more is known."""

    job_id: str = ""
    status: Literal["started"] = "started"
    execution_strategy: Strategy = "uv-run"
    python_version_used: Optional[str] = None
    resolved_dependencies: Optional[list[str]] = None
    next_cursor: Optional[str] = None
    notes: Optional[list[str]] = None


class RunningJob(BaseModel):
    """One row of `list_running_jobs`."""

    job_id: str
    running: bool
    exit_code: int | None
    pid: int | None
    elapsed_seconds: float
    stream: bool
    stdout_chunks: int
    stderr_chunks: int
    status: State
    label: str | None


class RunningJobs(Result):
    """What runs or waits, newest first."""

    result: list[RunningJob] = []


class JobOutput(Result):
    """A job's output. `status` is `running` until the job has ended, then `finished`; `state` says more."""

    job_id: str = ""
    status: str = ""
    state: State = "pending"
    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    elapsed_seconds: float = 0.0
    signal: Optional[str] = None
    truncated: bool = False
    gap_bytes: Optional[int] = None
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    next_cursor: Optional[str] = None
    resolved_dependencies: Optional[list[str]] = None
    python_version_used: Optional[str] = None
    environment_id: Optional[str] = None
    result: Optional[str] = None
    files: Optional[list[str]] = None
    notes: Optional[list[str]] = None


class JobEnded(Result):
    """The answer to a request to end a job; `status` is its state when it had ended before."""

    job_id: str = ""
    status: str = ""
    exit_code: int | None = None
    note: Optional[str] = None


class Progress(BaseModel):
    """How far a job is."""

    current: float
    total: Optional[float] = None
    message: Optional[str] = None


class JobResult(BaseModel):
    """How a job ended."""

    exit_code: int | None
    signal: Optional[str] = None
    stopped_by: Optional[str] = None
    elapsed_seconds: float
    cpu_seconds: float
    peak_rss_mb: float
    stdout_bytes: int
    stderr_bytes: int
    leftover_processes: Optional[list[LeftoverProcess]] = None


class Job(BaseModel):
    """A job's record."""

    id: str
    label: str | None
    status: State
    kind: str
    directory: str
    source: str
    created_at: str
    started_at: str | None
    completed_at: str | None
    elapsed_seconds: float
    progress: Progress | None = None
    result: JobResult | Any = None
    error: str | None = None
    new_stdout: Optional[str] = None
    new_stderr: Optional[str] = None


class JobStatus(Result):
    """One job, with its output since a cursor."""

    job: Optional[Job] = None
    next_cursor: Optional[str] = None
    truncated: bool = False
    gap_bytes: Optional[int] = None


class JobList(Result):
    """Jobs, newest first; `total` counts all that match."""

    jobs: list[Job] = []
    total: int = 0


class Pruned(Result):
    """How many jobs were removed, and how many are left."""

    removed: int = 0
    remaining: int = 0


class EnvironmentRow(BaseModel):
    """One environment."""

    id: str
    names: list[str]
    python_version: str
    packages: list[str]
    size_mb: float
    created_at: str | None
    last_used_at: str | None
    in_use: bool


class Environments(Result):
    """The environments there are: named ones first, then the most recently used."""

    environments: list[EnvironmentRow] = []
    total_mb: float = 0.0


class EnvironmentLocked(Result):
    """A requirements file with hashes, and how to use it."""

    environment_id: str = ""
    python_version: str = ""
    lock: str = ""
    usage: str = ""


class EnvironmentCreated(Result):
    """A named environment, or the handle to the job that makes it."""

    name: str = ""
    job_id: str = ""
    status: State = "pending"
    environment_id: Optional[str] = None
    python_version: Optional[str] = None
    packages: Optional[list[str]] = None
    elapsed_seconds: float = 0.0
    detail: Optional[str] = None
    notes: Optional[list[str]] = None


class EnvironmentRemoved(Result):
    """What was removed."""

    environment_id: str = ""
    names: list[str] = []
    freed_mb: float = 0.0
