"""A small MCP client over stdio, so that what is measured is the server and not its client."""

import json
import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from installation import BenchmarkError

PROTOCOL = "2025-06-18"
ANSWER_SECONDS = 600.0
STOP_SECONDS = 10.0


class McpClient:
    """A server that was started, and the conversation with it."""

    def __init__(self, argv: Sequence[str], environ: Mapping[str, str], log: Path) -> None:
        self._log = log
        self._next_id = 0
        self._buffer = bytearray()
        self._answers: dict[int, dict[str, Any]] = {}
        self._started = time.perf_counter()
        with log.open("ab") as stderr:
            # Unbuffered: one message is one write.
            self._process = subprocess.Popen(
                argv, env=environ, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    @property
    def pid(self) -> int:
        """The server's process."""
        return self._process.pid

    def seconds_since_start(self) -> float:
        """Return how long ago the server was started."""
        return time.perf_counter() - self._started

    def initialize(self) -> None:
        """Say hello and wait for the answer.

        Raises:
            BenchmarkError: The server answers with an error, or not at all.
        """
        hello = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": {"name": "benchmark", "version": "1"}}
        self.receive(self.send("initialize", hello))

    def initialized(self) -> None:
        """Finish the greeting; tools can be called from now on."""
        self._write({"method": "notifications/initialized"})

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its structured content.

        Raises:
            BenchmarkError: The call failed.
        """
        return self.result(self.start(tool, **arguments))

    def start(self, tool: str, **arguments: Any) -> int:
        """Call a tool without waiting for the answer; return what `result` needs to know."""
        # As clients do: they ask for progress, and the job's id comes with its first message.
        meta = {"progressToken": self._next_id}
        return self.send("tools/call", {"name": tool, "arguments": arguments, "_meta": meta})

    def result(self, request: int) -> dict[str, Any]:
        """Wait for the answer to a call; return its structured content.

        Raises:
            BenchmarkError: The call failed.
        """
        answer = self.receive(request)
        if answer.get("isError"):
            raise BenchmarkError(f"a call failed: {json.dumps(answer)[:2000]}")
        structured: dict[str, Any] = answer["structuredContent"]
        return structured

    def send(self, method: str, parameters: dict[str, Any]) -> int:
        """Send a request; return its id."""
        request = self._next_id
        self._next_id += 1
        self._write({"id": request, "method": method, "params": parameters})
        return request

    def receive(self, request: int) -> dict[str, Any]:
        """Wait for the answer to a request.

        Raises:
            BenchmarkError: It is an error, or does not come.
        """
        deadline = time.monotonic() + ANSWER_SECONDS
        while request not in self._answers:
            self._read(deadline)
        answer = self._answers.pop(request)
        if "error" in answer:
            raise BenchmarkError(f"the server answered: {json.dumps(answer['error'])[:2000]}")
        result: dict[str, Any] = answer["result"]
        return result

    def _write(self, message: dict[str, Any]) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        assert self._process.stdin is not None
        os.write(self._process.stdin.fileno(), data)

    def _read(self, deadline: float) -> None:
        """Take in what has arrived, at least one piece."""
        assert self._process.stdout is not None
        fd = self._process.stdout.fileno()
        readable, _, _ = select.select([fd], [], [], max(0.0, deadline - time.monotonic()))
        data = os.read(fd, 1 << 20) if readable else b""
        if not data:
            said = self._log.read_text("utf-8", "replace")[-2000:]
            raise BenchmarkError(f"the server {'ended' if readable else 'does not answer'}; its log says:\n{said}")
        self._buffer += data
        *lines, rest = bytes(self._buffer).split(b"\n")
        self._buffer = bytearray(rest)
        for line in lines:
            message: dict[str, Any] = json.loads(line)
            if "method" not in message and isinstance(message.get("id"), int):
                self._answers[message["id"]] = message
