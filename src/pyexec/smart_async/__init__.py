"""Smart async for your own MCP tools: what takes longer than the caller waits goes on as a job.

from fastmcp import FastMCP
from pyexec.smart_async import add_job_tools, create_progress_callback, smart_async

mcp = FastMCP("mine")
add_job_tools(mcp)

@mcp.tool
@smart_async(timeout_env="MY_TIMEOUT", default_timeout=30.0)
async def crunch(rows: int) -> dict:
progress = create_progress_callback()
for row in range(rows):
progress(row, rows, "crunching")
...
return {"rows": rows}
"""

from pyexec.smart_async.decorator import smart_async
from pyexec.smart_async.jobs import JobCancelledError, create_progress_callback
from pyexec.smart_async.tools import add_job_tools

__all__ = ["JobCancelledError", "add_job_tools", "create_progress_callback", "smart_async"]
