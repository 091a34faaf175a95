"""Showing how an environment is made, while somebody waits for it."""

import sys

import anyio

from pyexec.domain.principals import Principal
from pyexec.executions.service import ExecutionService

LOOK_SECONDS = 0.1
_CLEAR = "\r\x1b[K"


async def show_preparation(
    service: ExecutionService, principal: Principal, execution_id: str, *, always: bool = False
) -> None:
    """Show on stderr what is being prepared, until the program starts: one line on a terminal.

    `always` writes a line for each step where stderr is no terminal.
    """
    terminal = sys.stderr.isatty()
    if not terminal and not always:
        return
    shown = ""
    while True:
        execution = await service.get(principal, execution_id)
        if execution.ended or execution.started_at is not None:
            break
        doing = await service.preparing(execution)
        if doing and doing != shown:
            shown = doing
            sys.stderr.write(f"{_CLEAR}{doing}" if terminal else f"{doing}\n")
            sys.stderr.flush()
        await anyio.sleep(LOOK_SECONDS)
    if terminal and shown:
        sys.stderr.write(_CLEAR)
        sys.stderr.flush()
