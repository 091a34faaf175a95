"""Asking for a profile, and what came of one that was asked for."""

from dataclasses import replace
from typing import TYPE_CHECKING

from pyexec.domain.errors import InvalidArgumentError, NotFoundError
from pyexec.domain.executions import Execution, ExecutionRequest
from pyexec.domain.principals import Principal
from pyexec.profiles.modes import KIND, Mode, harness_for
from pyexec.profiles.reading import RESULT, Profile, read_profile

if TYPE_CHECKING:
    # At run time it would bring in storage, and with it SQLAlchemy, before the client has had its first answer.
    from pyexec.executions.service import ExecutionService

MOST_ROWS = 200
_NOTHING_LEFT = (
    "There is no profile: the program was not started, or ended before one could be written, by SIGKILL, os._exit, a "
    "crash or a syntax error."
)
_TOO_SHORT = "There is nothing in the profile: the program was done before anything could be seen of it."


def measured(request: ExecutionRequest, mode: Mode) -> ExecutionRequest:
    """Return a request to run the same and measure it."""
    return replace(request, kind=KIND, harness=harness_for(mode))


async def profile_of(service: "ExecutionService", principal: Principal, execution: Execution) -> "Profile | str":
    """Return what was measured in an execution that has ended, or a sentence on why there is nothing.

    Raises:
        NotFoundError: This principal has no such execution.
    """
    try:
        content = await service.read_artifact(principal, execution.id, RESULT)
    except NotFoundError:
        await service.get(principal, execution.id)
        return _NOTHING_LEFT
    profile = read_profile(content)
    return profile if isinstance(profile, str) or profile.rows else _TOO_SHORT


def require_profile(execution: Execution) -> None:
    """See that an execution is one that was measured.

    Raises:
        InvalidArgumentError: It is not.
    """
    if execution.kind != KIND:
        raise InvalidArgumentError(
            f"Job {execution.id} is a {execution.kind}, no profile.", hint="Leave job_id out, and give the script."
        )


def require_top(top: int) -> None:
    """See that so many rows may be asked for.

    Raises:
        InvalidArgumentError: They may not.
    """
    if not 1 <= top <= MOST_ROWS:
        raise InvalidArgumentError(f"top is {top}; it must be between 1 and {MOST_ROWS}.")
