"""The identity provider, as an operator runs it, and a server that trusts it."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import pytest
from fastmcp.utilities.http import find_available_port

from pyexec.auth.scopes import OFFERED
from tests.helpers.homes import temporary_home
from tests.idp.served import Operator, operator
from tests.idp.site import PASSWORD
from tests.oauth.site import Site, serving


@pytest.fixture(scope="package")
def idp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """The identity provider in a process of its own, with one user."""
    made = operator(tmp_path_factory.mktemp("idp"))
    made.ok("users", "add", "ada", "--password-stdin", stdin=f"{PASSWORD}\n")
    with made.serving():
        yield made


@dataclass(frozen=True)
class Guarded:
    """A server and the one whose tokens it takes."""

    site: Site
    idp: Operator


@pytest.fixture(scope="module")
async def guarded(idp: Operator) -> AsyncIterator[Guarded]:
    """A server that takes the tokens of the identity provider, and asks it about them."""
    port = find_available_port()
    url = f"http://127.0.0.1:{port}/mcp"
    scopes = [word for scope in OFFERED for word in ("--scope", f"{scope}=Something")]
    idp.ok("resources", "add", url, "--name", "Guarded", *scopes)
    said = idp.ok("clients", "add", "The server", "--introspects", url).split()
    with temporary_home() as home:
        secret = home.parent / "secret"
        secret.write_text(f"{said[-1]}\n")
        async with serving(
            home,
            PORT=str(port),
            PYEXEC_AUTH_ISSUERS=idp.issuer,
            PYEXEC_AUTH_INTROSPECTION_CLIENT=said[1],
            PYEXEC_AUTH_INTROSPECTION_SECRET_FILE=str(secret),
            PYEXEC_AUTH_REVOCATION_SECONDS="0.2",
            PYEXEC_AUTH_SKEW_SECONDS="0",
        ) as site:
            yield Guarded(site, idp)
