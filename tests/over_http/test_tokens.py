"""With authorization set, nothing but health is told to who has no token."""

from tests.helpers.homes import temporary_home
from tests.helpers.over_http import headers, request, serve
from tests.helpers.waiting import eventually


async def test_every_route_asks_for_a_token_and_takes_the_one_of_development_mode() -> None:
    env = {"PYEXEC_AUTH_DEVELOPMENT": "yes", "PYEXEC_METRICS_TOKEN": "metrics-token-0123456789"}
    with temporary_home() as home:
        async with serve(home, options=["--toolsets", "jobs"], env=env) as server, server.http() as http:
            events = f"/executions/{'0' * 32}/events"
            refused = [
                await http.post("/mcp", json=request("tools/list"), headers=headers("tools/list")),
                await http.get(events),
            ]
            assert [one.status_code for one in refused] == [401, 401]
            assert all(one.headers["www-authenticate"].startswith("Bearer") for one in refused)
            # Nobody gives out tokens for it, so nothing leads to metadata that there are not.
            assert not any("resource_metadata" in one.headers["www-authenticate"] for one in refused)
            assert (await http.get("/.well-known/oauth-protected-resource/mcp")).status_code == 404
            assert (await http.get("/healthz")).status_code == 200
            said = await eventually(lambda: server.said().partition("A token to try it out with: ")[2].split())
            bearer = {"Authorization": f"Bearer {said[0]}"}
            listed = await http.post("/mcp", json=request("tools/list"), headers={**headers("tools/list"), **bearer})
            assert "py_job_status" in listed.text
            assert (await http.get(events, headers=bearer)).status_code == 404
            assert (await http.get("/metrics", headers=bearer)).status_code == 401
            told = await http.get("/metrics", headers={"Authorization": f"Bearer {env['PYEXEC_METRICS_TOKEN']}"})
            assert told.status_code == 200
