"""Everything pyexec itself can refuse or fail at.

User code that fails is data in an `Outcome`, never one of these. Each class has a stable `code` that clients may
branch on; the message says what was wrong, which value, and what is allowed; the hint says what to do next.

    PyexecError
    ├── InvalidArgumentError        invalid_argument
    │   └── EnvFileError            env_file_invalid
    ├── NotFoundError               not_found
    ├── UvNotFoundError             uv_not_found
    ├── InterpreterNotFoundError    interpreter_not_found
    ├── EnvironmentInUseError       environment_in_use
    ├── QueueFullError              queue_full
    ├── DiskFullError               disk_full
    ├── StateVersionError           state_version
    ├── StateUnusableError          state_unusable
    ├── RecordsUnavailableError     records_unavailable
    ├── KeeperUnavailableError      keeper_unavailable
    ├── PackagesUnavailableError    packages_unavailable
    ├── ToolFailedError             tool_failed
    ├── ResultNotKeptError          result_not_kept
    ├── UnsupportedPlatformError    unsupported_platform
    ├── WallUnavailableError        wall_unavailable
    ├── SandboxNotMadeError         sandbox_not_made
    ├── SandboxesFullError          sandboxes_full
    ├── WorkspacesFullError         workspaces_full
    ├── SessionEndedError           session_ended
    ├── SessionBusyError            session_busy
    └── SessionsFullError           sessions_full
"""

from typing import ClassVar

from pyexec.domain.text import legible

Detail = str | int | float | list[str]


class PyexecError(Exception):
    """Base of all our errors; catch this for anything pyexec refuses or fails at.

    Attributes:
        message: One or two sentences for the caller; never holds a secret value.
        hint: What to do next, or None.
        details: Values a program may want, by name.
    """

    code: ClassVar[str] = "internal"

    def __init__(self, message: str, *, hint: str | None = None, **details: Detail) -> None:
        super().__init__(legible(message))
        self.message = legible(message)
        self.hint = None if hint is None else legible(hint)
        self.details = details

    def sentence(self) -> str:
        """Return the message and, when there is one, the hint, as one text."""
        return f"{self.message} {self.hint}" if self.hint else self.message


class InvalidArgumentError(PyexecError):
    """An argument has a value that is not allowed."""

    code = "invalid_argument"


class EnvFileError(InvalidArgumentError):
    """A line of an env file cannot be read."""

    code = "env_file_invalid"


class NotFoundError(PyexecError):
    """A file, directory or id does not exist, or belongs to somebody else."""

    code = "not_found"


class UvNotFoundError(PyexecError):
    """The uv program is needed and is not installed."""

    code = "uv_not_found"


class InterpreterNotFoundError(PyexecError):
    """No Python on this machine fits the request."""

    code = "interpreter_not_found"


class EnvironmentInUseError(PyexecError):
    """An environment cannot be removed while something runs in it."""

    code = "environment_in_use"


class QueueFullError(PyexecError):
    """Too many executions are waiting already."""

    code = "queue_full"


class DiskFullError(PyexecError):
    """The disk of the state folder is too full to take new work; what is there stays readable."""

    code = "disk_full"


class StateVersionError(PyexecError):
    """The state folder was written by a newer pyexec than this one."""

    code = "state_version"


class StateUnusableError(PyexecError):
    """The state folder cannot be created, read or written."""

    code = "state_unusable"


class RecordsUnavailableError(PyexecError):
    """The database server of the records does not answer; what runs goes on, and nothing of it is lost."""

    code = "records_unavailable"

    may_be_kept = False
    """Whether what was written just before may have been kept all the same: the server went away when asked to."""


class KeeperUnavailableError(PyexecError):
    """The process that guards executions could not be started or does not answer."""

    code = "keeper_unavailable"


class PackagesUnavailableError(PyexecError):
    """Packages for a sandbox cannot be had: they do not go with what is there, or could not be put together."""

    code = "packages_unavailable"


class ToolFailedError(PyexecError):
    """A formatter or analyser could not be installed, is not installed yet, or could not do its part."""

    code = "tool_failed"


class ResultNotKeptError(PyexecError):
    """What a `@smart_async` function returned is no JSON, or is too large to be kept."""

    code = "result_not_kept"


class UnsupportedPlatformError(PyexecError):
    """This operating system lacks what the operation needs."""

    code = "unsupported_platform"


class WallUnavailableError(PyexecError):
    """The wall, or a limit of it, cannot be had on this machine; nothing was run without it."""

    code = "wall_unavailable"


class SandboxNotMadeError(PyexecError):
    """A sandbox could not be made this time; nothing has run in it."""

    code = "sandbox_not_made"


class SandboxesFullError(PyexecError):
    """There is no memory for one more sandbox, and too many wait for that, or it has waited for too long."""

    code = "sandboxes_full"


class WorkspacesFullError(PyexecError):
    """The files of all sessions of one owner come to more than they may."""

    code = "workspaces_full"


class SessionEndedError(PyexecError):
    """The interpreter of a session has ended; it starts anew only when that is asked for."""

    code = "session_ended"


class SessionBusyError(PyexecError):
    """Too many executions wait for their turn in one session, or what was asked for can be done only between them."""

    code = "session_busy"


class SessionsFullError(PyexecError):
    """One owner has as many sessions as they may have, and none of them is idle."""

    code = "sessions_full"
