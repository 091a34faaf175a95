"""Both container files with a real engine: built, run as they are meant to be, and as they are not."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from fastmcp import Client
from fastmcp.utilities.http import find_available_port

from tests.containers.engine import ROOT, Container, Engine
from tests.helpers.waiting import eventually
from tests.idp.clicking import ClickingOAuth
from tests.idp.site import CHEAP, PASSWORD

pytestmark = [pytest.mark.containers, pytest.mark.timeout(1200)]

FILTER = f"--security-opt=seccomp={ROOT / 'deploy/server/seccomp.json'}"
WAIVED = "--env=PYEXEC_SANDBOX_WAIVE=memory,cpu"
GROUPS = ("--user=0", "--cap-add=SYS_ADMIN", "--cgroupns=host", "--volume=/sys/fs/cgroup:/sys/fs/cgroup:rw")
DOCTOR = ("doctor", "--wall", "bubblewrap", "--json")


@pytest.fixture(scope="module")
def provider(engine: Engine) -> Iterator[tuple[Container, str]]:
    """The identity provider below a path, as the user that its image says."""
    port = find_available_port()
    issuer = f"http://127.0.0.1:{port}/id"
    options = [f"--env=PYEXEC_IDP_{name}" for name in (f"ISSUER={issuer}", f"PORT={port}", "HOST=127.0.0.1")]
    options += [f"--env={name}={value}" for name, value in CHEAP.items()]
    with engine.serving(engine.image("identity-provider"), options=["--health-interval=1s", *options]) as container:
        container.wait_until_healthy()
        container.ok("pyexec-idp", "users", "add", "ada", "--password-stdin", stdin=f"{PASSWORD}\n")
        yield container, issuer


def test_the_provider_is_healthy_as_an_ordinary_user_and_shows_its_sign_in_page(
    provider: tuple[Container, str],
) -> None:
    container, issuer = provider
    assert container.ok("id", "-u").strip() == "10001"
    page = httpx2.get(f"{issuer}/account")
    assert (page.status_code, "<title>Sign in" in page.text) == (200, True)
    assert "ada" in container.ok("pyexec-idp", "users", "list")
    assert PASSWORD not in container.said()


@pytest.mark.filterwarnings("ignore:Using in-memory token storage")
async def test_a_person_signs_in_and_runs_code_in_a_sandbox_within_the_servers_container(
    engine: Engine, provider: tuple[Container, str]
) -> None:
    idp, issuer = provider
    port = find_available_port()
    url = f"http://127.0.0.1:{port}/mcp"
    scopes = ("python:execute", "jobs:read")
    idp.ok("pyexec-idp", "resources", "add", url, *(word for one in scopes for word in ("--scope", f"{one}=Run code")))
    options = [
        *(FILTER, engine.whole_proc, WAIVED, "--cap-drop=ALL", "--security-opt=no-new-privileges"),
        f"--env=PYEXEC_AUTH_ISSUERS={issuer}",
        f"--env=PYEXEC_AUTH_RESOURCE={url}",
        "--env=PYEXEC_SANDBOX_PACKAGES=ipython",
    ]
    with engine.serving(
        engine.image("server"), "serve", "--http", f"127.0.0.1:{port}", options=["--health-cmd=true", *options]
    ) as server:
        await _until_ready(server, port)
        assert httpx2.post(url, json={}).status_code == 401
        async with Client(url, auth=ClickingOAuth(url)) as client:
            code = "import os\n(sum(range(10)), os.getuid(), os.listdir('/work'))"
            answer = (await client.call_tool("execute_python", {"code": code, "wait_seconds": 600})).structured_content
        assert answer is not None
        assert answer["status"] == "completed", (answer, server.said())
        assert "(45, 1000, [])" in json.dumps(answer)
        assert "processor time" in json.dumps(answer)  # What is not held is said.


def test_without_options_an_engine_keeps_the_wall_from_coming_up_and_doctor_says_what_to_add(engine: Engine) -> None:
    found = _doctor(engine)
    assert found["wall"]["status"] == "fail"
    name = "Podman" if engine.is_podman else "Docker"
    seccomp, masked = found["wall.obstacle.seccomp"], found["wall.obstacle.proc-masked"]
    assert (name in seccomp["message"], "--security-opt seccomp=unconfined" in seccomp["hint"]) == (True, True)
    assert engine.whole_proc.replace("=", " ", 1) in masked["hint"]
    assert "PYEXEC_SANDBOX_WAIVE=memory,cpu" in found["wall.obstacle.cgroup-read-only"]["hint"]


def test_as_an_ordinary_user_with_the_filter_that_comes_along_everything_else_is_held(engine: Engine) -> None:
    narrow = ("--cap-drop=ALL", "--security-opt=no-new-privileges", "--read-only", "--tmpfs=/tmp")
    for options in ((), narrow):
        found = _doctor(engine, FILTER, engine.whole_proc, WAIVED, *options)
        assert _not_ok(found, "fail") == set()
        assert _not_ok(found, "warn") == {
            *("control-group", "wall.control-groups", "wall.workspaces", "wall.user"),
            *("wall.memory-together", "wall.memory-shared", "wall.processor"),
        }


def test_as_root_with_the_machines_control_groups_every_limit_is_held(engine: Engine) -> None:
    found = _doctor(engine, FILTER, engine.whole_proc, *GROUPS)
    assert _not_ok(found, "fail") == set()
    assert _not_ok(found, "warn") == {"wall.workspaces"}


async def _until_ready(server: Container, port: int) -> None:
    async with httpx2.AsyncClient() as client:

        async def ready() -> bool:
            try:
                return (await client.get(f"http://127.0.0.1:{port}/readyz")).status_code == 200
            except httpx2.TransportError:
                return False

        await eventually(ready, what=f"the server: {server.said()}")


def _doctor(engine: Engine, *options: str) -> dict[str, dict[str, Any]]:
    done = engine.once(engine.image("server"), *DOCTOR, options=options)
    assert done.stdout, done.stderr
    return {check["id"]: check for check in json.loads(done.stdout)["checks"]}


def _not_ok(found: dict[str, dict[str, Any]], status: str) -> set[str]:
    return {key for key, check in found.items() if check["status"] == status}
