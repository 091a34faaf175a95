"""What a server over HTTP tells its operator: logs, the audit log, metrics, traces. Never a secret."""

import gzip
import hashlib
import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.helpers import forks
from tests.helpers.homes import processes_of, temporary_home
from tests.helpers.over_http import Server, headers, request, serve
from tests.helpers.waiting import eventually

TOKEN = "metrics-token-0123456789"
COLLECTOR_KEY = "key-of-the-collector"
SECRET = "s3cr3t-value-of-a-variable"
CODE = "print('written down as a hash only')"


class Collector:
    """Takes spans as an OpenTelemetry collector does."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        collected = self.spans

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                told = ExportTraceServiceRequest()
                told.ParseFromString(body)
                for resource in told.resource_spans:
                    for scope in resource.scope_spans:
                        collected.extend(scope.spans)
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Take no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    """Where spans go."""
    made = Collector()
    yield made
    made.close()


@pytest.fixture(scope="module")
def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture(scope="module")
async def watched(collector: Collector, free_port: int) -> AsyncIterator[Server]:
    """A server that tells everything there is to tell."""
    env = {
        "PYEXEC_METRICS_TOKEN": TOKEN,
        "PYEXEC_TRACES": "on",
        "PYEXEC_LOG_FORMAT": "json",
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_EXPORTER_OTLP_HEADERS": f"api-key={COLLECTOR_KEY}",
        "OTEL_BSP_SCHEDULE_DELAY": "100",
    }
    with temporary_home() as home:
        options = ["--toolsets", "core,jobs", "--metrics", f"127.0.0.1:{free_port}"]
        async with serve(home, options=options, env=env) as server:
            given = {"directory": str(server.directory), "script_content": CODE, "use_uv": False}
            body = request(
                "tools/call", {"name": "run_script_in_dir", "arguments": {**given, "env_vars": {"MY": SECRET}}}
            )
            async with server.http() as http:
                answer = await http.post(
                    "/mcp",
                    json=body,
                    headers=headers("tools/call", "run_script_in_dir", Authorization=f"Bearer {SECRET}"),
                )
                assert answer.status_code == 200
                (server.directory / "request-id").write_text(answer.headers["x-request-id"])
                await http.get(f"/{SECRET}?token={SECRET}")
            audit = server.home / "audit.jsonl"
            await eventually(lambda: len(lines(audit.read_text())) == 2, what="its end in the audit log")
            yield server


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


async def test_each_line_of_the_log_names_its_request(watched: Server) -> None:
    request_id = (watched.directory / "request-id").read_text()
    for text in ((watched.home / "logs" / "pyexec.log").read_text(), watched.said()):
        found = [one for one in lines(text) if one.get("request_id") == request_id]
        assert any("POST /mcp answered with 200" in one["message"] for one in found)
        assert SECRET not in text
        assert any("GET other answered with 404" in one["message"] for one in lines(text))


async def test_the_audit_log_says_who_ran_what_by_its_hash_and_how_it_ended(watched: Server) -> None:
    path = watched.home / "audit.jsonl"
    assert path.stat().st_mode & 0o777 == 0o600
    submitted, ended = lines(path.read_text())[:2]
    expected = {
        "event": "submitted",
        "issuer": "anyone",
        "where": "host",
        "code_sha256": hashlib.sha256(CODE.encode()).hexdigest(),
    }
    assert expected.items() <= submitted.items()
    assert {"event": "ended", "state": "completed", "exit_code": 0, "stdout_bytes": 28}.items() <= ended.items()
    assert submitted["execution_id"] == ended["execution_id"]
    assert ended["cpu_seconds"] > 0
    assert SECRET not in path.read_text()
    assert "written down" not in path.read_text()


async def test_an_end_that_nobody_waits_for_is_written_down_too(watched: Server) -> None:
    path = watched.home / "audit.jsonl"
    async with watched.client() as client:
        given = {"directory": str(watched.directory), "script_content": "1/0", "use_uv": False, "async_mode": True}
        answer = await client.call_tool("run_script_in_dir", given)
    job_id = (answer.structured_content or {})["job_id"]

    def noticed() -> dict[str, Any] | None:
        found = [one for one in lines(path.read_text()) if one["event"] == "ended" and one["execution_id"] == job_id]
        return found[0] if found else None

    ended = await eventually(noticed)
    assert ended is not None
    assert (ended["state"], ended["exit_code"]) == ("failed", 1)


async def test_nothing_that_the_server_starts_has_its_own_secrets(watched: Server) -> None:
    given = {"directory": str(watched.directory), "use_uv": False, "async_mode": True}
    waits = "import os, time\nprint(sorted(os.environ), flush=True)\nwhile not os.path.exists('go'): time.sleep(0.02)"
    async with watched.client() as client:
        answer = await client.call_tool("run_script_in_dir", {**given, "script_content": waits})
        job_id = (answer.structured_content or {})["job_id"]

        async def printed() -> str:
            found = await client.call_tool("py_job_status", {"job_id": job_id, "incremental": False})
            return json.dumps(found.structured_content) if "PATH" in str(found.structured_content) else ""

        assert TOKEN not in str(await eventually(printed))
    server = {watched.process.pid, forks.stood_for(watched.process.pid)}
    others = [one for one in processes_of(watched.home) if one.pid not in server]
    assert len(others) >= 2
    for process in others:
        environ = Path(f"/proc/{process.pid}/environ").read_bytes()
        assert TOKEN.encode() not in environ, process
        assert COLLECTOR_KEY.encode() not in environ, process
    (watched.directory / "go").touch()


async def test_metrics_are_told_to_who_knows_the_token(watched: Server) -> None:
    async with watched.http() as http:
        for told in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}):
            refused = await http.get("/metrics", headers=told)
            assert (refused.status_code, refused.headers["www-authenticate"][:6]) == (401, "Bearer")
        text = (await http.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})).text
    assert 'pyexec_executions_ended_total{state="completed"} ' in text
    assert 'pyexec_http_requests_total{method="POST",route="/mcp",status="2xx"}' in text
    assert 'route="other"' in text
    assert SECRET not in text


async def test_metrics_and_their_listener_are_there_only_where_asked_for(server: Server) -> None:
    async with server.http() as http:
        assert (await http.get("/metrics")).status_code == 404


async def test_a_trace_leads_from_the_tool_over_the_queue_and_the_run_to_the_result(
    watched: Server, collector: Collector
) -> None:
    names = {"tools/call run_script_in_dir", "pyexec.queue", "pyexec.run", "pyexec.result"}
    await eventually(lambda: names <= {span.name for span in collector.spans}, what="all spans")
    tool = next(span for span in collector.spans if span.name.startswith("tools/call"))
    steps = [span for span in collector.spans if span.trace_id == tool.trace_id and span.name in names]
    queue, run = (next(span for span in steps if span.name == name) for name in ("pyexec.queue", "pyexec.run"))
    assert queue.end_time_unix_nano == run.start_time_unix_nano
    assert tool.start_time_unix_nano <= queue.start_time_unix_nano
    assert SECRET not in str(collector.spans)
    assert CODE not in str(collector.spans)


async def test_metrics_have_a_listener_of_their_own(watched: Server, free_port: int) -> None:
    async with httpx2.AsyncClient() as http:
        answer = await http.get(f"http://127.0.0.1:{free_port}/metrics")
    assert "pyexec_http_open_requests" in answer.text
    async with watched.http() as http:
        assert (await http.get("/metrics")).status_code == 401
