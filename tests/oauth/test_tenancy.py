"""Somebody else's things are answered as things that do not exist, by every tool and resource, byte for byte."""

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.waiting import eventually
from tests.oauth.site import Site, message_in, serving

NAMES = {"job_id", "script_name", "environment", "session_id"}
"""Arguments that name something which belongs to somebody."""

HARMLESS = {
    # What to run, and how.
    *("args", "code", "compare", "constraints", "dependencies", "description", "env_file", "env_vars", "formatter"),
    *("index_url", "job_label", "mode", "module", "python_version", "requires_python", "script_content", "source"),
    *("content", "encoding", "format", "packages", "pattern", "show", "stdin", "status_filter", "tools"),
    # Places on this machine: for tools of the host wall, which a service does not have.
    *("directory", "path", "script_path"),
    # What the caller makes up: names something of the caller's own; see below.
    *("name", "request_id", "cursor"),
}
FILL = {"source": "1", "code": "1", "directory": "/tmp", "script_content": "1", "wait_seconds": 0}


@dataclass(frozen=True)
class Owned:
    """What one user has, by the argument that names it: with something like it that nobody has."""

    site: Site
    job_id: str
    artifact: str
    script_name: str
    environment: str
    digest: str

    def token(self, who: str) -> str:
        return self.site.key.token(self.site.url, subject=who)

    def pairs(self) -> Iterator[tuple[str, str, str]]:
        yield "job_id", self.job_id, _unlike(self.job_id)
        yield "session_id", "of-ada", "nobodys"  # See also the tests of sessions of two users.
        yield "script_name", self.script_name, "nobodys"
        yield "environment", self.environment, "nothing"
        yield "environment", self.digest, _unlike(self.digest)
        yield "environment", self.digest[:8], _unlike(self.digest[:8])


def _unlike(name: str) -> str:
    """Another name of the same form."""
    return name[:-1] + ("0" if name[-1] != "0" else "1")


@pytest.fixture(scope="module")
async def owned(module_home: Path) -> AsyncIterator[Owned]:
    async with serving(module_home, sandboxed=True) as site:
        ada = site.key.token(site.url, subject="ada")
        ran = await site.call(
            ada, "benchmark_script", script_content="print('of ada')", runs=1, warmup=0, wait_seconds=100
        )
        assert ran["structuredContent"]["status"] == "completed", ran
        saved = await site.call(ada, "save_script", script_name="of-ada-1", source="print('ada')")
        assert not saved.get("isError"), saved
        made = await site.call(ada, "create_environment", name="of-adas", dependencies=[], wait_seconds=100)
        assert not made.get("isError"), made
        found = (await site.call(ada, "list_environments"))["structuredContent"]["environments"]
        (digest,) = (one["id"] for one in found if "of-adas" in one["names"])
        yield Owned(
            site=site,
            job_id=ran["structuredContent"]["job_id"],
            artifact="samples.jsonl",
            script_name="of-ada-1",
            environment="of-adas",
            digest=digest,
        )


async def tools(owned: Owned) -> list[dict[str, Any]]:
    answer = await owned.site.rpc(owned.token("bob"), "tools/list")
    return message_in(answer)["result"]["tools"]


async def test_every_argument_is_known_to_name_something_or_not(owned: Owned) -> None:
    found = {
        name
        for tool in await tools(owned)
        for name, schema in tool["inputSchema"]["properties"].items()
        if schema.get("type") not in {"boolean", "number", "integer"}
    }
    assert found - NAMES - HARMLESS == set()


async def _answer(owned: Owned, tool: dict[str, Any], argument: str, name: str) -> str:
    """What a stranger is answered, with the name taken out."""
    properties = tool["inputSchema"]["properties"]
    required = tool["inputSchema"].get("required", [])
    given = {
        key: value for key, value in FILL.items() if key in properties and (key in required or argument != "job_id")
    }
    if argument == "job_id":
        given = {key: value for key, value in given.items() if key in required}
    call = {"name": tool["name"], "arguments": {**given, argument: name}}
    answer = await owned.site.rpc(owned.token("bob"), "tools/call", call)
    return f"{answer.status_code} {json.dumps(message_in(answer))}".replace(name, "<name>")


async def test_no_tool_knows_what_belongs_to_somebody_else(owned: Owned) -> None:
    walked: set[str] = set()
    for tool in await tools(owned):
        for argument, foreign, unknown in owned.pairs():
            if argument not in tool["inputSchema"]["properties"]:
                continue
            walked.add(tool["name"])
            if (tool["name"], argument) in {("save_script", "script_name"), ("execute_python", "session_id")}:
                continue  # Makes one of that name for the caller.
            theirs = await _answer(owned, tool, argument, foreign)
            assert theirs == await _answer(owned, tool, argument, unknown), tool["name"]
            assert 'isError": true' in theirs, (tool["name"], theirs)
    assert len(walked) >= 14


async def test_no_sandbox_runs_on_an_environment_of_somebody_else(owned: Owned) -> None:
    for tool in await tools(owned):
        properties = tool["inputSchema"]["properties"]
        if "environment" not in properties or not {"sandboxed", "session_id"} & properties.keys():
            continue
        asked = {"sandboxed": True} if "sandboxed" in properties else {"session_id": "of-bob"}
        given = {**{key: value for key, value in FILL.items() if key in properties}, **asked}
        answers: list[str] = []
        for name in (owned.environment, "nothing"):
            call = {"name": tool["name"], "arguments": {**given, "environment": name}}
            answer = await owned.site.rpc(owned.token("bob"), "tools/call", call)
            answers.append(f"{answer.status_code} {answer.text}".replace(name, "<name>"))
        assert answers[0] == answers[1], tool["name"]
        assert "There is no environment '<name>'; there are: none." in answers[0], (tool["name"], answers[0])
    listed = await owned.site.call(owned.token("bob"), "list_sessions")
    assert not listed["structuredContent"].get("sessions")


async def test_no_list_shows_what_belongs_to_somebody_else(owned: Owned) -> None:
    for tool in await tools(owned):
        if set(tool["inputSchema"].get("required", [])) or tool["name"].startswith(("run_", "execute")):
            continue
        if not tool["annotations"].get("readOnlyHint") and tool["name"] not in {"cleanup_jobs", "py_prune_jobs"}:
            continue
        more = {"include_autosaved": True} if tool["name"] == "py_list_scripts" else {}
        for markdown in (True, False):
            arguments = {**more, "markdown_output": markdown}
            answer = await owned.site.rpc(
                owned.token("eve"), "tools/call", {"name": tool["name"], "arguments": arguments}
            )
            for secret in (owned.job_id, owned.script_name, owned.environment, owned.digest, "of ada"):
                assert secret not in answer.text, tool["name"]


async def test_no_resource_knows_what_belongs_to_somebody_else(owned: Owned) -> None:
    unknown = _unlike(owned.job_id)
    for uri in ("job-stream://{}", f"job-file://{{}}/{owned.artifact}"):
        mine = await owned.site.rpc(owned.token("ada"), "resources/read", {"uri": uri.format(owned.job_id)})
        assert "error" not in message_in(mine), mine.text
        answers = [
            await owned.site.rpc(owned.token("bob"), "resources/read", {"uri": uri.format(one)})
            for one in (owned.job_id, unknown)
        ]
        theirs, nobodys = (
            (one.status_code, one.text.replace(name, "<name>"))
            for one, name in zip(answers, (owned.job_id, unknown), strict=True)
        )
        assert theirs == nobodys
    listed = await owned.site.rpc(owned.token("bob"), "resources/list")
    assert owned.job_id not in listed.text


async def test_what_the_caller_makes_up_is_the_callers_own(owned: Owned) -> None:
    """The same request id, and a cursor into somebody else's output."""
    site, ran = owned.site, {}
    for who in ("ada", "bob"):
        source = {"directory": str(site.work), "script_content": f"print('of {who}')", "use_uv": False}
        answer = await site.call(owned.token(who), "run_script_in_dir", **source, request_id="r1")
        assert answer["structuredContent"]["stdout"] == f"of {who}\n"
        ran[who] = answer["structuredContent"]["job_id"]
    status = await site.call(owned.token("ada"), "py_job_status", job_id=owned.job_id)
    cursor = status["structuredContent"]["next_cursor"]
    for one in (owned.job_id, _unlike(owned.job_id)):
        answer = await site.call(owned.token("bob"), "py_job_status", job_id=one, cursor=cursor)
        assert answer["isError"]
    assert "of ada" not in json.dumps(await site.call(owned.token("bob"), "py_job_status", job_id=ran["bob"]))


async def test_nobody_ends_or_removes_what_belongs_to_somebody_else(owned: Owned) -> None:
    site, ada, bob = owned.site, owned.token("ada"), owned.token("bob")
    started = await site.call(
        ada,
        "run_script_in_dir",
        directory=str(site.work),
        script_content="import time; time.sleep(300)",
        use_uv=False,
        async_mode=True,
    )
    job_id = started["structuredContent"]["job_id"]
    for tool in ("kill_job", "py_cancel_job"):
        assert (await site.call(bob, tool, job_id=job_id))["isError"]
    await site.call(bob, "py_prune_jobs", keep_completed=False, keep_failed=False)
    await site.call(bob, "cleanup_jobs", max_age_hours=0)
    await site.call(bob, "remove_environment", environment=owned.digest)
    listed = (await site.call(ada, "py_list_jobs"))["structuredContent"]["jobs"]
    assert {job["id"] for job in listed} >= {job_id, owned.job_id}
    assert next(job["status"] for job in listed if job["id"] == job_id) in {"pending", "running"}
    await site.call(ada, "kill_job", job_id=job_id)

    async def ended() -> bool:
        found = await site.call(ada, "py_job_status", job_id=job_id)
        return found["structuredContent"]["job"]["status"] == "cancelled"

    await eventually(ended)
    assert owned.environment in json.dumps(await site.call(ada, "list_environments"))
