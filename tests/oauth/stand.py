"""Small HTTP servers that stand for issuers."""

import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

Answer = tuple[int, dict[str, str], bytes]


@dataclass
class Stand:
    """What is answered by path, and what was asked."""

    port: int
    answers: dict[str, Any] = field(default_factory=dict[str, Any])
    asked: list[str] = field(default_factory=list[str])
    forms: list[dict[str, list[str]]] = field(default_factory=list[dict[str, list[str]]])
    authorizations: list[str | None] = field(default_factory=list[str | None])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def standing() -> Generator[Stand]:
    """Serve what `answers` says: an object, or what makes status, headers and body."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            stand.asked.append(self.path)
            stand.authorizations.append(self.headers.get("authorization"))
            found: dict[str, Any] | Callable[[], Answer] | None = stand.answers.get(self.path)
            if callable(found):
                status, headers, body = found()
            else:
                status, headers, body = (404 if found is None else 200), {}, json.dumps(found).encode()
            self.send_response(status)
            for name, value in {"content-length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            stand.forms.append(parse_qs(self.rfile.read(length).decode()))
            self.do_GET()

        def log_message(self, *_args: Any, **_named: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    stand = Stand(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield stand
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
