"""The real server over stdio, driven by a real MCP client."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from mcp_types import TextContent, TextResourceContents

from tests.helpers import forks
from tests.helpers.homes import environment
from tests.helpers.waiting import WITHIN_SECONDS, eventually

FINAL = {"completed", "failed", "cancelled", "timed_out", "lost"}


@dataclass(frozen=True)
class Answer:
    """What a tool answered; the client has held `data` against the tool's output schema."""

    data: dict[str, Any]
    text: str
    is_error: bool


@dataclass
class Mcp:
    """A client that is connected to a server."""

    client: Client[StdioTransport]
    home: Path
    directory: Path
    progress: list[str] = field(default_factory=list[str])
    steps: list[tuple[float, float | None]] = field(default_factory=list[tuple[float, float | None]])

    async def call(self, tool: str, /, **arguments: Any) -> Answer:
        """Call a tool; whatever it answers is an answer."""
        result = await self.client.call_tool(tool, arguments, raise_on_error=False)
        (content,) = result.content
        assert isinstance(content, TextContent)
        assert result.structured_content is not None, content.text
        return Answer(data=result.structured_content, text=content.text, is_error=result.is_error)

    async def get(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool that is expected to succeed."""
        answer = await self.call(tool, **arguments)
        assert not answer.is_error, answer.text
        return answer.data

    async def refused(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool that is expected to refuse; return why, by code and sentence."""
        answer = await self.call(tool, **arguments)
        assert answer.is_error, answer.text
        assert set(answer.data) == {"error", "error_code"}, answer.data
        assert answer.data["error_code"] in answer.text
        return answer.data

    async def run(self, source: str, /, **arguments: Any) -> dict[str, Any]:
        """Run inline code with the python on PATH, in a folder of the test's own; return the result, good or bad."""
        given = {"directory": str(self.directory), "script_content": source, "use_uv": False, **arguments}
        answer = await self.call("run_script_in_dir", **given)
        assert "job_id" in answer.data, answer.text
        return answer.data

    async def start(self, source: str, /, **arguments: Any) -> str:
        """Start inline code as a job; return its id."""
        return (await self.run(source, async_mode=True, **arguments))["job_id"]

    async def output(self, job_id: str, **arguments: Any) -> dict[str, Any]:
        """Read a job's output."""
        return (await self.call("get_job_output", job_id=job_id, **arguments)).data

    async def job(self, job_id: str) -> dict[str, Any]:
        """Return a job's record."""
        return (await self.get("py_job_status", job_id=job_id))["job"]

    async def printed(self, job_id: str, text: str, *, within: float = WITHIN_SECONDS) -> dict[str, Any]:
        """Wait until a job has printed some text; return its output."""

        async def look() -> dict[str, Any] | None:
            seen = await self.output(job_id)
            assert text in seen["stdout"] or seen["status"] == "running", seen
            return seen if text in seen["stdout"] else None

        found = await eventually(look, within=within, what=f"printing {text!r}")
        assert found is not None
        return found

    async def finished(self, job_id: str, *, within: float = WITHIN_SECONDS) -> dict[str, Any]:
        """Wait until a job has ended; return its output."""

        async def look() -> dict[str, Any] | None:
            seen = await self.output(job_id)
            return seen if seen["status"] == "finished" else None

        found = await eventually(look, within=within, what="the end of the job")
        assert found is not None
        return found

    async def read_on(self, job_id: str, cursor: str | None = None, **arguments: Any) -> "Read":
        """Read a job's output in steps, from cursor to cursor, until it has ended and nothing more comes."""
        read = Read()
        while True:
            given = {"job_id": job_id, **({"cursor": cursor} if cursor else {}), **arguments}
            step = await self.get("py_job_status", **given)
            cursor = step["next_cursor"]
            read.steps += 1
            read.stdout += step["job"]["new_stdout"]
            read.stderr += step["job"]["new_stderr"]
            read.gap += step.get("gap_bytes", 0)
            nothing = not step["job"]["new_stdout"] and not step["job"]["new_stderr"]
            if nothing and step["job"]["status"] in FINAL:
                return read

    async def stream(self, job_id: str) -> str:
        """Read the resource `job-stream://{job_id}`."""
        (content,) = await self.client.read_resource(f"job-stream://{job_id}")
        assert isinstance(content, TextResourceContents)
        return content.text

    async def total_jobs(self) -> int:
        """Return how many jobs there are."""
        return (await self.get("py_list_jobs"))["total"]


@dataclass
class Read:
    """What reading in steps brought together."""

    stdout: str = ""
    stderr: str = ""
    gap: int = 0
    steps: int = 0


@asynccontextmanager
async def connect(
    home: Path,
    *,
    mode: str = "auto",
    options: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    command: Sequence[str | Path] | None = None,
) -> AsyncGenerator[Mcp]:
    """Start a server and connect to it: `auto` speaks the newest protocol, `legacy` the one with a handshake."""
    directory = home.parent / "work"
    directory.mkdir(exist_ok=True)
    program, *arguments = map(str, (*(command or (*forks.pyexec(), "serve")), *options))
    transport = StdioTransport(
        program,
        arguments,
        env=environment(home, env),
        cwd=str(directory),
        keep_alive=False,
        log_file=home.parent / "stderr.txt",
    )
    progress: list[str] = []
    steps: list[tuple[float, float | None]] = []

    async def note(current: float, total: float | None, message: str | None) -> None:
        progress.append(message or "")
        steps.append((current, total))

    async with Client(transport, mode=mode, progress_handler=note) as client:
        yield Mcp(client=client, home=home, directory=directory, progress=progress, steps=steps)


def as_json(answer: Answer) -> Any:
    """Read an answer's text as JSON."""
    return json.loads(answer.text)
