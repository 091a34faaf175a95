"""The only reader of the process's environment: settings come out as frozen values and are handed down.

Every variable is named `PYEXEC_…` and listed in `VARIABLES` with its meaning; the reference page in the docs is held
against that table by a test.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from pyexec.domain.authorization import AuthorizationSettings
from pyexec.domain.databases import DatabaseAddress
from pyexec.domain.errors import InvalidArgumentError, UnsupportedPlatformError
from pyexec.domain.limits import DAY, MEGABYTE, EnvironmentLimits, ExecutionLimits, FileLimits
from pyexec.domain.packages import PackageSettings
from pyexec.domain.sandboxes import SandboxSettings
from pyexec.domain.service import ServiceSettings
from pyexec.domain.sessions import SessionLimits
from pyexec.domain.toolsets import DEFAULT_TOOLSETS, NAMED_ONLY, SERVICE_TOOLSETS, TOOLSETS, parse_toolsets
from pyexec.settings.authorization import AUTH_VARIABLES, authorization_settings
from pyexec.settings.database import DATABASE_VARIABLES, database_settings
from pyexec.settings.files import FILE_VARIABLES
from pyexec.settings.packages import PACKAGE_VARIABLES, package_settings
from pyexec.settings.reading import Variable, number, whole
from pyexec.settings.sandboxes import SANDBOX_VARIABLES, sandbox_settings
from pyexec.settings.service import SERVICE_VARIABLES, service_settings
from pyexec.settings.sessions import SESSION_VARIABLES

Limits = TypeVar("Limits", ExecutionLimits, EnvironmentLimits, SessionLimits, FileLimits)

# What we set for programs, and a server that one of them starts inherits.
_SET_FOR_PROGRAMS = ("PYEXEC_ARTIFACTS", "PYEXEC_CHANNEL", "PYEXEC_EXECUTION_ID", "PYEXEC_INLINE", "PYEXEC_TOOLS")
# Another program's, which may have been set beside ours; where its database is may have a password in it.
_OF_THE_IDENTITY_PROVIDER = "PYEXEC_IDP_"
# With what our traces get to where they are sent.
_SECRETS_OF_TRACES = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")
_LOG_FORMATS = ("text", "json")
_LOG_LEVELS = ("debug", "info", "warning", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything an operator decides.

    What we start inherits `environ`, and not `secrets`: variables that are for this process. Neither is ever shown.
    """

    home: Path
    directory: Path
    prefix: Path = Path(sys.prefix)
    interpreter: Path = Path(sys.executable)
    log_level: str = "info"
    log_format: str = "text"
    wait_seconds: float = 20.0
    toolsets: tuple[str, ...] = DEFAULT_TOOLSETS
    smart_async_timeout_seconds: float = 30.0
    python_version: str = f"{sys.version_info.major}.{sys.version_info.minor}"
    limits: ExecutionLimits = field(default_factory=ExecutionLimits)
    environment_limits: EnvironmentLimits = field(default_factory=EnvironmentLimits)
    sandboxes: SandboxSettings = field(default_factory=SandboxSettings)
    sessions: SessionLimits = field(default_factory=SessionLimits)
    file_limits: FileLimits = field(default_factory=FileLimits)
    authorization: AuthorizationSettings = field(default_factory=AuthorizationSettings)
    packages: PackageSettings = field(default_factory=PackageSettings)
    database: DatabaseAddress | None = None
    service: ServiceSettings | None = None
    environ: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    unknown_variables: tuple[str, ...] = ()


def _level(text: str) -> str:
    if text.lower() not in _LOG_LEVELS:
        raise ValueError
    return text.lower()


def _format(text: str) -> str:
    if text.lower() not in _LOG_FORMATS:
        raise ValueError
    return text.lower()


def _expanded(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError as error:  # No such user: for our callers the same as any other wrong value.
        raise ValueError(str(error)) from error


def _path(text: str) -> Path:
    path = _expanded(text)
    if not path.is_absolute():
        raise ValueError
    return path


_NAMED_ONLY = ", ".join(f"`{name}`" for name in TOOLSETS if name in NAMED_ONLY)
_TOOLSETS = Variable(
    name="PYEXEC_TOOLSETS",
    meaning=f"Which toolsets a server offers; `default` and `all` stand for those, but {_NAMED_ONLY} have to be named.",
    default=",".join(DEFAULT_TOOLSETS),
    allowed=f"names with commas between them, of {', '.join(TOOLSETS)}, default, all",
    read=parse_toolsets,
)

VARIABLES: tuple[Variable, ...] = (
    Variable(
        name="PYEXEC_HOME",
        meaning="The state folder: records, logs, outcomes.",
        default="the user's state folder (~/.local/state/pyexec); /var/lib/pyexec for root",
        allowed="an absolute path",
        read=_path,
    ),
    Variable(
        name="PYEXEC_LOG_LEVEL",
        meaning="What goes to stderr and to the log: debug, info, warning or error.",
        default="info",
        allowed="debug, info, warning or error",
        read=_level,
    ),
    Variable(
        name="PYEXEC_LOG_FORMAT",
        meaning="How the log goes to stderr; the log in the state folder is JSON in any case.",
        default="text",
        allowed="text or json",
        read=_format,
    ),
    Variable(
        name="PYEXEC_WAIT_SECONDS",
        meaning="How long a tool waits for a program to end before it hands back a job id.",
        default="20",
        allowed="a number between 0 and 3600",
        read=number(0, 3600),
    ),
    _TOOLSETS,
    Variable(
        name="SMART_ASYNC_TIMEOUT_SECONDS",
        meaning="How long a @smart_async tool tries to finish, unless a variable of its own says so.",
        default="30",
        allowed="a number between 0 and 86400",
        read=number(0, 86400),
    ),
    Variable(
        name="PYEXEC_CONCURRENT",
        meaning="How many programs of one user run at once; others wait in order.",
        default="cores x 4",
        allowed="a whole number between 1 and 4096",
        read=whole(1, 4096),
        limit="concurrent",
    ),
    Variable(
        name="PYEXEC_QUEUED",
        meaning="How many programs of one user may wait or run altogether.",
        default="1000",
        allowed="a whole number between 1 and 100000",
        read=whole(1, 100_000),
        limit="queued",
    ),
    Variable(
        name="PYEXEC_KEPT_OUTPUT_MB",
        meaning="How much of each output stream is kept on disk: half from its beginning, half from its end.",
        default="50",
        allowed="a whole number between 1 and 100000",
        read=whole(1, 100_000, MEGABYTE),
        limit="kept_output",
    ),
    Variable(
        name="PYEXEC_ANSWER_OUTPUT_BYTES",
        meaning="How much output an answer carries when the caller does not say.",
        default="60000",
        allowed="a whole number between 100 and 4194304",
        read=whole(100, 4 * MEGABYTE),
        limit="answer_output",
    ),
    Variable(
        name="PYEXEC_RETENTION_DAYS",
        meaning="How long ended executions are kept.",
        default="14",
        allowed="a number between 0 and 36500",
        read=number(0, 36500, DAY),
        limit="retention_age",
    ),
    Variable(
        name="PYEXEC_RETENTION_MB",
        meaning="How much disk ended executions of one user may take.",
        default="2048",
        allowed="a whole number between 1 and 1000000000",
        read=whole(1, 10**9, MEGABYTE),
        limit="retention_size",
    ),
    Variable(
        name="PYEXEC_AUTOSAVED_SCRIPTS",
        meaning="How many sources of inline code are kept, as long as ended executions; 0: none.",
        default="1000",
        allowed="a whole number between 0 and 1000000",
        read=whole(0, 1_000_000),
        limit="autosaved",
    ),
    Variable(
        name="PYEXEC_FREE_DISK_MB",
        meaning="Below this much free disk no new work is taken.",
        default="64",
        allowed="a whole number between 0 and 1000000000",
        read=whole(0, 10**9, MEGABYTE),
        limit="free_disk",
    ),
    Variable(
        name="PYEXEC_PREPARE_SECONDS",
        meaning="How long making the environment of one execution may take.",
        default="900",
        allowed="a number between 1 and 86400",
        read=number(1, 86400),
        limit="prepare_timeout",
    ),
    Variable(
        name="PYEXEC_ENVIRONMENTS_MB",
        meaning="How much disk the environments may take together, and what is put together for sandboxes likewise; "
        "those not used for the longest time go first.",
        default="10240",
        allowed="a whole number between 1 and 1000000000",
        read=whole(1, 10**9, MEGABYTE),
        limit="environments_size",
    ),
    Variable(
        name="PYEXEC_ENVIRONMENTS_DAYS",
        meaning="How long an environment is kept that nobody uses; named ones are kept in any case.",
        default="30",
        allowed="a number between 0 and 36500",
        read=number(0, 36500, DAY),
        limit="environments_age",
    ),
    Variable(
        name="PYEXEC_FRESH_HOURS",
        meaning="How long a resolution counts before the package index is asked again.",
        default="24",
        allowed="a number between 0 and 876000",
        read=number(0, 876_000, 3600.0),
        limit="fresh",
    ),
    *SANDBOX_VARIABLES,
    *SESSION_VARIABLES,
    *FILE_VARIABLES,
    *AUTH_VARIABLES,
    *PACKAGE_VARIABLES,
    *DATABASE_VARIABLES,
    *SERVICE_VARIABLES,
)


def load_settings(
    environ: Mapping[str, str] | None = None,
    *,
    directory: Path | None = None,
    toolsets: str | None = None,
    service: Mapping[str, Any] | None = None,
) -> Settings:
    """Read the settings from the environment; what the command line says wins.

    Args:
        environ: The environment; the process's own when it is left out.
        directory: `--directory`, where relative paths of callers begin.
        toolsets: `--toolsets`, as in the variable of that name.
        service: What the command line says about a server over HTTP, by the names of `ServiceSettings`; None: there
            is to be none.

    Raises:
        UnsupportedPlatformError: This operating system is not supported.
        InvalidArgumentError: A variable has a value that is not allowed.
    """
    environ = dict(os.environ) if environ is None else environ
    require_supported_platform()
    given = {variable: _read(variable, text) for variable in VARIABLES if (text := environ.get(variable.name))}
    limits = {variable.limit: value for variable, value in given.items() if variable.limit}
    own = {variable.name: value for variable, value in given.items()}
    if toolsets is not None:
        own["PYEXEC_TOOLSETS"] = _read(replace(_TOOLSETS, name="--toolsets"), toolsets)
    authorization = authorization_settings(limits, environ)
    over_http = None if service is None else service_settings(limits, service)
    secrets = _secrets(environ, authorization, over_http)
    return Settings(
        home=own.get("PYEXEC_HOME") or _default_home(environ),
        directory=_directory(directory),
        log_level=own.get("PYEXEC_LOG_LEVEL", "info"),
        log_format=own.get("PYEXEC_LOG_FORMAT", "text"),
        wait_seconds=own.get("PYEXEC_WAIT_SECONDS", 20.0),
        toolsets=own.get("PYEXEC_TOOLSETS", DEFAULT_TOOLSETS if service is None else SERVICE_TOOLSETS),
        smart_async_timeout_seconds=own.get("SMART_ASYNC_TIMEOUT_SECONDS", 30.0),
        limits=_with(ExecutionLimits(concurrent=(os.cpu_count() or 1) * 4), limits),
        environment_limits=_with(EnvironmentLimits(), limits),
        sandboxes=sandbox_settings(limits),
        sessions=_with(SessionLimits(), limits),
        file_limits=_with(FileLimits(), limits),
        authorization=authorization,
        packages=package_settings(limits),
        database=database_settings(limits),
        service=over_http,
        environ={name: value for name, value in environ.items() if name not in secrets},
        secrets=secrets,
        unknown_variables=_unknown(environ),
    )


def _secrets(
    environ: Mapping[str, str], authorization: AuthorizationSettings, service: ServiceSettings | None
) -> dict[str, str]:
    """Return the variables that nothing inherits: the one list of them."""
    names = {variable.name for variable in VARIABLES if variable.secret} | set(authorization.secret_variables)
    if service is not None and service.traces:
        names.update(_SECRETS_OF_TRACES)
    return {
        name: value for name, value in environ.items() if name in names or name.startswith(_OF_THE_IDENTITY_PROVIDER)
    }


def smart_async_seconds(name: str | None, default: float, environ: Mapping[str, str] | None = None) -> float:
    """Return how long a `@smart_async` tool tries to finish: what its own variable says, else the one for all of them.

    Raises:
        InvalidArgumentError: A variable has a value that is not allowed.
    """
    environ = os.environ if environ is None else environ
    general = next(variable for variable in VARIABLES if variable.name == "SMART_ASYNC_TIMEOUT_SECONDS")
    for variable in (replace(general, name=name), general) if name else (general,):
        if text := environ.get(variable.name):
            return _read(variable, text)
    return default


def _with(defaults: Limits, given: Mapping[str, Any]) -> Limits:
    own = {field.name for field in fields(defaults)}
    return replace(defaults, **{name: value for name, value in given.items() if name in own})


def require_supported_platform() -> None:
    """Refuse to go on where pyexec cannot work.

    Raises:
        UnsupportedPlatformError: This is Windows.
    """
    if sys.platform == "win32":
        raise UnsupportedPlatformError(
            "pyexec does not run on Windows: it needs process groups, unix sockets and file locks of a POSIX system.",
            hint="Run it inside the Windows Subsystem for Linux (WSL 2).",
        )


def _read(variable: Variable, text: str) -> Any:
    try:
        return variable.read(text)
    except ValueError:
        given = "not allowed as it is" if variable.secret else repr(text)
        raise InvalidArgumentError(
            f"{variable.name} is {given}; it must be {variable.allowed}.", hint=variable.meaning
        ) from None


def _unknown(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return names that look like settings of ours and are not: most likely misspelt."""
    known = {variable.name for variable in VARIABLES} | set(_SET_FOR_PROGRAMS)
    return tuple(sorted(name for name in environ if _looks_like_ours(name) and name not in known))


def _looks_like_ours(name: str) -> bool:
    return name.startswith("PYEXEC_") and not name.startswith(_OF_THE_IDENTITY_PROVIDER)


def _directory(directory: Path | None) -> Path:
    try:
        path = Path.cwd() if directory is None else _expanded(str(directory))
    except ValueError:
        raise InvalidArgumentError(f"--directory {directory} begins with a user who does not exist.") from None
    if not path.is_dir():
        raise InvalidArgumentError(f"--directory {path} is not a directory.")
    return path.absolute()


def _default_home(environ: Mapping[str, str]) -> Path:
    if os.geteuid() == 0:
        return Path("/var/lib/pyexec")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "pyexec"
    state = environ.get("XDG_STATE_HOME", "")
    base = Path(state) if state.startswith("/") else Path.home() / ".local" / "state"
    return base / "pyexec"
