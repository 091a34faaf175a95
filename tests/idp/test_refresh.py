"""Refresh tokens: rotation, families, reuse, lost answers, races."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.idp.site import MCP, OTHER, SCOPE, Pkce, Site, payload, refused


def test_a_refresh_gives_new_tokens_and_the_old_refresh_token_ends(site: Site) -> None:
    first = site.tokens()
    site.clock.advance(3600)
    second = site.refresh(first["client_id"], first["refresh_token"]).json()
    assert second["refresh_token"] != first["refresh_token"]
    assert payload(second["access_token"])["aud"] == MCP
    third = site.refresh(first["client_id"], second["refresh_token"])
    assert third.status_code == 200


@pytest.mark.case("B152")
def test_a_lost_answer_can_be_asked_for_again_within_the_grace_only(site: Site) -> None:
    first = site.tokens()
    answer = site.refresh(first["client_id"], first["refresh_token"]).json()
    site.clock.advance(5)
    again = site.refresh(first["client_id"], first["refresh_token"])
    assert again.json()["refresh_token"] == answer["refresh_token"]
    site.clock.advance(600)
    refused(site.refresh(first["client_id"], first["refresh_token"]), 400, "invalid_grant")


def test_reuse_after_the_grace_ends_the_whole_family(site: Site) -> None:
    first = site.tokens()
    second = site.refresh(first["client_id"], first["refresh_token"]).json()
    site.clock.advance(60)
    refused(site.refresh(first["client_id"], first["refresh_token"]), 400, "invalid_grant")
    refused(site.refresh(first["client_id"], second["refresh_token"]), 400, "invalid_grant")
    assert site.audited()[0] == "refresh_token_reused"


def test_within_the_grace_a_token_whose_successor_was_used_is_refused_and_the_family_lives(site: Site) -> None:
    first = site.tokens()
    second = site.refresh(first["client_id"], first["refresh_token"]).json()
    third = site.refresh(first["client_id"], second["refresh_token"]).json()
    refused(site.refresh(first["client_id"], first["refresh_token"]), 400, "invalid_grant")
    assert site.refresh(first["client_id"], third["refresh_token"]).status_code == 200


@pytest.mark.case("B151")
def test_refreshes_at_once_get_the_same_successor(site: Site) -> None:
    first = site.tokens()
    with ThreadPoolExecutor(5) as pool:
        answers = list(pool.map(lambda _: site.refresh(first["client_id"], first["refresh_token"]), range(5)))
    assert [answer.status_code for answer in answers] == [200] * 5
    successors = {answer.json()["refresh_token"] for answer in answers}
    assert len(successors) == 1
    assert site.refresh(first["client_id"], successors.pop()).status_code == 200


@pytest.mark.case("B153")
@pytest.mark.case("B154")
def test_a_refresh_keeps_the_audience_and_says_everything_a_client_needs(site: Site) -> None:
    tokens = site.tokens()
    client_id = tokens["client_id"]
    for more in ({"resource": MCP}, {}, {"resource": "HTTPS://MCP.example.com:443/mcp"}, {"resource": f"{MCP}/"}):
        answer = site.refresh(client_id, tokens["refresh_token"], **more)
        assert answer.status_code == 200
        tokens = answer.json()
        assert tokens.keys() == {"access_token", "token_type", "expires_in", "scope", "refresh_token"}
        assert payload(tokens["access_token"])["aud"] == MCP
    for other in (OTHER, f"{MCP}?x=1", "nonsense"):
        refused(site.refresh(client_id, tokens["refresh_token"], resource=other), 400, "invalid_target")
    assert site.refresh(client_id, tokens["refresh_token"]).status_code == 200


def test_a_refresh_may_ask_for_less_and_not_for_more(site: Site) -> None:
    tokens = site.tokens(scope=f"{SCOPE} openid")
    fewer = site.refresh(tokens["client_id"], tokens["refresh_token"], scope=SCOPE).json()
    assert fewer["scope"] == SCOPE
    again = site.refresh(tokens["client_id"], fewer["refresh_token"]).json()
    assert again["scope"] == f"{SCOPE} openid"
    more = site.refresh(tokens["client_id"], again["refresh_token"], scope=f"{SCOPE} email")
    refused(more, 400, "invalid_scope")


def test_a_refresh_token_idle_for_thirty_days_ends(site: Site) -> None:
    tokens = site.tokens()
    site.clock.advance(29 * 86400)
    tokens = {**site.refresh(tokens["client_id"], tokens["refresh_token"]).json(), "client_id": tokens["client_id"]}
    site.clock.advance(30 * 86400)
    refused(site.refresh(tokens["client_id"], tokens["refresh_token"]), 400, "invalid_grant")


def test_a_refresh_token_is_of_no_use_to_another_client_and_that_does_not_harm_its_owner(site: Site) -> None:
    tokens, other = site.tokens(), site.client()
    refused(site.refresh(other, tokens["refresh_token"]), 400, "invalid_grant")
    assert site.refresh(tokens["client_id"], tokens["refresh_token"]).status_code == 200


def test_a_client_that_does_not_register_for_it_gets_no_refresh_token(site: Site) -> None:
    client_id = site.client(grant_types=["authorization_code"])
    tokens = site.tokens(client_id)
    assert "refresh_token" not in tokens
    refused(site.refresh(client_id, "any"), 400, "unauthorized_client")


def test_a_disabled_user_gets_no_tokens_any_more(site: Site) -> None:
    tokens = site.tokens()
    client_id, pkce = site.client(), Pkce()
    code = site.code(client_id, pkce)
    site.parts.people.disable("ada")
    refused(site.refresh(tokens["client_id"], tokens["refresh_token"]), 400, "invalid_grant")
    refused(site.exchange(client_id, code, pkce), 400, "invalid_grant")
