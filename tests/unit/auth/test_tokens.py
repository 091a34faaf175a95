"""Which tokens count, and which are made to look as if they did."""

import hmac
import json
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from joserfc.jwk import ECKey

from pyexec.auth.refusals import InvalidTokenError
from pyexec.auth.tokens import LARGEST
from pyexec.domain.principals import Principal
from tests.oauth.tokens import ISSUER, NOW, RESOURCE, Clock, Signing, part, verifier

SIGNING = Signing(now=Clock())
OTHER = Signing(now=Clock())


def _signed_with_the_public_key() -> str:
    """What a verifier takes that looks the algorithm up in the token: the public key as a shared secret."""
    pem = SIGNING.key.public_key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    signed = f"{part(SIGNING.header(alg='HS256'))}.{part(SIGNING.claims())}"
    return f"{signed}.{part(hmac.digest(pem, signed.encode(), 'sha256'))}"


def _without_signature(algorithm: str) -> str:
    return f"{part(SIGNING.header(alg=algorithm))}.{part(SIGNING.claims())}."


def _with_other_claims() -> str:
    header, _claims, signature = SIGNING.token().split(".")
    return f"{header}.{part(SIGNING.claims(sub='eve'))}.{signature}"


def _twice(name: str, value: str) -> str:
    payload = json.dumps(SIGNING.claims())
    return SIGNING.token(payload=f'{payload[:-1]}, "{name}": {json.dumps(value)}}}'.encode())


def _twice_in_the_header() -> str:
    _header, claims, signature = SIGNING.token().split(".")
    header = part(b'{"typ":"JWT","typ":"at+jwt","alg":"ES256","kid":"k1"}')
    return f"{header}.{claims}.{signature}"


BAD: dict[str, tuple[Callable[[], str], str]] = {
    "nothing": (lambda: "", "characters"),
    "spaces": (lambda: "a b", "characters"),
    "not ASCII": (lambda: "é.é.é", "characters"),
    "opaque, and nobody to ask": (lambda: "opaque", "no JWT"),
    "three parts of nothing": (lambda: "..", "no JWT"),
    "no JSON": (lambda: "aaaa.bbbb.cccc", "no JWT"),
    "an array": (lambda: f"{part([])}.{part([])}.", "no JWT"),
    "nested beyond measure": (lambda: f"{part(b'[' * 5000)}.{part({})}.", "no JWT"),
    "padded": (lambda: f"{part(SIGNING.header())}=.{part(SIGNING.claims())}.", "no JWT"),
    "encrypted": (lambda: "a.b.c.d.e", "no JWT"),
    "alg none": (lambda: _without_signature("none"), "signed in another way"),
    "alg NoNe": (lambda: _without_signature("NoNe"), "signed in another way"),
    "alg a list": (
        lambda: f"{part({**SIGNING.header(), 'alg': ['ES256']})}.{part(SIGNING.claims())}.AA",
        "another way",
    ),
    "no alg": (lambda: f"{part({'typ': 'at+jwt'})}.{part(SIGNING.claims())}.AA", "signed in another way"),
    "HS256 with the public key": (_signed_with_the_public_key, "signed in another way"),
    "no signature": (lambda: _without_signature("ES256"), "signature is wrong"),
    "a signature of zeros": (lambda: _without_signature("ES256") + part(bytes(64)), "signature is wrong"),
    "another key": (lambda: OTHER.token(), "signature is wrong"),
    "other claims under the signature": (_with_other_claims, "signature is wrong"),
    "typ JWT": (lambda: SIGNING.token(SIGNING.header(typ="JWT")), "no access token by its type"),
    "no typ": (lambda: SIGNING.token(SIGNING.header(typ=None)), "no access token by its type"),
    "a kid that nobody has": (lambda: SIGNING.token(SIGNING.header(kid="k9")), "names a key"),
    "a kid that leads to a file": (lambda: SIGNING.token(SIGNING.header(kid="../../dev/null")), "names a key"),
    "jku": (lambda: SIGNING.token(SIGNING.header(jku="https://evil.example/keys")), "says how to check it"),
    "x5u": (lambda: SIGNING.token(SIGNING.header(x5u="https://evil.example/x")), "says how to check it"),
    "jwk": (
        lambda: OTHER.token(OTHER.header(jwk=OTHER.key.as_dict(private=False))),
        "says how to check it",
    ),
    "crit": (
        lambda: f"{part(SIGNING.header(crit=['x'], x=1))}.{part(SIGNING.claims())}.AA",
        "says how to check it",
    ),
    "another issuer": (lambda: SIGNING.token(iss="https://evil.example"), "issuer whose tokens do not count"),
    "the issuer with a slash": (lambda: SIGNING.token(iss=f"{ISSUER}/"), "issuer whose tokens do not count"),
    "no issuer": (lambda: SIGNING.token(iss=None), "issuer whose tokens do not count"),
    "another audience": (lambda: SIGNING.token(aud="https://other.example/mcp"), "another audience"),
    "the audience with a slash": (lambda: SIGNING.token(aud=f"{RESOURCE}/"), "another audience"),
    "a part of the audience": (lambda: SIGNING.token(aud="https://mcp.example.com"), "another audience"),
    "the client as audience": (lambda: SIGNING.token(aud=["client"]), "another audience"),
    "no audience": (lambda: SIGNING.token(aud=None), "another audience"),
    "expired": (lambda: SIGNING.token(exp=int(NOW) - 31), "expired"),
    "no exp": (lambda: SIGNING.token(exp=None), "no exp"),
    "exp a text": (lambda: SIGNING.token(exp="99999999999"), "no exp"),
    "exp true": (lambda: SIGNING.token(exp=True), "no exp"),
    "exp beyond all time": (lambda: SIGNING.token(exp=10**400), "no exp"),
    "exp NaN": (lambda: SIGNING.token(payload=json.dumps(SIGNING.claims(exp=float("nan"))).encode()), "no JWT"),
    "issued far in the future": (lambda: SIGNING.token(iat=int(NOW) + 31), "issued in the future"),
    "no iat": (lambda: SIGNING.token(iat=None), "no iat"),
    "not yet": (lambda: SIGNING.token(nbf=int(NOW) + 31), "does not count yet"),
    "nbf a text": (lambda: SIGNING.token(nbf="soon"), "no nbf"),
    "no sub": (lambda: SIGNING.token(sub=None), "no sub"),
    "an empty sub": (lambda: SIGNING.token(sub=""), "no sub"),
    "a sub with a line end": (lambda: SIGNING.token(sub="ada\nroot"), "no sub"),
    "a sub without end": (lambda: SIGNING.token(sub="a" * 390), "too long"),
    "no client_id": (lambda: SIGNING.token(client_id=None), "no client_id"),
    "no jti": (lambda: SIGNING.token(jti=None), "no jti"),
    "scope a number": (lambda: SIGNING.token(scope=7), "scopes cannot be read"),
    "two subjects": (lambda: _twice("sub", "eve"), "no JWT"),
    "two audiences": (lambda: _twice("aud", "https://other.example/mcp"), "no JWT"),
    "two types": (_twice_in_the_header, "no JWT"),
    "oversized": (lambda: SIGNING.token(filling="x" * LARGEST), "too long"),
}


@pytest.mark.parametrize("name", BAD)
async def test_a_token_that_was_tampered_with_does_not_count(name: str) -> None:
    make, reason = BAD[name]
    token = make()
    with pytest.raises(InvalidTokenError, match=reason) as refusal:
        await verifier(SIGNING.trusted()).verify(token)
    said = str(refusal.value)
    assert not any(len(one) > 8 and one in said for one in (token, *token.split(".")))


async def test_a_good_token_says_who_asks() -> None:
    identity = await verifier(SIGNING.trusted()).verify(SIGNING.token(jti="t1"))
    assert (identity.issuer, identity.subject, identity.client_id) == (ISSUER, "ada", "client")
    assert identity.scopes == {"python:execute", "jobs:read"}
    assert (identity.token_id, identity.expires_at) == ("t1", NOW + 600)
    assert identity.principal.key == f"{ISSUER}|ada|"


GOOD: dict[str, dict[str, Any]] = {
    "several audiences": {"aud": ["https://other.example", RESOURCE]},
    "an issuer's clock ahead": {"iat": int(NOW) + 29},
    "an issuer's clock behind": {"exp": int(NOW) - 29},
    "scopes as a list": {"scope": ["python:execute"]},
    "no scope": {"scope": None},
}


@pytest.mark.parametrize("name", GOOD)
async def test_what_differs_and_is_no_fault_counts(name: str) -> None:
    assert (await verifier(SIGNING.trusted()).verify(SIGNING.token(None, None, **GOOD[name]))).subject == "ada"


async def test_each_issuer_has_a_policy_of_its_own() -> None:
    strict = Signing(issuer="https://strict.example", now=Clock())
    lenient = Signing(issuer="https://lenient.example", now=Clock())
    policy = {"types": ("jwt",), "audience": ("account",), "client_claim": "azp", "scope_claim": "scp"}
    both = verifier(strict.trusted(), lenient.trusted(**policy))
    theirs: dict[str, Any] = {"aud": "account", "client_id": None, "azp": "browser", "scp": ["jobs:read"]}
    found = await both.verify(lenient.token(lenient.header(typ="JWT"), **theirs))
    assert (found.client_id, found.scopes) == ("browser", {"jobs:read"})
    with pytest.raises(InvalidTokenError, match="type"):
        await both.verify(strict.token(strict.header(typ="JWT"), **theirs))
    with pytest.raises(InvalidTokenError, match="signature"):
        await both.verify(strict.token(iss=lenient.issuer, header=strict.header(typ="JWT"), **theirs))


async def test_a_key_without_a_name_counts_when_there_is_only_one() -> None:
    token = SIGNING.token(SIGNING.header(kid=None))
    assert (await verifier(SIGNING.trusted()).verify(token)).subject == "ada"


async def test_a_token_that_was_verified_counts_no_longer_than_it_says() -> None:
    clock = Clock()
    one = verifier(SIGNING.trusted(), clock=clock)
    token = SIGNING.token(exp=int(NOW) + 5)
    await one.verify(token)
    clock.at += 34
    assert (await one.verify(token)).subject == "ada"
    clock.at += 1
    with pytest.raises(InvalidTokenError, match="expired"):
        await one.verify(token)


async def test_a_verifier_keeps_no_token() -> None:
    one = verifier(SIGNING.trusted())
    token = SIGNING.token()
    await one.verify(token)
    with pytest.raises(InvalidTokenError):
        await one.verify(token[:-4])
    held = repr([vars(one), [vars(memory) for memory in (one._verified, one._refused)]])
    assert token[:-4] not in held
    assert token.split(".")[2][:20] not in held


async def test_the_two_kinds_of_keys_are_not_mixed_up() -> None:
    """A token of an algorithm that the policy allows, but the key is of another kind."""
    issuer = SIGNING.trusted(algorithms=("RS256", "ES256"))
    with pytest.raises(InvalidTokenError, match="names a key"):
        await verifier(issuer).verify(f"{part(SIGNING.header(alg='RS256'))}.{part(SIGNING.claims())}.AAAA")
    other_curve = Signing(key=ECKey.generate_key("P-384"), now=Clock())
    with pytest.raises(InvalidTokenError, match="signature"):
        await verifier(other_curve.trusted()).verify(SIGNING.token())


@pytest.mark.parametrize(("issued", "counts"), [(-5, False), (0, False), (29, False), (30, False), (31, True)])
async def test_a_token_from_before_its_user_was_ended_does_not_count_though_its_issuers_clock_is_ahead(
    issued: int, counts: bool
) -> None:
    clock = Clock()

    async def ended(_principal: Principal) -> float:
        return NOW

    one = verifier(SIGNING.trusted(), clock=clock, ended=ended)
    token = SIGNING.token(iat=int(NOW) + issued)
    clock.at += 60
    if counts:
        assert (await one.verify(token)).subject == "ada"
    else:
        with pytest.raises(InvalidTokenError, match=r"issued after 2027-01-15 08:00:30 UTC may count"):
            await one.verify(token)
