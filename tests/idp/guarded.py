"""A small MCP server that lets in whoever has a token of the identity provider, of which it knows the issuer only."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import uvicorn
from fastmcp import FastMCP
from fastmcp.server.auth import RemoteAuthProvider
from fastmcp.server.auth.providers.jwt import JWTVerifier
from fastmcp.server.dependencies import get_access_token
from fastmcp.utilities.http import find_available_port

from tests.helpers.processes import eventually
from tests.idp.served import Operator
from tests.idp.site import SCOPE


def guarded_server(issuer: str, url: str) -> FastMCP:
    """Return the server that is reached at a URL."""
    verifier = JWTVerifier(jwks_uri=f"{issuer}/.well-known/jwks.json", issuer=issuer, algorithm="ES256", audience=url)
    server = FastMCP(
        "Guarded",
        auth=RemoteAuthProvider(
            token_verifier=verifier,
            authorization_servers=[issuer],  # pyright: ignore[reportArgumentType]
            base_url=url.removesuffix("/mcp"),
            scopes_supported=[SCOPE],
        ),
    )

    @server.tool
    def whoami() -> dict[str, Any]:
        token = get_access_token()
        assert token is not None
        return {"client": token.client_id, "scopes": token.scopes, "subject": token.claims["sub"]}

    return server


@contextmanager
def guarded(idp: Operator) -> Generator[str]:
    """Serve it, and put it in the register; give its URL."""
    port = find_available_port()
    url = f"http://127.0.0.1:{port}/mcp"
    idp.ok("resources", "add", url, "--name", "Guarded", "--scope", f"{SCOPE}=Run Python code")
    app = guarded_server(idp.issuer, url).http_app()
    web = uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning", lifespan="on"))
    serving = threading.Thread(target=web.run)
    serving.start()
    try:
        eventually(lambda: web.started)
        yield url
    finally:
        web.should_exit = True
        serving.join()
