"""A service whose database server is not there for a while."""

from pathlib import Path

import httpx2
import pytest

from tests.helpers.homes import temporary_home
from tests.helpers.over_http import Server, serve
from tests.helpers.postgres import ENCODED, PASSWORD, postgres_server
from tests.helpers.waiting import eventually


async def readiness(http: httpx2.AsyncClient) -> tuple[int, str]:
    answer = await http.get("/readyz")
    return answer.status_code, answer.json()["status"]


def written(home: Path, server: Server) -> str:
    files = [path for path in home.rglob("*") if path.is_file()]
    return server.said() + "".join(path.read_text("utf-8", "replace") for path in files)


@pytest.mark.exhaustive
async def test_it_says_that_it_takes_no_work_refuses_it_with_the_reason_and_goes_on_by_itself() -> None:
    with postgres_server() as database, temporary_home() as home:
        env = {"PYEXEC_DATABASE_URL": database.database()}
        database.stop()
        async with (
            serve(home, options=["--toolsets", "core,jobs"], env=env) as server,
            server.http() as http,
            server.client() as client,
        ):

            async def becomes(status: int, what: str) -> None:
                async def is_so() -> bool:
                    return await readiness(http) == (status, what)

                await eventually(is_so, what=f"readiness {status}")

            await becomes(503, "records_unavailable")
            assert (await http.get("/healthz")).status_code == 200
            database.start()
            await becomes(200, "ready")
            call = {"directory": str(server.directory), "script_content": "print(6 * 7)", "use_uv": False}
            answer = await client.call_tool("run_script_in_dir", call)
            job = (answer.structured_content or {})["job_id"]

            database.kill()
            await becomes(503, "records_unavailable")
            refused = await client.call_tool("run_script_in_dir", call, raise_on_error=False)
            assert refused.is_error
            assert "records_unavailable" in str(refused)
            events = await http.get(f"/executions/{job}/events")
            assert (events.status_code, events.json()["error_code"]) == (503, "records_unavailable")

            database.start()
            await becomes(200, "ready")
            again = await client.call_tool("get_job_output", {"job_id": job})
            assert "42" in str(again.structured_content)
            text = written(home, server)
        assert "does not answer" in text
        assert "answers again" in text
        for secret in (PASSWORD, ENCODED):
            assert secret not in text
