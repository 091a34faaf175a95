"""Traces: what was called, and nothing of what was in it."""

import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx2
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.testclient import TestClient

from pyexec_idp.app.tracing import Traces
from tests.idp.served import operator
from tests.idp.site import ISSUER, Site

TRACE = "0af7651916cd43dd8448eb211c80319c"


def test_a_span_says_what_was_called_and_how_it_went_and_no_more(site: Site) -> None:
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    with TestClient(Traces(site.app, provider=provider, paths=["/token", "/authorize"]), base_url=ISSUER) as http:
        headers = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01", "baggage": "user=sesame"}
        http.post("/token", data={"code": "sesame", "client_secret": "sesame"}, headers=headers)
        http.get("/authorize?state=sesame&client_id=sesame")
        http.get("/sesame")
        http.request("SESAME", "/token")
        spans = kept.get_finished_spans()
    assert [(one.name, dict(one.attributes or {})) for one in spans] == [
        ("POST /token", {"http.request.method": "POST", "http.route": "/token", "http.response.status_code": 400}),
        (
            "GET /authorize",
            {"http.request.method": "GET", "http.route": "/authorize", "http.response.status_code": 400},
        ),
        ("GET", {"http.request.method": "GET", "http.response.status_code": 404}),
        ("_OTHER /token", {"http.request.method": "_OTHER", "http.route": "/token", "http.response.status_code": 405}),
    ]
    assert TRACE in spans[0].to_json()
    assert "sesame" not in "".join(one.to_json() for one in spans)


@pytest.mark.exhaustive
def test_a_server_sends_its_spans_to_a_collector_and_the_last_ones_at_its_end(tmp_path: Path) -> None:
    arrived: list[tuple[str, bytes]] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            arrived.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Say nothing on stderr."""

    with HTTPServer(("127.0.0.1", 0), Collector) as collector:
        serving = threading.Thread(target=collector.serve_forever, kwargs={"poll_interval": 0.05})
        serving.start()
        try:
            endpoint = f"http://127.0.0.1:{collector.server_port}"
            made = operator(tmp_path, PYEXEC_IDP_TRACING="yes", OTEL_EXPORTER_OTLP_ENDPOINT=endpoint)
            with made.serving():
                httpx2.post(f"{made.issuer}/token", data={"code": "sesame"})
        finally:
            collector.shutdown()
            serving.join()
    assert {path for path, _body in arrived} == {"/v1/traces"}
    sent = b"".join(body for _path, body in arrived)
    assert b"POST /token" in sent
    assert b"pyexec-idp" in sent
    assert b"sesame" not in sent


def test_tracing_without_what_it_needs_is_refused_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyexec_idp.app.tracing", None)
    done = operator(tmp_path, PYEXEC_IDP_TRACING="yes").run("serve")
    assert (done.returncode, done.stderr) == (1, "PYEXEC_IDP_TRACING needs OpenTelemetry, which is not installed.")
