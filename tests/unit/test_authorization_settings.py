"""Whose tokens count, as an operator says it."""

from pathlib import Path
from typing import Any

import pytest

from pyexec.domain.authorization import AuthorizationSettings, Introspection, IssuerPolicy
from pyexec.domain.errors import InvalidArgumentError
from pyexec.settings import load_settings
from pyexec.settings.authorization import AUTH_VARIABLES

ISSUER = "https://id.example.com"
SECRET = "a secret that is long"

WRONG: dict[str, list[str]] = {
    "PYEXEC_AUTH_ISSUERS": [
        "id.example.com",
        "http://id.example.com",
        "https://u:p@id.example.com",
        "https://ID.example",
    ],
    "PYEXEC_AUTH_RESOURCE": ["https://h.example/mcp?x=1", "https://h.example/mcp#x", "http://10.0.0.1/mcp", "/mcp"],
    "PYEXEC_AUTH_POLICIES": ["policies.toml"],
    "PYEXEC_AUTH_INTROSPECTION_SECRET_FILE": ["secret"],
    "PYEXEC_AUTH_REVOCATION_SECONDS": ["61", "-1", "nan"],
    "PYEXEC_AUTH_SKEW_SECONDS": ["121", "soon"],
    "PYEXEC_AUTH_FIRST_SCOPES": ['a"b', "a\\b", "é"],
    "PYEXEC_AUTH_DEVELOPMENT": ["maybe", "1"],
}


def read(**variables: str) -> AuthorizationSettings:
    return load_settings({f"PYEXEC_AUTH_{name}": text for name, text in variables.items()}).authorization


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in WRONG.items() for text in texts])
def test_a_value_that_is_not_allowed_is_refused_with_what_is(name: str, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"{name} is .*it must be "):
        load_settings({name: text})


def test_every_variable_can_be_wrong_but_those_that_are_any_text() -> None:
    texts = {"PYEXEC_AUTH_INTROSPECTION_CLIENT", "PYEXEC_AUTH_INTROSPECTION_SECRET"}
    assert set(WRONG) == {variable.name for variable in AUTH_VARIABLES} - texts


def test_without_any_nobody_is_asked_for_a_token() -> None:
    assert read() == AuthorizationSettings()
    assert not read().wanted


def test_issuers_are_taken_letter_by_letter_and_are_strict() -> None:
    found = read(ISSUERS=f"{ISSUER}/ http://127.0.0.1:8100", RESOURCE="https://mcp.example.com/mcp")
    assert found.wanted
    assert found.issuers == (IssuerPolicy(url=f"{ISSUER}/"), IssuerPolicy(url="http://127.0.0.1:8100"))
    assert found.resource == "https://mcp.example.com/mcp"
    assert (found.issuers[0].types, found.issuers[0].algorithms) == (("at+jwt",), ("ES256",))


@pytest.mark.parametrize("how", ["variable", "file"])
def test_the_secret_comes_from_a_variable_or_a_file_and_is_never_shown(tmp_path: Path, how: str) -> None:
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\n")
    given = {"INTROSPECTION_SECRET": SECRET} if how == "variable" else {"INTROSPECTION_SECRET_FILE": str(file)}
    found = read(ISSUERS=ISSUER, INTROSPECTION_CLIENT="server", **given)
    (policy,) = found.issuers
    assert policy.introspection == Introspection(client_id="server", client_secret=SECRET)
    assert policy.opaque
    assert SECRET not in repr(found)


@pytest.mark.parametrize(
    "given",
    [
        {"ISSUERS": ISSUER},
        {"ISSUERS": ISSUER, "INTROSPECTION_SECRET": SECRET, "INTROSPECTION_SECRET_FILE": "/etc/hostname"},
        {"ISSUERS": ISSUER, "INTROSPECTION_SECRET_FILE": "/nonexistent"},
        {"ISSUERS": f"{ISSUER} https://other.example", "INTROSPECTION_SECRET": SECRET},
        {"INTROSPECTION_SECRET": SECRET},
    ],
    ids=["none", "two", "unreadable", "whose", "nobody"],
)
def test_what_contradicts_itself_is_refused_without_the_secret(given: dict[str, str]) -> None:
    with pytest.raises(InvalidArgumentError) as refusal:
        read(INTROSPECTION_CLIENT="server", **given)
    assert SECRET not in refusal.value.sentence()


def policies(tmp_path: Path, text: str, **environ: str) -> AuthorizationSettings:
    file = tmp_path / "policies.toml"
    file.write_text(text)
    return load_settings({"PYEXEC_AUTH_POLICIES": str(file), "PYEXEC_AUTH_ISSUERS": ISSUER, **environ}).authorization


def test_each_issuer_may_have_a_policy_of_its_own(tmp_path: Path) -> None:
    text = """
        [[issuer]]
        url = "https://keycloak.example/realms/team"
        audience = ["pyexec"]
        types = ["JWT"]
        algorithms = ["RS256", "ES256"]
        client_claim = "azp"
        private_network = true

        [[issuer]]
        url = "https://opaque.example"
        opaque = true
        introspection_client = "server"
        introspection_secret_variable = "OPAQUE"
        introspection_endpoint = "https://opaque.example/introspect"
    """
    found = policies(tmp_path, text, OPAQUE=SECRET)
    strict, keycloak, opaque = found.issuers
    assert found.secret_variables == ("OPAQUE",)
    assert strict == IssuerPolicy(url=ISSUER)
    assert (keycloak.audience, keycloak.types, keycloak.client_claim) == (("pyexec",), ("jwt",), "azp")
    assert (keycloak.algorithms, keycloak.private_network) == (("RS256", "ES256"), True)
    asked = Introspection(client_id="server", client_secret=SECRET, endpoint="https://opaque.example/introspect")
    assert (opaque.introspection, opaque.opaque) == (asked, True)


WRONG_FILES: dict[str, tuple[str, str]] = {
    "no TOML": ("[[issuer", "no TOML"),
    "nothing": ("", "one or more"),
    "something else": ("x = 1\n[[issuer]]\nurl = 'https://a.example'", "nothing else"),
    "no url": ("[[issuer]]\ntypes = []", "wrong url"),
    "a plain url": ("[[issuer]]\nurl = 'http://a.example'", "wrong url"),
    "a shared secret": ("[[issuer]]\nurl = 'https://a.example'\nalgorithms = ['HS256']", "wrong algorithms"),
    "alg none": ("[[issuer]]\nurl = 'https://a.example'\nalgorithms = ['none']", "wrong algorithms"),
    "no algorithm": ("[[issuer]]\nurl = 'https://a.example'\nalgorithms = []", "wrong algorithms"),
    "a misspelt name": ("[[issuer]]\nurl = 'https://a.example'\naudiences = ['x']", "says audiences"),
    "a text for a list": ("[[issuer]]\nurl = 'https://a.example'\naudience = 'x'", "wrong audience"),
    "a text for a truth": ("[[issuer]]\nurl = 'https://a.example'\nopaque = 'yes'", "wrong opaque"),
    "opaque and nobody to ask": ("[[issuer]]\nurl = 'https://a.example'\nopaque = true", "wrong opaque"),
    "no secret": ("[[issuer]]\nurl = 'https://a.example'\nintrospection_client = 'x'", "introspection_secret_file"),
    "an empty secret": (
        "[[issuer]]\nurl = 'https://a.example'\nintrospection_client = 'x'\nintrospection_secret_variable = 'NOT_SET'",
        "NOT_SET",
    ),
    "twice": ("[[issuer]]\nurl = 'https://a.example'\n[[issuer]]\nurl = 'https://a.example'", "twice"),
}


@pytest.mark.parametrize("name", WRONG_FILES)
def test_a_file_with_a_slip_is_refused_with_its_name_and_the_slip(tmp_path: Path, name: str) -> None:
    text, said = WRONG_FILES[name]
    with pytest.raises(InvalidArgumentError, match=said) as refusal:
        policies(tmp_path, text)
    assert str(tmp_path / "policies.toml") in refusal.value.message


def test_no_two_issuers_are_shown_tokens_that_are_no_jwts(tmp_path: Path) -> None:
    one: Any = (
        "[[issuer]]\nurl = 'https://{}.example'\nopaque = true\nintrospection_client = 'x'\n"
        "introspection_secret_variable = 'S'\n"
    )
    with pytest.raises(InvalidArgumentError, match="More than one issuer has opaque"):
        policies(tmp_path, one.format("a") + one.format("b"), S=SECRET)
