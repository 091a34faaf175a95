"""An identity provider in this process with a clock of its own, and a browser and a client to go to it."""

import base64
import functools
import hashlib
import json
import re
import secrets
import tempfile
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from starlette.testclient import TestClient

from pyexec_idp.app.parts import Parts
from pyexec_idp.app.web import build
from pyexec_idp.domain.secrets import hash_of, new_id
from pyexec_idp.domain.values import Client, Origin, Resource
from pyexec_idp.settings import read_settings
from pyexec_idp.stores.database import Database

ISSUER = "https://id.example.com"
MCP = "https://mcp.example.com/mcp"
OTHER = "https://other.example.com/mcp"
SCOPE = "python:execute"
CALLBACK = "http://127.0.0.1:4711/callback"
PASSWORD = "correct horse battery staple"

CHEAP = {"PYEXEC_IDP_HASH_MEMORY_KIB": "8", "PYEXEC_IDP_HASH_PASSES": "1"}


@dataclass
class Clock:
    """A clock that stands until it is moved."""

    at: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.at

    def advance(self, seconds: float) -> None:
        self.at += seconds


class Forms(HTMLParser):
    """The forms of a page: where they go, and their fields."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.forms: list[tuple[str, dict[str, str]]] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "a":
            self.links.append(found["href"])
        if tag == "form":
            self.forms.append((found["action"], {}))
        if tag == "input":
            self.forms[-1][1][found["name"]] = found.get("value", "")

    def handle_data(self, data: str) -> None:
        self.text += data


@dataclass
class Browser:
    """A browser: keeps cookies, follows no redirect by itself, has no script."""

    site: "Site"
    cookies: dict[str, str] = field(default_factory=dict[str, str])
    page: Forms | None = None

    def send(self, method: str, url: str, **more: Any) -> httpx2.Response:
        headers = {**more.pop("headers", {})}
        if self.cookies:
            headers["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        answer = self.site.http.request(method, url, headers=headers, **more)
        self.site.http.cookies.clear()
        for line in answer.headers.get_list("set-cookie"):
            name, _, rest = line.partition("=")
            value = rest.partition(";")[0].strip('"')
            if value and "Max-Age=0" not in line:
                self.cookies[name] = value
            else:
                self.cookies.pop(name, None)
        self.page = Forms(answer.text) if "html" in answer.headers.get("content-type", "") else None
        return answer

    def get(self, url: str, **more: Any) -> httpx2.Response:
        return self.send("GET", url, **more)

    def submit(self, number: int = 0, headers: dict[str, str] | None = None, **fields: str) -> httpx2.Response:
        assert self.page is not None
        action, hidden = self.page.forms[number]
        return self.send("POST", action, data={**hidden, **fields}, headers=headers or {"origin": self.site.origin})

    def sign_in(self, user: str = "ada", password: str = PASSWORD) -> httpx2.Response:
        return self.submit(user=user, password=password)

    def follow(self, answer: httpx2.Response) -> httpx2.Response:
        assert answer.status_code == 303, answer.text
        return self.get(answer.headers["location"])


@dataclass(frozen=True)
class Pkce:
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))

    @property
    def challenge(self) -> str:
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


@functools.cache
def _new_database() -> bytes:
    """A database with its tables: they are made once."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "idp.db")
        database = Database(f"sqlite:///{path}")
        with database.writing():
            pass
        database.close()
        return path.read_bytes()


def _copy_database(home: Path) -> None:
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    Path(home, "idp.db").write_bytes(_new_database())


class Site:
    """The identity provider with one user, two resources and one client of the operator's."""

    def __init__(self, home: Path, **environ: str) -> None:
        self.clock = Clock()
        self.issuer = environ.get("PYEXEC_IDP_ISSUER", ISSUER)
        parts = urlsplit(self.issuer)
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.home = home
        self.settings = read_settings(
            {"PYEXEC_IDP_ISSUER": self.issuer, "PYEXEC_IDP_HOME": str(home), **CHEAP, **environ}
        )
        self.parts = Parts(settings=self.settings, now=self.clock)
        if "PYEXEC_IDP_DATABASE_URL" not in environ:
            _copy_database(home)
        self.app = build(self.parts)
        self.http = TestClient(self.app, base_url=self.issuer, follow_redirects=False)
        self.http.__enter__()  # One event loop for all requests rather than one each.
        self.parts.resources.put(
            Resource(url=MCP, name="The Python server", scopes={SCOPE: "Run Python code"}, is_default=True)
        )
        self.parts.resources.put(Resource(url=OTHER, name="Another server", scopes={"other:read": "Read things"}))
        self.parts.people.add("ada", PASSWORD, display_name="Ada", email="ada@example.com")

    def close(self) -> None:
        self.http.__exit__(None, None, None)

    def browser(self) -> Browser:
        return Browser(self)

    def register(self, **metadata: Any) -> httpx2.Response:
        body = {
            "redirect_uris": [CALLBACK],
            "token_endpoint_auth_method": "none",
            "grant_types": ["authorization_code", "refresh_token"],
            "client_name": "A test",
            **metadata,
        }
        return self.http.post(
            f"{self.issuer}/register", content=json.dumps(body), headers={"content-type": "application/json"}
        )

    def client(self, **metadata: Any) -> str:
        answer = self.register(**metadata)
        assert answer.status_code == 201, answer.text
        return answer.json()["client_id"]

    def own_client(self, secret: str | None = "a secret", **values: Any) -> str:
        """A client that the operator entered."""
        client = Client(
            id=new_id(),
            name="The operator's own",
            origin=Origin.OPERATOR,
            auth_method="none" if secret is None else "client_secret_basic",
            secret_hash=None if secret is None else hash_of(secret),
            redirect_uris=values.pop("redirect_uris", (CALLBACK,)),
            created_at=self.clock(),
            **values,
        )
        self.parts.clients.add(client)
        return client.id

    def authorize_query(self, client_id: str, pkce: Pkce, **changes: Any) -> dict[str, Any]:
        query = {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": CALLBACK,
            "scope": SCOPE,
            "state": "xyz",
            "resource": MCP,
            "code_challenge": pkce.challenge,
            "code_challenge_method": "S256",
            **changes,
        }
        return {name: value for name, value in query.items() if value is not None}

    def authorize(self, browser: Browser, client_id: str, pkce: Pkce, **changes: Any) -> httpx2.Response:
        return browser.get(f"{self.issuer}/authorize", params=self.authorize_query(client_id, pkce, **changes))

    def code(self, client_id: str, pkce: Pkce, browser: Browser | None = None, **changes: Any) -> str:
        """Sign in, allow, and return the code."""
        browser = browser or self.browser()
        answer = self.authorize(browser, client_id, pkce, **changes)
        if browser.page is not None and "password" in browser.page.forms[0][1]:
            answer = browser.follow(browser.sign_in())
        if browser.page is not None and "asked" in browser.page.forms[0][1]:
            answer = browser.submit(decision="allow")
        return came_back(answer)["code"]

    def post(self, path: str, auth: tuple[str, str] | None = None, **form: Any) -> httpx2.Response:
        headers = {}
        if auth is not None:
            headers["authorization"] = "Basic " + base64.b64encode(":".join(auth).encode()).decode()
        return self.http.post(self.issuer + path, data=form, headers=headers)

    def exchange(self, client_id: str, code: str, pkce: Pkce, /, **changes: Any) -> httpx2.Response:
        form: dict[str, Any] = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": CALLBACK,
            "client_id": client_id,
            "code_verifier": pkce.verifier,
            **changes,
        }
        auth: tuple[str, str] | None = form.pop("auth", None)
        return self.post("/token", auth, **{name: value for name, value in form.items() if value is not None})

    def tokens(self, client_id: str | None = None, **changes: Any) -> dict[str, Any]:
        """The whole way; return the tokens, with the client's id."""
        client_id, pkce = client_id or self.client(), Pkce()
        answer = self.exchange(client_id, self.code(client_id, pkce, **changes), pkce)
        assert answer.status_code == 200, answer.text
        return {**answer.json(), "client_id": client_id}

    def refresh(self, client_id: str, token: str, **more: Any) -> httpx2.Response:
        return self.post("/token", grant_type="refresh_token", refresh_token=token, client_id=client_id, **more)

    def userinfo(self, token: str) -> httpx2.Response:
        return self.http.get(f"{self.issuer}/userinfo", headers={"authorization": f"Bearer {token}"})

    def audited(self) -> list[str]:
        return [row["what"] for row in self.parts.audit.latest(200)]


def came_back(answer: httpx2.Response, callback: str = CALLBACK) -> dict[str, str]:
    """The parameters that came back to the client."""
    assert answer.status_code == 303, answer.text
    location = answer.headers["location"]
    assert location.startswith(f"{callback}?"), location
    return {name: values[0] for name, values in parse_qs(urlsplit(location).query, strict_parsing=True).items()}


def refused(answer: httpx2.Response, status: int, error: str) -> None:
    """Check that a program was refused that way."""
    assert (answer.status_code, answer.json()["error"]) == (status, error), answer.text
    assert "set-cookie" not in answer.headers
    assert answer.headers["cache-control"] == "no-store"


def payload(token: str) -> dict[str, Any]:
    """The claims of a token, unchecked."""
    return json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))


SECRETISH = re.compile(r"[A-Za-z0-9_-]{43}")
