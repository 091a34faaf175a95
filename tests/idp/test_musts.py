"""Every MUST for an authorization server, by specification, with the tests that show it: a row without is a failure."""

import ast
import functools
from dataclasses import dataclass
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Must:
    """What a specification demands, and where it is shown, as `file: the test's name`."""

    section: str
    demand: str
    shown: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.section}: {self.demand}"


def must(section: str, demand: str, *shown: str) -> Must:
    return Must(section, demand, shown)


STRICT = "real_clients: a strict client finds nothing to object to"
CONFORMANCE = "real_clients: the conformance scenarios of an authorization server pass"

MUSTS: dict[str, tuple[Must, ...]] = {
    "OAuth 2.1 and RFC 6749": (
        must(
            "2.3",
            "clients with a secret may use HTTP Basic",
            "code_flow: a confidential client says who it is in either way",
            STRICT,
        ),
        must(
            "2.3",
            "one way of authentication in a request",
            "rules_of_the_wire: who says in two ways who it is gets nothing",
        ),
        must(
            "3.1",
            "the authorization endpoint takes GET",
            "code_flow: a person signs in allows a client and it gets tokens",
        ),
        must(
            "3.1",
            "unknown parameters are ignored, empty ones omitted",
            "rules_of_the_wire: parameters that nobody knows are ignored and empty ones are none",
        ),
        must(
            "3.1, 3.2",
            "no parameter twice",
            "code_flow: a faulty request goes back as an error",
            "code_flow: a faulty exchange is refused",
        ),
        must(
            "3.1.2",
            "a redirect URI's own query is kept",
            "rules_of_the_wire: a redirect that was registered with a query keeps it",
        ),
        must(
            "3.1.2.4",
            "no redirect where client or redirect URI are wrong",
            "attacks: a request that cannot be trusted ends at a page that repeats nothing of it",
            "attacks: an error is never redirected to an address that is not registered",
        ),
        must("3.2", "the token endpoint takes POST only", "rules_of_the_wire: what clients post to is not to be got"),
        must("3.3", "the scope that was given is said", "refresh: a refresh may ask for less and not for more", STRICT),
        must("4.1.2", "a code expires shortly", "code_flow: a code is good for a minute"),
        must(
            "4.1.2",
            "a code is good once, and its replay ends what it gave",
            "attacks: a replayed code ends everything it gave",
            "attacks: of exchanges at once one wins at most",
            STRICT,
        ),
        must(
            "4.1.2.1",
            "errors come back with the state",
            "code_flow: a faulty request goes back as an error",
            "code_flow: a refusal goes back to the client with the issuer",
        ),
        must(
            "4.1.3",
            "a code is for the client that asked for it",
            "attacks: a stolen code is of no use to another client",
        ),
        must("4.1.3", "a redirect URI that is named again is the same", "code_flow: a faulty exchange is refused"),
        must(
            "4.2",
            "the client authenticates itself for its own token",
            "endpoints: a client gets a token for itself where the operator allows it",
        ),
        must(
            "4.3",
            "a refresh token is bound to its client",
            "refresh: a refresh token is of no use to another client and that does not harm its owner",
        ),
        must(
            "4.3",
            "a refresh gives no scope that was not allowed",
            "refresh: a refresh may ask for less and not for more",
        ),
        must(
            "4.3.1",
            "refresh tokens of public clients are rotated, and reuse ends the family",
            "refresh: a refresh gives new tokens and the old refresh token ends",
            "refresh: reuse after the grace ends the whole family",
            STRICT,
        ),
        must(
            "5.1",
            "tokens come as JSON, with no-store",
            "rules_of_the_wire: every answer in json says so and is kept by nobody",
        ),
        must(
            "5.2",
            "invalid_client is a 401 with a challenge where the header was used",
            "rules_of_the_wire: a client that said who it is in the header is challenged in the header",
        ),
        must("5.2", "the other errors are 400 with their code", "code_flow: a faulty exchange is refused", STRICT),
        must(
            "10.3",
            "tokens, codes and secrets cannot be guessed",
            "rules_of_the_wire: nothing that is authority can be guessed",
        ),
        must(
            "10.10",
            "guessing is slowed down",
            "attacks: guessing is slowed down for a name whether it exists or not",
            "pages: codes of devices cannot be guessed at length",
        ),
        must(
            "2.1 of OAuth 2.1",
            "neither implicit nor password grant",
            "discovery: every grant type that is promised is answered and no other",
        ),
    ),
    "RFC 9700 (security)": (
        must(
            "2.1",
            "redirect URIs are compared letter by letter",
            "attacks: only the port of a loopback redirect may vary",
        ),
        must(
            "2.1.1",
            "PKCE, and no way around it",
            "code_flow: a faulty request goes back as an error",
            "attacks: a code injected into another session fails by its verifier",
            STRICT,
        ),
        must(
            "2.3",
            "tokens are for one audience",
            "rules_of_the_wire: the audience is the url of the register however it was written",
        ),
        must(
            "4.11",
            "no open redirect",
            "attacks: a sign in leads nowhere but to our own pages",
            "pages: signing out leads nowhere that is not registered by the client of the id token",
        ),
        must(
            "4.12",
            "redirects are 303, never 307",
            "rules_of_the_wire: every redirect is one after which a browser posts nothing",
        ),
        must(
            "4.14", "reuse of a refresh token ends its family", "refresh: reuse after the grace ends the whole family"
        ),
        must(
            "4.15",
            "a client cannot be taken for a person",
            "endpoints: a client gets a token for itself where the operator allows it",
        ),
        must("4.16", "pages cannot be framed", "discovery: every answer has the safe headers"),
        must("2.6", "no CORS at the authorization endpoint", "discovery: programs of other origins may not call these"),
    ),
    "RFC 7636 (PKCE)": (
        must("4.3", "a challenge is needed, with S256", "code_flow: a faulty request goes back as an error", STRICT),
        must("4.4.1", "otherwise invalid_request", "code_flow: a faulty request goes back as an error"),
        must(
            "4.6",
            "a wrong verifier is invalid_grant",
            "code_flow: a faulty exchange is refused",
            "code_flow: a wrong verifier does not spoil the code for its owner",
        ),
    ),
    "RFC 8252 (native applications)": (
        must("7.3", "any port of a loopback redirect", "attacks: only the port of a loopback redirect may vary"),
        must(
            "8.4",
            "redirects of applications are registered whole",
            "attacks: redirect uris that lead astray are not registered",
        ),
        must(
            "8.5, 8.6",
            "consent each time for who cannot prove who it is",
            "code_flow: consent is remembered for clients of the operator only",
        ),
    ),
    "RFC 8414 (metadata)": (
        must(
            "2",
            "the issuer is https, with no query and no fragment",
            "command_line: a wrong setting is refused at the start",
        ),
        must(
            "2",
            "it promises what is there",
            "discovery: the two documents are one and name every endpoint there is",
            "discovery: every grant type that is promised is answered and no other",
            CONFORMANCE,
        ),
        must(
            "3",
            "served as JSON at the well-known path",
            "discovery: the two documents are one and name every endpoint there is",
            CONFORMANCE,
        ),
        must(
            "3.1",
            "the path of an issuer follows the well-known part",
            "discovery: an issuer with a path is found in each of the ways",
        ),
        must(
            "3.3",
            "the issuer in it is the issuer",
            "rules_of_the_wire: the issuer is written in one way everywhere",
            STRICT,
        ),
    ),
    "RFC 7591 (registration)": (
        must("2", "redirect URIs are registered", "endpoints: metadata that cannot be accepted are refused"),
        must(
            "3.2.1",
            "the answer has everything that was registered",
            "endpoints: registration answers with what was registered",
        ),
        must("3.2.1", "a secret comes with its end", "endpoints: a confidential client gets a secret once"),
        must(
            "3.2.2",
            "refusals are 400 with their code",
            "endpoints: metadata that cannot be accepted are refused",
            "attacks: redirect uris that lead astray are not registered",
        ),
        must(
            "5",
            "registration without anybody's leave is limited",
            "attacks: registering is slowed down by address",
            "endpoints: a client that never got a token is forgotten after a week",
        ),
        must("5", "what a client says of itself is shown as that", "attacks: consent to one client is none to another"),
    ),
    "RFC 7009 (revocation)": (
        must(
            "2", "refresh tokens can be revoked", "endpoints: a revoked refresh token takes its family with it", STRICT
        ),
        must(
            "2.1",
            "a client revokes its own only",
            "endpoints: revoking what is not there is fine and what another has is not",
        ),
        must(
            "2.2",
            "an unknown token is a 200",
            "endpoints: revoking what is not there is fine and what another has is not",
        ),
    ),
    "RFC 7662 (introspection)": (
        must("2.1", "who asks has to say who it is", "endpoints: nobody asks about tokens without a secret"),
        must(
            "2.2",
            "a token that does not hold is inactive, and nothing else is said",
            "endpoints: a server asks about tokens that are for it and no others",
        ),
        must(
            "4",
            "nobody learns of tokens that are not for it",
            "endpoints: a server asks about tokens that are for it and no others",
        ),
    ),
    "RFC 6750 (bearer tokens)": (
        must(
            "2.1",
            "a token in the header is taken, in the query it is not",
            "rules_of_the_wire: userinfo is given for a get and a post",
        ),
        must("3", "a 401 has a challenge", "endpoints: userinfo challenges who comes without a token"),
        must(
            "3.1",
            "invalid_token 401, insufficient_scope 403",
            "endpoints: userinfo says no more than the scopes allow",
            "endpoints: userinfo challenges who comes without a token",
        ),
    ),
    "RFC 8628 (devices)": (
        must(
            "3.2",
            "codes, where to go, and for how long",
            "pages: a device gets tokens once somebody has typed its code",
        ),
        must(
            "3.3",
            "a person sees what is asked, and decides",
            "pages: a device gets tokens once somebody has typed its code",
            "pages: a device that was refused gets nothing",
        ),
        must(
            "3.5",
            "slow_down lengthens the interval by five seconds",
            "rules_of_the_wire: a device that asks too often has to wait longer each time",
        ),
        must(
            "3.5",
            "authorization_pending, expired_token, access_denied",
            "pages: a device waits ten minutes",
            "pages: a device that was refused gets nothing",
        ),
        must("5.1", "user codes cannot be tried out", "pages: codes of devices cannot be guessed at length"),
    ),
    "RFC 8707 (resources)": (
        must("2", "an unknown resource is invalid_target", "code_flow: a faulty request goes back as an error", STRICT),
        must(
            "2.2",
            "another one at the token endpoint, too",
            "code_flow: a faulty exchange is refused",
            "refresh: a refresh keeps the audience and says everything a client needs",
        ),
        must(
            "3",
            "the token is for that resource",
            "rules_of_the_wire: the audience is the url of the register however it was written",
            "real_clients: an mcp client signs in at a server that knows the issuer only",
        ),
    ),
    "RFC 9068 (access tokens)": (
        must(
            "2.1",
            "signed, typ at+jwt, never none",
            STRICT,
            "rules_of_the_wire: a token that somebody else signed or nobody is none",
        ),
        must(
            "2.2",
            "iss, exp, aud, sub, client_id, iat, jti",
            STRICT,
            "code_flow: a person signs in allows a client and it gets tokens",
        ),
        must(
            "3",
            "without a resource the audience is the default one",
            "code_flow: without a resource the default one is meant",
        ),
        must(
            "4",
            "keys are found from the metadata",
            "discovery: the keys are public and the token names its own",
            "real_clients: an mcp client signs in at a server that knows the issuer only",
        ),
    ),
    "RFC 9207 (issuer in answers)": (
        must(
            "2",
            "iss in every answer, errors too",
            "code_flow: a faulty request goes back as an error",
            "code_flow: a refusal goes back to the client with the issuer",
            STRICT,
        ),
        must("2.3", "the metadata say so", "discovery: the two documents are one and name every endpoint there is"),
    ),
    "OpenID Connect": (
        must(
            "Core 2, 3.1.3.6",
            "what an ID token says",
            "endpoints: an id token says who signed in when and for whom",
            STRICT,
        ),
        must(
            "Core 3.1.2.1",
            "prompt=none asks nobody",
            "code_flow: a faulty request goes back as an error",
            "code_flow: consent is remembered for clients of the operator only",
        ),
        must(
            "Core 3.1.2.1",
            "prompt=login and max_age ask again",
            "endpoints: an older sign in than is asked for is renewed",
        ),
        must(
            "Core 3.1.2.1",
            "GET and POST at the authorization endpoint",
            "code_flow: a posted authorization request becomes a get",
        ),
        must(
            "Core 5.3",
            "userinfo by GET and POST, about the subject of the ID token",
            "rules_of_the_wire: userinfo is given for a get and a post",
            STRICT,
        ),
        must(
            "Discovery 4",
            "the document at its path",
            "discovery: an issuer with a path is found in each of the ways",
            STRICT,
        ),
        must(
            "RP-initiated logout 2, 3",
            "a person is asked, and led to registered places only",
            "pages: a client signs a person out after a click and leads back",
            "pages: signing out leads nowhere that is not registered by the client of the id token",
        ),
    ),
    "MCP 2026-07-28, authorization servers": (
        must("overview", "OAuth 2.1, discovery, code_challenge_methods_supported", CONFORMANCE, STRICT),
        must(
            "discovery",
            "both documents, path-inserted",
            "discovery: an issuer with a path is found in each of the ways",
        ),
        must(
            "client documents",
            "the id in the document is its URL; redirects are of the document",
            "client_documents: a document that is not right describes nobody",
            "client_documents: a redirect that the document does not have is refused",
        ),
        must(
            "client documents",
            "kept by HTTP's rules",
            "client_documents: a document is kept as long as it says within bounds",
        ),
        must(
            "client documents",
            "no way to addresses inside",
            "client_documents: addresses inside are not gone to",
            "client_documents: a document is fetched from the address that was looked at",
        ),
        must(
            "client documents",
            "the redirect's host is on the consent page",
            "client_documents: a client is taken by its document and its url is shown",
        ),
        must("security", "endpoints on https", "command_line: a wrong setting is refused at the start"),
        must(
            "security",
            "redirects are https or to the own machine",
            "attacks: redirect uris that lead astray are not registered",
        ),
        must(
            "security",
            "access tokens are short-lived",
            "code_flow: a person signs in allows a client and it gets tokens",
        ),
        must(
            "security",
            "what MCP clients do works",
            "real_clients: an mcp client signs in at a server that knows the issuer only",
            "real_clients: mcp remote signs in and lists the tools",
            "real_clients: the inspector signs in and calls a tool",
        ),
    ),
    "The notes' security checklist": (
        must(
            "confused deputy",
            "consent per client, never skipped for an unverified one",
            "attacks: consent to one client is none to another",
            "code_flow: consent is remembered for clients of the operator only",
        ),
        must(
            "confused deputy",
            "the form is bound to its browser",
            "attacks: a consent form works in its own browser only",
            "attacks: a form from another site is refused",
            "attacks: a form without the mark of the browser is refused",
        ),
        must(
            "confused deputy",
            "cookies __Host-, Secure, HttpOnly, Lax; no-referrer, no-store, no frames",
            "attacks: the cookies are new after a sign in",
            "discovery: every answer has the safe headers",
        ),
        must(
            "refresh",
            "a grace with one successor",
            "refresh: a lost answer can be asked for again within the grace only",
            "refresh: refreshes at once get the same successor",
        ),
        must(
            "open redirect",
            "javascript: and data: are refused",
            "attacks: redirect uris that lead astray are not registered",
        ),
        must(
            "registration",
            "limited, capped, expiring, marked as unchecked",
            "attacks: registering is slowed down by address",
            "limits: clients that register themselves are only so many",
            "endpoints: a client that never got a token is forgotten after a week",
            "attacks: consent to one client is none to another",
        ),
        must(
            "sign-in",
            "generic errors, throttled, rotated sessions",
            "attacks: a name that is not there is refused like a wrong password",
            "limits: guessing is slowed down for an address whatever the names",
            "attacks: a session that was given to a browser is not signed in",
            "attacks: signing in anew ends the sign in before",
        ),
        must(
            "state",
            "hashes only are kept",
            "code_flow: what is kept of codes tokens secrets and passwords is their hash",
        ),
        must(
            "keys",
            "0600, two at rotation, published before they sign",
            "command_line: keys that others can read are not used",
            "discovery: a rotated key is published before it signs and the old one until its tokens have ended",
        ),
        must(
            "headers",
            "CORS where programs call, and nowhere else",
            "discovery: programs in browsers of any origin may call these without cookies",
            "discovery: programs of other origins may not call these",
        ),
        must("logs", "no secret in them", "command_line: what happened is shown and logged without secrets"),
        must("bodies", "bounded", "endpoints: a body that is too large is refused"),
        must("routes", "every one is listed", "discovery: every route is one that somebody has thought about"),
    ),
}

OF_A_PROVIDER = {
    "B139",
    "B140",
    "B142",
    "B146",
    "B147",
    "B148",
    "B151",
    "B152",
    "B153",
    "B154",
    "B159",
    "B161",
    "B163",
}
"""The reported cases of the area `oauth` that a provider can do something about; the others are a server's."""


@functools.cache
def _tests() -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    found: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
    for path in FOLDER.glob("test_*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                found[f"{path.stem.removeprefix('test_')}: {node.name.removeprefix('test_').replace('_', ' ')}"] = node
    return found


@pytest.mark.parametrize(
    ("specification", "row"), [(name, row) for name, rows in MUSTS.items() for row in rows], ids=str
)
def test_a_test_shows_what_a_specification_demands(specification: str, row: Must) -> None:
    assert row.shown, f"{specification}, {row}: nothing shows it"
    for name in row.shown:
        assert name in _tests(), f"{specification}, {row}: there is no test {name!r}"


def test_every_reported_case_of_a_provider_has_a_test() -> None:
    marked = {
        argument.value
        for node in _tests().values()
        for mark in node.decorator_list
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.case"
        for argument in mark.args
        if isinstance(argument, ast.Constant)
    }
    assert marked == OF_A_PROVIDER
