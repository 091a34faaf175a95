"""The door of the server over HTTP: whose request this is, and whether its token covers what it asks for."""

import json
import logging
from collections.abc import Callable, Sequence

from anyio.to_thread import run_sync
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.authentication import AuthCredentials
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pyexec.auth import scopes
from pyexec.auth.refusals import InvalidTokenError, IssuerUnavailableError
from pyexec.auth.verification import Verifier
from pyexec.domain.identities import Identity
from pyexec.mcp.authorization import needs
from pyexec.mcp.authorization.callers import NO_TOKEN, caller_of
from pyexec.mcp.authorization.watching import Answer, Watch

_log = logging.getLogger(__name__)

BODY_LIMIT = 32 * 1024 * 1024
_SMALL_BODY = 256 * 1024
_AGAIN_SECONDS = 5
_BEARER = "bearer "


class Guard:
    """Puts whom a token stands for in the place of the token, and answers 403 to what it does not cover.

    What stands behind it answers 401 to a request without such a caller. While a request is answered its token is
    looked at again from time to time (see `Watch`); when it no longer counts, the answer ends there.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        verifier: Verifier,
        mcp_path: Callable[[], str],
        metadata_url: str | None,
        body_limit: int = BODY_LIMIT,
    ) -> None:
        self.app = app
        self._verifier = verifier
        self._mcp_path = mcp_path
        self._metadata_url = metadata_url
        self._body_limit = body_limit
        self._watch = Watch(verifier)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":  # The life of the server, then: sockets of the web are not spoken.
            async with self._watch.watching():
                await self.app(scope, receive, send)
            return
        token = _take_token(scope)
        if token is None:
            await self.app(scope, receive, send)
            return
        try:
            identity = await self._verifier.verify(token)
        except InvalidTokenError as error:
            _log.info("a token does not count: %s", error.reason)
            await self.app(scope, receive, send)
            return
        except IssuerUnavailableError:
            await _answer(send, 503, "temporarily_unavailable", "The token cannot be checked now.", _RETRY)
            return
        scope["user"] = caller_of(identity)
        scope["auth"] = AuthCredentials(sorted(identity.scopes))
        needed, receive = await self._needed(scope, receive)
        if needed is None:
            await _answer(send, 413, "too_large", f"The request is larger than {self._body_limit} bytes.")
            return
        lacking = [one for one in needed if not scopes.holds(identity.scopes, one)]
        if lacking:
            await self._send_insufficient(send, identity, lacking)
            return
        await self._answer_while_it_counts(token, identity, scope, receive, send)

    async def _needed(self, scope: Scope, receive: Receive) -> tuple[Sequence[str] | None, Receive]:
        """Return the scopes that a request needs, None when it is too large; and from where to read it on."""
        if scope["method"] != "POST" or scope["path"].rstrip("/") != self._mcp_path().rstrip("/"):
            return (), receive
        headers = Headers(scope=scope)
        version = headers.get("mcp-protocol-version")
        if version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS and "mcp-method" in headers:
            # The newest protocol says in headers what is asked for, and refuses a message that says otherwise.
            needed = needs.of_message(headers["mcp-method"], headers.get("mcp-name"))
            return (() if needed is None else (needed,)), receive
        body, complete = await self._read(headers, receive)
        if body is None:
            return None, receive
        found = needs.of_body(body) if len(body) <= _SMALL_BODY else await run_sync(needs.of_body, body)
        return found, _replay(body, receive, complete=complete)

    async def _read(self, headers: Headers, receive: Receive) -> tuple[bytes | None, bool]:
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length[:20]) > self._body_limit:
            return None, False
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return bytes(body), False
            body += message.get("body", b"")
            if len(body) > self._body_limit:
                return None, False
            if not message.get("more_body", False):
                return bytes(body), True

    async def _send_insufficient(self, send: Send, identity: Identity, lacking: Sequence[str]) -> None:
        wanted = " ".join(scopes.to_ask_for(identity.scopes, lacking))
        description = f"It needs the scope {' '.join(lacking)}."
        parts = ['error="insufficient_scope"', f'error_description="{description}"', f'scope="{wanted}"']
        if self._metadata_url is not None:
            parts.append(f'resource_metadata="{self._metadata_url}"')
        challenge = ("www-authenticate", f"Bearer {', '.join(parts)}")
        await _answer(send, 403, "insufficient_scope", description, challenge)

    async def _answer_while_it_counts(
        self, token: str, identity: Identity, scope: Scope, receive: Receive, send: Send
    ) -> None:
        ending = _Ending(send)
        answer = Answer(token=token, identity=identity, is_stream=scope["method"] == "GET")
        with self._watch.over(answer):
            await self.app(scope, receive, ending.send)
            ending.done = True
        if not ending.done:
            await ending.end()


class _Ending:
    """Ends an answer that was begun, so that the connection stays whole."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._begun = False
        self.done = False

    async def send(self, message: Message) -> None:
        self._begun = True
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self.done = True
        await self._send(message)

    async def end(self) -> None:
        if self._begun:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        else:
            challenge = ("www-authenticate", 'Bearer error="invalid_token"')
            await _answer(self._send, 401, "invalid_token", "The token no longer counts.", challenge)


_RETRY = ("retry-after", str(_AGAIN_SECONDS))


def _take_token(scope: Scope) -> str | None:
    """Take the token out of a request, for good; None when there is none, or more than one."""
    headers: list[tuple[bytes, bytes]] = list(scope["headers"])
    given = [value.decode("latin-1") for name, value in headers if name.lower() == b"authorization"]
    if not given:
        return None
    bearer = [value for value in given if value[: len(_BEARER)].lower() == _BEARER]
    # Whether one was given still shows: it decides what a refusal says.
    placeholder = [(b"authorization", f"Bearer {NO_TOKEN}".encode())] if bearer else []
    scope["headers"] = [one for one in headers if one[0].lower() != b"authorization"] + placeholder
    return bearer[0][len(_BEARER) :].strip(" ") if bearer and len(given) == 1 else None


def _replay(body: bytes, receive: Receive, *, complete: bool) -> Receive:
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}] if complete else []

    async def again() -> Message:
        if waiting:
            return waiting.pop()
        return await receive() if complete else {"type": "http.disconnect"}

    return again


async def _answer(send: Send, status: int, error: str, description: str, *more: tuple[str, str]) -> None:
    body = json.dumps({"error": error, "error_description": description}).encode()
    headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("cache-control", "no-store")]
    encoded = [(name.encode(), value.encode()) for name, value in (*headers, *more)]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})
