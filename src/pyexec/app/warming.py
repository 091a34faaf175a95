"""Having sandboxes ready before anybody asks for one."""

import logging
from typing import TYPE_CHECKING

from pyexec.domain.errors import PyexecError
from pyexec.domain.executions import ExecutionRequest, Harness
from pyexec.domain.principals import Principal

if TYPE_CHECKING:  # It brings the database along, which is loaded once the client has had its first answer.
    from pyexec.executions.service import ExecutionService

OURSELVES = Principal(issuer="pyexec", subject="warm-up")
_log = logging.getLogger(__name__)


async def warm_sandboxes(executions: "ExecutionService") -> None:
    """Run nothing in a sandbox: what it needs is made, and others like it are kept ready from then on.

    It is an execution like any other, so who asks for a sandbox meanwhile waits for the same environment, and sees
    how far it is. Why there can be no sandboxes is only logged: whoever asks for one is told.
    """
    request = ExecutionRequest(kind="warm-up", script_content="", harness=Harness(guest=True), sandboxed=True)
    try:
        execution = await executions.submit(OURSELVES, request)
        ended = await executions.wait_for(execution, None)
    except PyexecError as error:
        _log.warning("no sandboxes: %s", error.sentence())
        return
    if ended.state != "completed":
        _log.warning("no sandboxes: %s", ended.outcome.reason if ended.outcome else ended.state)
