"""Issuers are found, and their keys kept, rotated and asked for seldom enough."""

from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from joserfc.jwk import ECKey

from pyexec.auth.fetching import Fetcher
from pyexec.auth.issuers import AGAIN_SECONDS, KEYS_SECONDS, STALE_SECONDS, PublishedIssuer, metadata_urls
from pyexec.auth.keys import MOST_KEYS, read_keys
from pyexec.auth.refusals import InvalidTokenError, IssuerUnavailableError
from pyexec.auth.verification import Issuer, Verifier
from pyexec.domain.authorization import Introspection, IssuerPolicy
from tests.oauth.stand import Stand, standing
from tests.oauth.tokens import RESOURCE, Clock, Signing

WELL_KNOWN = "/.well-known/oauth-authorization-server"
SECRET = "the secret of the server"


@pytest.fixture
def stand() -> Iterator[Stand]:
    with standing() as made:
        yield made


@pytest.fixture
def clock() -> Clock:
    return Clock()


def public(*signing: Signing, **more: Any) -> dict[str, Any]:
    return {"keys": [{**one.key.as_dict(private=False), "kid": f"k{n}", **more} for n, one in enumerate(signing, 1)]}


def publish(stand: Stand, *signing: Signing, path: str = WELL_KNOWN, **more: Any) -> None:
    about = {"issuer": signing[0].issuer, "jwks_uri": f"{stand.url}/keys", **more}
    stand.answers.update({path: about, "/keys": public(*signing)})


def verifier(stand: Stand, clock: Clock, issuer: str | None = None, **policy: Any) -> Verifier:
    made = IssuerPolicy(url=issuer or stand.url, **policy)
    published = PublishedIssuer(made, Fetcher(lambda _address: False), clock)
    asked = published if made.introspection else None
    return Verifier([Issuer(policy=made, keys=published, asked=asked)], RESOURCE, now=clock, clock=clock)


@pytest.mark.case("B142")
def test_metadata_are_looked_for_where_the_specifications_say_in_their_order() -> None:
    assert metadata_urls("https://as.example/tenant") == (
        "https://as.example/.well-known/oauth-authorization-server/tenant",
        "https://as.example/.well-known/openid-configuration/tenant",
        "https://as.example/tenant/.well-known/openid-configuration",
    )
    assert metadata_urls("https://as.example") == (
        "https://as.example/.well-known/oauth-authorization-server",
        "https://as.example/.well-known/openid-configuration",
    )


@pytest.mark.parametrize("number", range(3))
async def test_an_issuer_is_found_by_any_of_them(stand: Stand, clock: Clock, number: int) -> None:
    issuer = f"{stand.url}/tenant"
    path = metadata_urls(issuer)[number].removeprefix(stand.url)
    signing = Signing(issuer=issuer, now=clock)
    publish(stand, signing, path=path)
    assert (await verifier(stand, clock, issuer).verify(signing.token())).issuer == issuer


@pytest.mark.case("B140")
@pytest.mark.parametrize("said", ["http://127.0.0.1:1/tenant", "https://evil.example", "/"])
async def test_metadata_of_another_issuer_are_refused_with_both_names(stand: Stand, clock: Clock, said: str) -> None:
    signing = Signing(issuer=stand.url, now=clock)
    publish(stand, signing)
    other = stand.url + "/" if said == "/" else said
    stand.answers[WELL_KNOWN]["issuer"] = other
    with pytest.raises(IssuerUnavailableError, match="is about the issuer") as refusal:
        await verifier(stand, clock).verify(signing.token())
    assert other in str(refusal.value)
    assert f"not {stand.url}." in str(refusal.value)


async def test_keys_are_fetched_once_for_many_tokens_that_come_together(stand: Stand, clock: Clock) -> None:
    signing = Signing(issuer=stand.url, now=clock)
    publish(stand, signing)
    one = verifier(stand, clock)
    async with anyio.create_task_group() as tasks:
        for _number in range(20):
            tasks.start_soon(one.verify, signing.token())
    assert stand.asked == [WELL_KNOWN, "/keys"]


async def test_a_new_key_is_found_and_unknown_ones_do_not_make_us_ask_all_the_time(stand: Stand, clock: Clock) -> None:
    old, new = Signing(issuer=stand.url, now=clock), Signing(issuer=stand.url, now=clock)
    publish(stand, old)
    one = verifier(stand, clock)
    await one.verify(old.token())
    publish(stand, old, new)
    clock.at += AGAIN_SECONDS + 1
    assert (await one.verify(new.token(new.header(kid="k2")))).subject == "ada"
    assert stand.asked.count("/keys") == 2
    for number in range(10):
        with pytest.raises(InvalidTokenError, match="names a key"):
            await one.verify(new.token(new.header(kid=f"nobody-{number}")))
    assert stand.asked.count("/keys") == 2


async def test_a_key_that_was_withdrawn_counts_no_longer_even_for_tokens_seen_before(
    stand: Stand, clock: Clock
) -> None:
    old, new = Signing(issuer=stand.url, now=clock), Signing(issuer=stand.url, now=clock)
    publish(stand, old)
    one = verifier(stand, clock)
    token = old.token(exp=int(clock()) + 10_000)
    await one.verify(token)
    publish(stand, new)
    clock.at += KEYS_SECONDS + 1
    with pytest.raises(InvalidTokenError, match="signature"):
        await one.verify(token)
    assert (await one.verify(new.token())).subject == "ada"


async def test_an_issuer_that_is_down_for_a_while_locks_nobody_out_and_is_not_hammered(
    stand: Stand, clock: Clock
) -> None:
    signing = Signing(issuer=stand.url, now=clock)
    publish(stand, signing)
    one = verifier(stand, clock)
    await one.verify(signing.token())
    del stand.answers["/keys"]
    clock.at += KEYS_SECONDS + 1
    for _number in range(5):
        assert (await one.verify(signing.token())).subject == "ada"
    assert stand.asked.count("/keys") == 2
    clock.at += STALE_SECONDS
    with pytest.raises(IssuerUnavailableError):
        await one.verify(signing.token())


def test_keys_that_are_none_of_use_are_passed_over() -> None:
    signing = Signing()
    good = signing.key.as_dict(private=False)
    entries: list[Any] = [
        {"kty": "oct", "k": "c2VjcmV0"},
        {**good, "use": "enc"},
        signing.key.as_dict(private=True),
        {**good, "x": "AAAA"},
        {"kty": "RSA", "n": "AQAB", "e": "AQAB"},
        {"kty": "EC"},
        "no key",
        None,
        {**good, "kid": 7, "alg": "ES256"},
    ]
    (known,) = read_keys({"keys": entries})
    assert (known.kid, known.algorithm) == (None, "ES256")
    assert not known.key.is_private
    for wrong in ({}, {"keys": []}, {"keys": {}}, {"keys": [good] * (MOST_KEYS + 1)}):
        with pytest.raises(ValueError, match="keys"):
            read_keys(wrong)


def asked(stand: Stand, **more: Any) -> dict[str, Any]:
    return {"introspection": Introspection(client_id="server", client_secret=SECRET), **more}


async def test_a_jwt_is_asked_about_seldom_and_no_longer_counts_once_it_was_revoked(stand: Stand, clock: Clock) -> None:
    signing = Signing(issuer=stand.url, now=clock)
    publish(stand, signing, introspection_endpoint=f"{stand.url}/introspect")
    stand.answers["/introspect"] = {"active": True}
    one = verifier(stand, clock, **asked(stand))
    token = signing.token()
    for _number in range(5):
        await one.verify(token)
    assert stand.asked.count("/introspect") == 1
    assert stand.forms == [{"token": [token], "token_type_hint": ["access_token"]}]
    assert (stand.authorizations[-1] or "").startswith("Basic ")
    stand.answers["/introspect"] = {"active": False}
    clock.at += 31
    with pytest.raises(InvalidTokenError, match="does not count"):
        await one.verify(token)


@pytest.mark.parametrize("answer", [{}, {"active": "true"}, {"active": 1}, {"active": None}])
async def test_only_a_clear_word_counts(stand: Stand, clock: Clock, answer: dict[str, Any]) -> None:
    signing = Signing(issuer=stand.url, now=clock)
    publish(stand, signing, introspection_endpoint=f"{stand.url}/introspect")
    stand.answers["/introspect"] = answer
    with pytest.raises(InvalidTokenError, match="does not count"):
        await verifier(stand, clock, **asked(stand)).verify(signing.token())


async def test_when_the_issuer_cannot_be_asked_a_token_is_neither_good_nor_bad(stand: Stand, clock: Clock) -> None:
    signing = Signing(issuer=stand.url, now=clock)
    publish(stand, signing, introspection_endpoint=f"{stand.url}/gone")
    with pytest.raises(IssuerUnavailableError) as refusal:
        await verifier(stand, clock, **asked(stand)).verify(signing.token())
    assert SECRET not in str(refusal.value)
    assert SECRET not in repr(asked(stand))


async def test_a_token_that_is_no_jwt_says_what_its_issuer_says(stand: Stand, clock: Clock) -> None:
    signing = Signing(issuer=stand.url, now=clock)
    publish(stand, signing, introspection_endpoint=f"{stand.url}/introspect")
    good = {"active": True, "aud": RESOURCE, "sub": "ada", "client_id": "c", "scope": "jobs:read", "iss": stand.url}
    stand.answers["/introspect"] = good
    one = verifier(stand, clock, **asked(stand, opaque=True))
    found = await one.verify("opaque-1")
    assert (found.subject, found.client_id, found.scopes) == ("ada", "c", {"jobs:read"})
    assert found.expires_at is None
    assert "opaque" not in found.token_id
    wrong: dict[str, dict[str, Any]] = {
        "another audience": {"aud": "https://other.example/mcp"},
        "no audience": {"aud": None},
        "another issuer": {"iss": "https://evil.example"},
        "expired": {"exp": int(clock()) - 100},
        "no subject": {"sub": None},
        "another kind": {"token_type": "DPoP"},
    }
    for name, change in wrong.items():
        stand.answers["/introspect"] = {key: value for key, value in {**good, **change}.items() if value is not None}
        with pytest.raises(InvalidTokenError):
            await one.verify(f"opaque-{name.replace(' ', '-')}")


async def test_a_token_is_never_shown_to_an_issuer_that_it_is_not_from(stand: Stand, clock: Clock) -> None:
    theirs, other = Signing(issuer=stand.url, now=clock), Signing(issuer="https://other.example", now=clock)
    publish(stand, theirs, introspection_endpoint=f"{stand.url}/introspect")
    stand.answers["/introspect"] = {"active": True}
    one = verifier(stand, clock, **asked(stand, opaque=True))
    for token in (other.token(), theirs.token(aud="https://other.example/mcp"), theirs.token()[:-8]):
        with pytest.raises(InvalidTokenError):
            await one.verify(token)
    assert stand.forms == []


def test_a_key_of_the_wrong_curve_does_not_verify() -> None:
    (known,) = read_keys(public(Signing(key=ECKey.generate_key("P-384"))))
    assert known.fits("ES256")  # By its family; the signature does not fit, see the table of tokens.
