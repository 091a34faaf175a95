"""The tools that look after environments."""

from typing import Annotated

from fastmcp import Context, FastMCP
from fastmcp.tools import ToolResult
from mcp_types import ToolAnnotations
from pydantic import Field

from pyexec.domain.executions import ExecutionRequest
from pyexec.mcp import arguments as arg
from pyexec.mcp import results, views
from pyexec.mcp.answers import answer, has_error
from pyexec.mcp.rendering_environments import render_created, render_environments, render_lock, render_removed
from pyexec.mcp.running import Desk, run

# FastMCP reads a docstring with a parser that takes a third of a second to load; a description it takes as it is.
LIST_ENVIRONMENTS = "List the Python environments there are: packages, size, last use, names."
CREATE_ENVIRONMENT = (
    "Make an environment with a name, which any run may use by environment=NAME; it is kept until removed.\n\n"
    "With the name of one that exists, that one is replaced. Waits and hands back as run_script_in_dir does."
)
REMOVE_ENVIRONMENT = "Remove an environment and its name; one that is in use is not removed."
LOCK_ENVIRONMENT = "Show the exact packages of an environment with their hashes, to make it again elsewhere."

READS = ToolAnnotations(read_only_hint=True)
MAKES = ToolAnnotations(destructive_hint=False, open_world_hint=True)
REMOVES = ToolAnnotations(destructive_hint=True, idempotent_hint=True)

Name = Annotated[str, Field(description="Lower-case letters, digits, '.', '_' and '-'")]
WhichEnvironment = Annotated[str, Field(description="A name or an id")]


def add_environment_tools(server: FastMCP, desk: Desk) -> None:
    """Add the tools that look after environments to the server."""
    _add_reading(server, desk)
    _add_changing(server, desk)


def _add_reading(server: FastMCP, desk: Desk) -> None:
    @server.tool(
        tags={"environments", "introspection"},
        output_schema=results.Environments.output_schema(),
        annotations=READS,
        description=LIST_ENVIRONMENTS,
    )
    async def list_environments(*, markdown_output: arg.MarkdownOutput = True) -> ToolResult:
        async def work() -> results.Environments:
            service = (await desk.services.get()).environments
            return views.environments(await service.entries(desk.principal()))

        return await answer(work, render_environments, results.Environments, markdown=markdown_output)

    @server.tool(
        tags={"environments", "introspection"},
        output_schema=results.EnvironmentLocked.output_schema(),
        annotations=READS,
        description=LOCK_ENVIRONMENT,
    )
    async def lock_environment(
        *, environment: WhichEnvironment, markdown_output: arg.MarkdownOutput = True
    ) -> ToolResult:
        async def work() -> results.EnvironmentLocked:
            service = (await desk.services.get()).environments
            return views.environment_lock(await service.lock(desk.principal(), environment))

        return await answer(work, render_lock, results.EnvironmentLocked, markdown=markdown_output)


def _add_changing(server: FastMCP, desk: Desk) -> None:
    @server.tool(
        tags={"environments", "dependencies"},
        output_schema=results.EnvironmentCreated.output_schema(),
        annotations=MAKES,
        description=CREATE_ENVIRONMENT,
    )
    async def create_environment(
        context: Context,
        *,
        name: Name,
        python_version: arg.PythonVersion = None,
        dependencies: arg.Dependencies = None,
        constraints: arg.Constraints = None,
        index_url: arg.IndexUrl = None,
        directory: arg.OptionalDirectory = None,
        env_vars: arg.EnvVars = None,
        env_file: arg.EnvFile = None,
        wait_seconds: arg.WaitSeconds = None,
        async_mode: arg.AsyncMode = False,
        markdown_output: arg.MarkdownOutput = True,
    ) -> ToolResult:
        request = ExecutionRequest(
            kind="environment",
            directory=directory,
            script_content="",
            python_version=python_version,
            dependencies=tuple(dependencies or ()),
            constraints=tuple(constraints or ()),
            index_url=index_url,
            keep_as=name,
            env_vars=env_vars or {},
            env_file=env_file,
            label=f"environment {name}",
        )

        async def work() -> results.EnvironmentCreated:
            wait = 0 if async_mode else wait_seconds
            done = await run(desk, context, request, wait_seconds=wait, max_output_bytes=None)
            return views.environment_created(name, done)

        return await answer(
            work,
            render_created,
            results.EnvironmentCreated,
            markdown=markdown_output,
            failed=has_error,
        )

    @server.tool(
        tags={"environments", "control"},
        output_schema=results.EnvironmentRemoved.output_schema(),
        annotations=REMOVES,
        description=REMOVE_ENVIRONMENT,
    )
    async def remove_environment(
        *, environment: WhichEnvironment, markdown_output: arg.MarkdownOutput = True
    ) -> ToolResult:
        async def work() -> results.EnvironmentRemoved:
            service = (await desk.services.get()).environments
            return views.environment_removed(await service.remove(desk.principal(), environment))

        return await answer(work, render_removed, results.EnvironmentRemoved, markdown=markdown_output)
