"""The real server over HTTP, as a process of its own."""

import json
import os
import signal
import subprocess
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport

from tests.helpers import forks
from tests.helpers.homes import environment
from tests.helpers.waiting import eventually

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
BOTH = "application/json, text/event-stream"
END_SECONDS = 60.0


@dataclass
class Server:
    """A server that answers at `url`."""

    url: str
    process: subprocess.Popen[bytes]
    home: Path
    directory: Path
    log: Path

    @property
    def base(self) -> str:
        """Where the plain routes are."""
        return self.url.removesuffix("/mcp")

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.base.rpartition(":")[2])

    def signal(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Send it a signal."""
        os.kill(forks.stood_for(self.process.pid) or self.process.pid, number)

    async def ended(self) -> int:
        """Wait until it has ended; return its status."""
        return await eventually(lambda: self.process.poll() is not None, what="the server's end") and (
            self.process.returncode
        )

    def said(self) -> str:
        """Return what it wrote to stderr."""
        return self.log.read_text("utf-8", "replace")

    def client(self, mode: str = "auto", **options: Any) -> Client[StreamableHttpTransport]:
        """Return a client that is not connected yet."""
        return Client(StreamableHttpTransport(self.url), mode=mode, **options)

    @asynccontextmanager
    async def http(self, **options: Any) -> AsyncGenerator[httpx2.AsyncClient]:
        """Yield a plain HTTP client."""
        async with httpx2.AsyncClient(base_url=self.base, timeout=END_SECONDS, **options) as client:
            yield client


def request(method: str, params: Mapping[str, Any] | None = None, *, number: int = 1) -> dict[str, Any]:
    """Return a 2026-07-28 request."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": {**(params or {}), "_meta": meta}}


def headers(method: str, name: str | None = None, **more: str) -> dict[str, str]:
    """Return the headers that go with it."""
    named = {"Mcp-Name": name} if name else {}
    return {
        "Accept": BOTH,
        "Content-Type": "application/json",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": method,
        **named,
        **more,
    }


def handshake(number: int = 1) -> dict[str, Any]:
    """Return the first request of a 2025-11-25 client."""
    params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    return {"jsonrpc": "2.0", "id": number, "method": "initialize", "params": params}


def messages(text: str) -> list[Any]:
    """Return the messages of an event stream."""
    return [json.loads(line[5:]) for line in text.splitlines() if line.startswith("data:") and line[5:].strip()]


@asynccontextmanager
async def serve(
    home: Path, *, options: Sequence[str] = (), env: Mapping[str, str] | None = None, address: str = "127.0.0.1:0"
) -> AsyncGenerator[Server]:
    """Start a server; end it in the end."""
    directory = home.parent / "work"
    directory.mkdir(exist_ok=True)
    log = home.parent / "http-stderr.txt"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [*map(str, forks.pyexec()), "serve", "--http", address, *options],
            env=environment(home, env),
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stderr=errors,
        )
    try:

        def where() -> str | None:
            said = log.read_text("utf-8", "replace")
            assert process.poll() is None, said
            found = [line for line in said.splitlines() if line.startswith("pyexec serves MCP at ")]
            return found[0].rpartition(" ")[2] if found else None

        url = await eventually(where, what="a server that answers")
        assert url is not None
        yield Server(url=url, process=process, home=home, directory=directory, log=log)
    finally:
        if process.poll() is None:
            os.kill(forks.stood_for(process.pid) or process.pid, signal.SIGTERM)
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise
