"""The operator's commands, and the server that sees what they change."""

import json
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import httpx2
import pytest

from pyexec_idp.settings import VARIABLES
from tests.idp.served import Operator, operator
from tests.idp.site import ISSUER, MCP, PASSWORD, SCOPE, Pkce, Site, refused


@pytest.fixture(scope="module")
def idp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    made = operator(tmp_path_factory.mktemp("idp"))
    with made.serving():
        yield made


def test_it_says_its_version(idp: Operator) -> None:
    assert idp.run_alone("--version").stdout.strip() == f"pyexec-idp, version {version('pyexec-idp')}"


def test_users_are_added_listed_disabled_and_reset(idp: Operator) -> None:
    idp.ok("users", "add", "Grace", "--password-stdin", stdin=f"{PASSWORD}\n")
    assert "grace\t" in idp.ok("users", "list")
    again = idp.run("users", "add", "grace", "--generate")
    assert (again.returncode, again.stderr) == (1, "There is a user grace already.")
    assert "shown once" in idp.ok("users", "reset", "grace", "--generate")
    idp.ok("users", "disable", "grace")
    assert "disabled" in idp.ok("users", "list")
    short = idp.run("users", "reset", "grace", "--password-stdin", stdin="short\n")
    assert "it must have between 12 and 256" in short.stderr
    assert "There is no user" in idp.run("users", "disable", "nobody").stderr


def test_what_a_user_allowed_is_listed_and_ended(tmp_path: Path) -> None:
    site = Site(tmp_path / "idp")
    made = operator(tmp_path)
    tokens = site.tokens(site.client(client_name="The editor"), scope=f"{SCOPE} openid")
    site.clock.advance(60)
    other = site.tokens()
    listed = [line.split("\t") for line in made.ok("grants", "list", "ada").splitlines()]
    assert [(row[1], row[2], row[3]) for row in listed] == [
        ("A test", MCP, SCOPE),
        ("The editor", MCP, f"{SCOPE} openid"),
    ]
    made.ok("grants", "revoke", "ada", listed[1][0])
    assert "has no grant" in made.run("grants", "revoke", "ada", listed[1][0]).stderr
    refused(site.refresh(tokens["client_id"], tokens["refresh_token"]), 400, "invalid_grant")
    assert site.userinfo(tokens["access_token"]).status_code == 401
    assert site.refresh(other["client_id"], other["refresh_token"]).status_code == 200
    made.ok("grants", "revoke", "ada")
    assert made.ok("grants", "list", "ada") == ""
    refused(site.refresh(other["client_id"], other["refresh_token"]), 400, "invalid_grant")
    assert "no user 'bob'" in made.run("grants", "list", "bob").stderr
    assert made.ok("audit", "--user", "ada").count("access_ended") == 2
    assert made.ok("audit", "--client", other["client_id"]).splitlines()[-1].split("\t")[1] == "client_registered"
    site.close()


def test_disabling_a_user_ends_sign_ins_and_tokens_at_once(tmp_path: Path) -> None:
    site = Site(tmp_path / "idp")
    made, browser = operator(tmp_path), site.browser()
    server = site.own_client(introspects=(MCP,), grant_types=())
    pkce, client_id = Pkce(), site.client()
    tokens = site.exchange(client_id, site.code(client_id, pkce, browser), pkce).json()
    assert "Your account" in browser.get(f"{ISSUER}/account").text
    made.ok("users", "disable", "ada")
    assert "Sign in" in browser.get(f"{ISSUER}/account").text
    refused(site.refresh(client_id, tokens["refresh_token"]), 400, "invalid_grant")
    asked = site.post("/introspect", (server, "a secret"), token=tokens["access_token"])
    assert asked.json() == {"active": False}
    browser.get(f"{ISSUER}/account")
    assert browser.sign_in().status_code == 401
    site.close()


def test_a_clients_secret_is_shown_once(idp: Operator) -> None:
    said = idp.ok("clients", "add", "Backend", "--grant", "client_credentials", "--introspects", MCP)
    client_id, secret = said.split()[1], said.split()[-1]
    listed = idp.ok("clients", "list")
    assert client_id in listed
    assert secret not in listed
    answer = httpx2.post(f"{idp.issuer}/introspect", data={"token": "x"}, auth=(client_id, secret))
    assert answer.json() == {"active": False}
    new = idp.ok("clients", "secret", client_id).split()[-1]
    assert httpx2.post(f"{idp.issuer}/introspect", data={"token": "x"}, auth=(client_id, secret)).status_code == 401
    assert httpx2.post(f"{idp.issuer}/introspect", data={"token": "x"}, auth=(client_id, new)).status_code == 200
    idp.ok("clients", "remove", client_id)
    assert client_id not in idp.ok("clients", "list")
    wrong = idp.run("clients", "add", "Evil", "--redirect-uri", "http://10.0.0.5/cb")
    assert "neither https nor http to 127.0.0.1" in wrong.stderr


def test_a_running_server_sees_new_keys_and_resources(idp: Operator) -> None:
    def keys() -> list[str]:
        return [key["kid"] for key in httpx2.get(f"{idp.issuer}/.well-known/jwks.json").json()["keys"]]

    before = keys()
    new = idp.ok("keys", "rotate").split()[0]
    assert keys() == [new, *before]
    assert idp.ok("keys", "list").count("\n") == 2
    idp.ok("resources", "add", MCP, "--name", "Python", "--scope", "python:execute=Run code")
    document = httpx2.get(f"{idp.issuer}/.well-known/oauth-authorization-server").json()
    assert "python:execute" in document["scopes_supported"]
    assert MCP in idp.ok("resources", "list")
    assert MCP in idp.ok("check")


def test_what_happened_is_shown_and_logged_without_secrets(idp: Operator) -> None:
    body = {"redirect_uris": ["http://127.0.0.1/cb"], "client_name": "Logged"}
    made = httpx2.post(f"{idp.issuer}/register", json=body).json()
    newest = idp.ok("audit", "--limit", "1")
    assert "client_registered" in newest
    assert made["client_id"] in newest
    lines = [json.loads(line) for line in idp.log().splitlines()]
    assert any(line["message"] == "client_registered" for line in lines)
    assert made["client_secret"] not in idp.log() + idp.ok("audit")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PYEXEC_IDP_ISSUER", "http://id.example.com"),
        ("PYEXEC_IDP_ISSUER", "https://id.example.com/"),
        ("PYEXEC_IDP_ISSUER", "https://id.example.com?x"),
        ("PYEXEC_IDP_PORT", "0"),
        ("PYEXEC_IDP_CODE", "3600"),
        ("PYEXEC_IDP_REDIRECT_SCHEMES", "javascript"),
        ("PYEXEC_IDP_DATABASE_URL", "mysql://u:sesame@h/d"),
        ("PYEXEC_IDP_HOME", "relative"),
        ("PYEXEC_IDP_NO_SUCH", "1"),
    ],
)
def test_a_wrong_setting_is_refused_at_the_start(tmp_path: Path, name: str, value: str) -> None:
    done = operator(tmp_path, **{name: value}).run("check")
    assert done.returncode == 1
    assert done.stderr
    assert "sesame" not in done.stderr


def test_a_refusal_is_a_sentence_and_a_hint(tmp_path: Path) -> None:
    done = operator(tmp_path, PYEXEC_IDP_PORT="0").run_alone("check")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "pyexec-idp: PYEXEC_IDP_PORT has a wrong value.\n  Allowed: 1 to 65535.\n"


def test_keys_that_others_can_read_are_not_used(tmp_path: Path) -> None:
    made = operator(tmp_path)
    made.ok("check")
    (key,) = (made.home / "keys").glob("*.json")
    key.chmod(0o644)
    done = made.run("check")
    assert (done.returncode, "can be read by others" in done.stderr) == (1, True)


def test_every_setting_is_read_by_its_own_name() -> None:
    names = [variable.name for variable in VARIABLES]
    assert len(set(names)) == len(names)
