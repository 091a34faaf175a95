"""A server of somebody else's, with tools that are decorated with `smart_async`."""

import itertools
import os
import time
from typing import Any

import anyio
from fastmcp import FastMCP

from python_mcp_server.smart_async import add_job_tools, create_progress_callback, smart_async

mcp = FastMCP("somebody's")
add_job_tools(mcp)


async def opened(gate: str) -> None:
    for _look in itertools.count():
        if os.path.exists(gate):
            return
        await anyio.sleep(0.01)


@mcp.tool
@smart_async(timeout_env="PATIENT_SECONDS", default_timeout=0.1)
async def count(rows: int, gate: str | None = None, fail: bool = False) -> dict[str, Any]:
    """Count rows; half way, wait until a file is there.

    Args:
        rows: How many.
        gate: The file.
    """
    progress = create_progress_callback()
    for row in range(1, rows + 1):
        progress(row, rows, f"row {row}")
        if gate and row == rows // 2:
            await opened(gate)
    if fail:
        raise ValueError("no more rows")
    return {"rows": rows}


@mcp.tool
@smart_async(timeout_env="HASTY_SECONDS", default_timeout=60)
async def count_slowly(rows: int, gate: str) -> dict[str, int]:
    """Count rows, in an `await` that never comes back without its file."""
    progress = create_progress_callback()
    progress(1, rows)
    await opened(gate)
    return {"rows": rows}


@mcp.tool
@smart_async("HASTY_SECONDS")
def grind(rows: int, gate: str) -> dict[str, int]:
    """Count rows in a thread; leave a note when it ends."""
    progress = create_progress_callback()
    try:
        while not os.path.exists(gate):
            progress(1, rows, "grinding")
            time.sleep(0.01)
    finally:
        with open(f"{gate}.left", "w"):
            pass
    return {"rows": rows}


@mcp.tool
@smart_async(timeout_env="WRONG_SECONDS")
async def never() -> None:
    """Is never run: its variable is wrong."""


if __name__ == "__main__":
    mcp.run(show_banner=False)
