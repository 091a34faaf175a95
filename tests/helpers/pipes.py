"""A server on bare pipes, for what a well-behaved client would never show."""

import json
import queue
import subprocess
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.helpers.forks import PYEXEC
from tests.helpers.homes import environment

ANSWER_SECONDS = 120.0
EXIT_SECONDS = 60.0
PROTOCOL = "2025-06-18"
CLIENT = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}


class PipeServer:
    """A server process: lines in, lines out."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self.lines: list[bytes] = []
        self.notifications: list[dict[str, Any]] = []
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self._number = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def send(self, line: bytes) -> None:
        """Write a line as it is."""
        self._stdin.write(line + b"\n")
        self._stdin.flush()

    def notify(self, method: str, **params: Any) -> None:
        """Send a notification."""
        self.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode())

    def ask(self, method: str, **params: Any) -> int:
        """Send a request; return its number."""
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self.send(json.dumps(message).encode())
        return self._number

    def answer(self, number: int) -> dict[str, Any]:
        """Return the answer to a request; those to others that come before it are dropped."""
        while True:
            message = self._answers.get(timeout=ANSWER_SECONDS)
            if message["id"] == number:
                return message

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and return the result."""
        message = self.answer(self.ask(method, **params))
        assert "result" in message, message
        return message["result"]

    def initialize(self) -> dict[str, Any]:
        """Shake hands; return what the server says of itself."""
        result = self.request("initialize", **CLIENT)
        self.notify("notifications/initialized")
        return result

    def call(self, tool: str, /, *, progress_token: str | None = None, **arguments: Any) -> int:
        """Send a tool call; return its number."""
        meta = {"_meta": {"progressToken": progress_token}} if progress_token else {}
        return self.ask("tools/call", name=tool, arguments=arguments, **meta)

    def progress(self) -> list[str]:
        """Return the progress messages so far."""
        seen = list(self.notifications)
        return [note["params"].get("message", "") for note in seen if note["method"] == "notifications/progress"]

    def hang_up(self) -> int:
        """Close the server's stdin; return its exit status."""
        self._stdin.close()
        status = self.process.wait(EXIT_SECONDS)
        self.close()
        return status

    def kill(self) -> None:
        """Kill the server as nothing else can be killed."""
        self.process.kill()
        self.process.wait(EXIT_SECONDS)
        self.close()

    def close(self) -> None:
        """End what is left and let go of the pipes."""
        self._stdin.close()
        try:
            self.process.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(EXIT_SECONDS)
        self._reader.join(EXIT_SECONDS)
        self._stdout.close()

    def _read(self) -> None:
        for line in self._stdout:
            self.lines.append(line)
            try:
                message = json.loads(line)
            except ValueError:
                continue  # The tests look at `lines` for these.
            if "method" in message:
                self.notifications.append(message)
            else:
                self._answers.put(message)


@contextmanager
def pipe_server(
    home: Path,
    *,
    command: Sequence[str | Path] = (PYEXEC, "serve"),
    env: Mapping[str, str] | None = None,
) -> Generator[PipeServer]:
    """Start a server on bare pipes; its stderr goes to a file beside the state folder."""
    directory = home.parent / "work"
    directory.mkdir(exist_ok=True)
    with open(home.parent / "stderr.txt", "ab") as stderr:
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd=directory,
            env=environment(home, env),
        )
    server = PipeServer(process)
    try:
        yield server
    finally:
        server.close()
