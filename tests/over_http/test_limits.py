"""How much one user may ask for, and what a server refuses to begin with."""

import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from starlette.requests import HTTPConnection
from starlette.types import Message, Receive, Scope, Send

from pyexec.domain.service import ServiceSettings
from pyexec.http.limits import Buckets, RateLimit
from pyexec.http.serving import config_for
from tests.helpers.commands import Command
from tests.helpers.homes import temporary_home
from tests.helpers.over_http import headers, request, serve


async def test_too_many_requests_are_told_when_to_come_back() -> None:
    with temporary_home() as home:
        async with (
            serve(home, options=["--toolsets", "jobs"], env={"PYEXEC_HTTP_RATE": "6"}) as server,
            server.http() as http,
        ):
            first = await http.post("/mcp", json=request("tools/list"), headers=headers("tools/list"))
            second = await http.post("/mcp", json=request("tools/list"), headers=headers("tools/list"))
            plain = await http.get("/executions/none/events")
            assert [first.status_code, second.status_code, plain.status_code] == [200, 429, 429]
            assert 0 < int(second.headers["retry-after"]) <= 10
            assert second.json()["error"]["data"]["error_code"] == "too_many_requests"
            assert (await http.get("/healthz")).status_code == 200


async def test_who_says_nothing_of_themselves_is_counted_by_where_they_come_from() -> None:
    """As a proxy that is named says; what others say of where they come from is of no account."""
    with temporary_home() as home:
        options = ["--toolsets", "jobs", "--trusted-proxy", "127.0.0.2"]
        env = {"PYEXEC_HTTP_RATE": "1", "PYEXEC_AUTH_DEVELOPMENT": "yes"}
        async with serve(home, options=options, env=env) as server:

            async def statuses(address: str, *forwarded: str) -> list[int]:
                transport = httpx2.AsyncHTTPTransport(local_address=address)
                async with httpx2.AsyncClient(base_url=server.base, timeout=60, transport=transport) as http:
                    return [
                        (await http.get("/executions/none/events", headers={"X-Forwarded-For": one})).status_code
                        for one in forwarded
                    ]

            assert await statuses("127.0.0.2", "192.0.2.1", "192.0.2.2", "192.0.2.1") == [401, 401, 429]
            assert await statuses("127.0.0.2", "10.0.0.1, 192.0.2.3", "10.0.0.2, 192.0.2.3") == [401, 429]
            assert await statuses("127.0.0.2", "2001:db8::1", "2001:db8::2", "2001:db8:0:1::1") == [401, 429, 401]
            assert await statuses("127.0.0.2", "<script>", "%00") == [401, 429]
            assert await statuses("127.0.0.3", "192.0.2.4", "192.0.2.5") == [401, 429]
            assert await statuses("127.0.0.1", "192.0.2.6", "192.0.2.7") == [401, 429]


async def test_one_users_limit_is_not_anothers() -> None:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    def user(connection: HTTPConnection) -> str:
        return connection.headers["x-user"]

    now = [0.0]
    limited = RateLimit(app, user, Buckets(60, lambda: now[0]))

    async def status(user: str) -> int:
        sent: list[Message] = []

        async def send(message: Message) -> None:
            sent.append(message)

        async def receive() -> Message:
            return {"type": "http.request", "body": b""}

        scope = {"type": "http", "path": "/mcp", "method": "POST", "headers": [(b"x-user", user.encode())]}
        await limited(scope, receive, send)
        return int(sent[0]["status"])

    assert [await status("noisy") for _ in range(11)] == [200] * 10 + [429]
    assert await status("quiet") == 200
    now[0] = 1.0
    assert [await status("noisy") for _ in range(2)] == [200, 429]


@pytest.fixture(scope="module")
def run() -> Iterator[Command]:
    """The command line."""
    with temporary_home() as home:
        work = home.parent / "work"
        work.mkdir()
        yield Command(home, work)


@pytest.mark.parametrize(
    ("options", "env", "words"),
    [
        (["--http", "0.0.0.0:0"], {}, ["loopback", "0.0.0.0", "--allow-anyone-from-anywhere"]),
        (["--http", "example.com:1"], {}, ["loopback", "--allow-anyone-from-anywhere"]),
        (["--http", "nonsense"], {}, ["--http", "HOST:PORT"]),
        (["--http", "127.0.0.1:99999"], {}, ["--http", "HOST:PORT"]),
        (["--http", "127.0.0.1:0", "--tls-key", "key.pem"], {}, ["--tls-certificate", "belong together"]),
        (["--http", "127.0.0.1:0", "--trusted-proxy", "proxy"], {}, ["--trusted-proxy", "IP addresses"]),
        (["--http", "127.0.0.1:0", "--allowed-origin", "example.com"], {}, ["--allowed-origin", "https://"]),
        (["--http", "127.0.0.1:0"], {"PYEXEC_WALL": "host"}, ["PYEXEC_WALL", "--toolsets core"]),
        (["--http", "127.0.0.1:0"], {"PYEXEC_ON_DISCONNECT": "maybe"}, ["PYEXEC_ON_DISCONNECT", "detach"]),
        (["--http", "127.0.0.1:0"], {"PYEXEC_METRICS_TOKEN": "short"}, ["PYEXEC_METRICS_TOKEN", "16"]),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    run: Command, options: list[str], env: dict[str, str], words: list[str]
) -> None:
    refused = run("serve", *options, env=env)
    assert refused.status == 1
    for word in words:
        assert word in refused.stderr


def test_options_of_a_server_over_http_need_one(run: Command) -> None:
    refused = run("serve", "--allow-anyone-from-anywhere")
    assert refused.status == 2
    assert "needs --http" in refused.stderr


def test_an_address_that_is_taken_is_refused_by_name(run: Command) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = run("serve", "--http", f"127.0.0.1:{port}")
    assert refused.status == 1
    assert f"127.0.0.1:{port}" in refused.stderr


async def test_tls_named_hosts_pages_and_proxies(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    subprocess.run([*made, *subject, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    options = ["--toolsets", "jobs", "--tls-certificate", str(certificate), "--tls-key", str(key)]
    named = ["--allowed-host", "pyexec.example.com,*.example.org", "--allowed-origin", "https://page.example.com"]
    with temporary_home() as home:
        async with serve(home, options=[*options, *named, "--allow-anyone-from-anywhere"]) as server:
            assert server.url.startswith("https://127.0.0.1:")
            server.url = server.url.replace("127.0.0.1", "localhost")
            trusting = ssl.create_default_context(cafile=str(certificate))
            async with server.http(verify=trusting) as http:
                assert (await http.get("/healthz")).status_code == 200
                for host, status in (("pyexec.example.com", 200), ("a.example.org", 200), ("example.org", 403)):
                    assert (await http.get("/healthz", headers={"Host": host})).status_code == status
                page = {"Origin": "https://page.example.com"}
                asked = {
                    **page,
                    "Access-Control-Request-Method": "POST",
                    "Access-Control-Request-Headers": "mcp-method",
                }
                preflight = await http.request("OPTIONS", "/mcp", headers=asked)
                assert preflight.headers["access-control-allow-origin"] == page["Origin"]
                answer = await http.post("/mcp", json=request("tools/list"), headers={**headers("tools/list"), **page})
                assert answer.status_code == 200
                assert "mcp-session-id" in answer.headers["access-control-expose-headers"].lower()
                other = await http.request("OPTIONS", "/mcp", headers={**asked, "Origin": "https://other.example.com"})
                assert other.status_code == 403


def test_a_service_says_so_in_its_help(run: Command) -> None:
    said = run("serve", "--help").stdout
    for word in ("--http", "127.0.0.1:8765", "--allow-anyone-from-anywhere", "sandboxes", "SIGTERM"):
        assert word in said


def test_the_forwarded_scheme_counts_from_named_proxies_only() -> None:
    async def app(_scope: Scope, _receive: Receive, _send: Send) -> None: ...

    assert not config_for(app, ServiceSettings()).proxy_headers
    trusting = config_for(app, ServiceSettings(proxies=("10.0.0.1", "10.1.0.0/16")))
    assert (trusting.proxy_headers, trusting.forwarded_allow_ips) == (True, ["10.0.0.1", "10.1.0.0/16"])
