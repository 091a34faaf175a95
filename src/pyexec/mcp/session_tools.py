"""The tools around sessions; `execute_python` is what runs something in one."""

import time
from typing import TYPE_CHECKING, Annotated

from fastmcp import FastMCP
from fastmcp.tools import ToolResult
from mcp_types import ToolAnnotations
from pydantic import Field

from pyexec.domain.errors import NotFoundError, WallUnavailableError
from pyexec.mcp import arguments as arg
from pyexec.mcp.answers import answer
from pyexec.mcp.export_tools import add_export_tool
from pyexec.mcp.rendering_sessions import render_change, render_info, render_list
from pyexec.mcp.results_sessions import SessionChange, SessionInfo, SessionList
from pyexec.mcp.running import Desk
from pyexec.mcp.views_sessions import session_entry, session_info

if TYPE_CHECKING:
    from pyexec.sessions.service import SessionService

INTERRUPTED = "The session was interrupted on request."
READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
INTERRUPTS = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
ENDS = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)

SessionId = Annotated[str, Field(description="As given to execute_python")]


def add_session_tools(server: FastMCP, desk: Desk) -> None:
    """Add the tools to the server."""
    _add_looking(server, desk)
    _add_ending(server, desk)
    add_export_tool(server, desk)


def _add_looking(server: FastMCP, desk: Desk) -> None:
    @server.tool(
        tags={"sessions"},
        output_schema=SessionList.output_schema(),
        annotations=READS,
        description="List sessions: state, age, idle time, memory.",
    )
    async def list_sessions(*, markdown_output: arg.MarkdownOutput = True) -> ToolResult:
        async def work() -> SessionList:
            found = await (await _service(desk)).all_of(desk.principal())
            return SessionList(sessions=[session_entry(one, time.time()) for one in found])

        return await answer(work, render_list, SessionList, markdown=markdown_output)

    @server.tool(
        name="session_info",
        tags={"sessions"},
        output_schema=SessionInfo.output_schema(),
        annotations=READS,
        description="A session's variables with type, shape and size, its packages and memory.",
    )
    async def session_info_tool(session_id: SessionId, *, markdown_output: arg.MarkdownOutput = True) -> ToolResult:
        async def work() -> SessionInfo:
            status = await (await _service(desk)).info(desk.principal(), session_id)
            return session_info(status, time.time())

        return await answer(work, render_info, SessionInfo, markdown=markdown_output)


def _add_ending(server: FastMCP, desk: Desk) -> None:
    @server.tool(
        tags={"sessions"},
        output_schema=SessionChange.output_schema(),
        annotations=INTERRUPTS,
        description="Interrupt what runs in a session, as Ctrl-C would; its variables stay.",
    )
    async def interrupt_session(session_id: SessionId, *, markdown_output: arg.MarkdownOutput = True) -> ToolResult:
        async def work() -> SessionChange:
            return await _interrupt(desk, session_id)

        return await answer(work, render_change, SessionChange, markdown=markdown_output)

    @server.tool(
        tags={"sessions"},
        output_schema=SessionChange.output_schema(),
        annotations=ENDS,
        description="Give a session a fresh interpreter: variables go, files stay.",
    )
    async def restart_session(session_id: SessionId, *, markdown_output: arg.MarkdownOutput = True) -> ToolResult:
        async def work() -> SessionChange:
            await (await _service(desk)).restart(desk.principal(), session_id)
            return SessionChange(
                session_id=session_id, message="The next execute_python in it starts a fresh interpreter."
            )

        return await answer(work, render_change, SessionChange, markdown=markdown_output)

    @server.tool(
        tags={"sessions"},
        output_schema=SessionChange.output_schema(),
        annotations=ENDS,
        description="End a session and remove its files.",
    )
    async def close_session(session_id: SessionId, *, markdown_output: arg.MarkdownOutput = True) -> ToolResult:
        async def work() -> SessionChange:
            await (await _service(desk)).close(desk.principal(), session_id)
            return SessionChange(session_id=session_id, message="It is closed, and its files are removed.")

        return await answer(work, render_change, SessionChange, markdown=markdown_output)


async def _interrupt(desk: Desk, session_id: str) -> SessionChange:
    principal = desk.principal()
    running = await (await _service(desk)).running_in(principal, session_id)
    executions = (await desk.services.get()).executions
    try:
        execution = None if running is None else await executions.stop(principal, running, "cancel", INTERRUPTED)
    except NotFoundError:
        execution = None  # It has ended and is removed already.
    if execution is None:
        return SessionChange(session_id=session_id, message="Nothing ran in it.")
    return SessionChange(session_id=session_id, job_id=execution.id, message="What ran in it was interrupted.")


async def _service(desk: Desk) -> "SessionService":
    sessions = (await desk.services.get()).sessions
    if sessions is None:
        raise WallUnavailableError("There are no sessions on this machine, because sandboxes need Linux.")
    return sessions
