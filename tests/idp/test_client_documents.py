"""Clients whose id is the URL of their document: what is believed, and where we go to fetch it."""

import datetime
import ipaddress
import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from pyexec_idp.grants.documents import Documents, is_client_url
from pyexec_idp.grants.fetching import Document, Fetcher, UnfetchableError, is_public
from tests.idp.site import CALLBACK, ISSUER, Pkce, Site, came_back

URL = "https://app.example/oauth/client.json"


def described(**changes: Any) -> dict[str, Any]:
    return {
        "client_id": URL,
        "client_name": "The documented",
        "redirect_uris": [CALLBACK],
        "grant_types": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_method": "none",
        **changes,
    }


class Web:
    """Answers with one document, and counts how often."""

    def __init__(self) -> None:
        self.said: dict[str, Any] = described()
        self.asked = 0
        self.max_age: float | None = None

    def fetch(self, url: str) -> Document:
        assert url == URL
        self.asked += 1
        return Document(body=json.dumps(self.said).encode(), max_age=self.max_age)


@pytest.fixture
def web() -> Web:
    return Web()


@pytest.fixture
def documented(site: Site, web: Web) -> Site:
    site.parts.context.clients._find_document = Documents(web.fetch, now=site.clock).find
    return site


def test_a_client_is_taken_by_its_document_and_its_url_is_shown(documented: Site) -> None:
    browser = documented.browser()
    documented.authorize(browser, URL, Pkce())
    text = browser.follow(browser.sign_in()).text
    assert "The documented" in text
    assert URL in text
    document = documented.http.get(f"{ISSUER}/.well-known/oauth-authorization-server").json()
    assert document["client_id_metadata_document_supported"] is True
    tokens = documented.tokens(URL)
    assert documented.refresh(URL, tokens["refresh_token"]).status_code == 200
    assert documented.authorize(browser, URL, Pkce()).status_code == 200  # Asked again: nobody has checked it.


def test_a_document_is_kept_as_long_as_it_says_within_bounds(documented: Site, web: Web) -> None:
    browser = documented.browser()
    for max_age, seconds in ((None, 300), (0, 60), (600, 600), (10**9, 86400)):
        web.max_age, web.asked = max_age, 0
        documented.authorize(browser, URL, Pkce())
        documented.clock.advance(seconds - 1)
        documented.authorize(browser, URL, Pkce())
        assert web.asked == 1
        documented.clock.advance(1)


@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": "https://app.example/other.json"},
        {"client_id": None},
        {"client_secret": "x"},
        {"token_endpoint_auth_method": "client_secret_basic"},
        {"redirect_uris": ["http://evil.example/cb"]},
        {"redirect_uris": []},
        {"grant_types": ["client_credentials"]},
    ],
    ids=str,
)
def test_a_document_that_is_not_right_describes_nobody(documented: Site, web: Web, changes: dict[str, Any]) -> None:
    web.said = described(**changes)
    answer = documented.authorize(documented.browser(), URL, Pkce())
    assert (answer.status_code, "location" in answer.headers) == (400, False)


def test_a_redirect_that_the_document_does_not_have_is_refused(documented: Site) -> None:
    answer = documented.authorize(documented.browser(), URL, Pkce(), redirect_uri="https://evil.example/cb")
    assert answer.status_code == 400
    assert came_back(documented.authorize(documented.browser(), URL, Pkce(), prompt="none"))


@pytest.mark.parametrize(
    ("url", "fits"),
    [
        (URL, True),
        ("https://app.example:8443/c", True),
        ("http://app.example/c", False),
        ("https://app.example", False),
        ("https://app.example/", False),
        ("https://user@app.example/c", False),
        ("https://app.example/c#x", False),
        ("https://app.example/../c", False),
        ("https://app.example/./c", False),
        ("https://APP.example/c", False),
        ("https://app.example:443/c", False),
        ("https://app.example/" + "c" * 500, False),
    ],
)
def test_a_document_has_one_url_only(url: str, fits: bool) -> None:
    assert is_client_url(url) is fits


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.0.0.1", "192.168.1.1", "172.16.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"),
        *("224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fc00::1", "ff02::1", "::ffff:127.0.0.1"),
        *("64:ff9b::7f00:1", "64:ff9b::a00:1", "2002:7f00:1::", "2001:0:7f00:1::"),
    ],
)
def test_addresses_inside_are_not_gone_to(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


def test_addresses_outside_are() -> None:
    assert is_public(ipaddress.ip_address("93.184.215.14"))
    assert is_public(ipaddress.ip_address("2606:2800:21f:cb07:6820:80da:af6b:8b2c"))


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status, kind, body, more = ANSWERS[self.path]
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in more.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any, **_more: Any) -> None:
        """Say nothing."""


ANSWERS: dict[str, tuple[int, str, bytes, dict[str, str]]] = {
    "/good": (200, "application/json", b"{}", {"Cache-Control": "public, max-age=90"}),
    "/html": (200, "text/html", b"{}", {}),
    "/gone": (404, "application/json", b"{}", {}),
    "/moved": (302, "application/json", b"", {"Location": "/good"}),
    "/large": (200, "application/json", b" " * 20_000, {}),
}


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, ssl.SSLContext]]:
    folder: Path = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "both.pem").write_bytes(pem + secret)
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(folder / "both.pem")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.socket = own.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server.server_address[1], ssl.create_default_context(cadata=pem.decode())
    server.shutdown()
    thread.join()
    server.server_close()


def _v4_loopback(address: object) -> bool:
    return str(address) in {"127.0.0.1", "::1"}


def test_a_document_is_fetched_from_the_address_that_was_looked_at(
    tls: tuple[int, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    port, context = tls
    looked: list[str] = []

    def resolve(host: str, asked_port: int, *_more: Any, **_others: Any) -> list[Any]:
        looked.append(host)
        return [(2, 1, 6, "", ("127.0.0.1", asked_port))]

    monkeypatch.setattr("pyexec_idp.grants.fetching.socket.getaddrinfo", resolve)
    fetcher = Fetcher(_v4_loopback, context)
    assert fetcher.fetch(f"https://localhost:{port}/good") == Document(body=b"{}", max_age=90.0)
    assert looked == ["localhost", "127.0.0.1"]  # The second is the address itself: nothing to look up.
    for path in ("html", "gone", "moved", "large"):
        with pytest.raises(UnfetchableError):
            fetcher.fetch(f"https://localhost:{port}/{path}")
    with pytest.raises(UnfetchableError):  # The certificate is another's.
        fetcher.fetch(f"https://other.example:{port}/good")
    with pytest.raises(UnfetchableError, match="not public"):
        Fetcher(context=context).fetch(f"https://localhost:{port}/good")
