"""Secrets are found nowhere afterwards: no file of the state folder has them, no result, no title of a process."""

import base64
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio.to_thread import run_sync

from tests.helpers.homes import processes_of
from tests.helpers.processes import name_of
from tests.integration.environments import SHOW, Index, UvEngine, package_index

pytestmark = [pytest.mark.needs_uv, pytest.mark.case("B037")]

CANARY = "c4n4ryv4lue"


BACKEND = """
import os, zipfile
def build_wheel(folder, config=None, metadata=None):
    name = "zzlib-VERSION-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.writestr("zzlib-VERSION.dist-info/METADATA", "Metadata-Version: 2.1\\nName: zzlib\\nVersion: VERSION\\n")
        wheel.writestr("zzlib-VERSION.dist-info/WHEEL", "Wheel-Version: 1.0\\nTag: py3-none-any\\n")
        wheel.writestr("zzlib-VERSION.dist-info/RECORD", "")
    return name
"""
PROJECT = """
[project]
name = "zzlib"
version = "VERSION"
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with package_index("ann", CANARY) as index:
        index.add("zzlib", version(index))
        files = {"pyproject.toml": PROJECT, "backend.py": BACKEND}
        project = {name: text.replace("VERSION", version(index)) for name, text in files.items()}
        index.add_repository("zzlib", project, tmp_path / "repository")
        yield index


def version(index: Index) -> str:
    """Return another version for each test, so that it is installed in each."""
    return f"1.{index.port}"


def secret(index: Index, path: str = "/simple") -> str:
    return f"http://ann:{CANARY}@127.0.0.1:{index.port}{path}"


def files_with(folder: Path, text: str) -> list[str]:
    """Return the files below a folder that have a text in them, as it is or as a header of HTTP, or in their names."""
    found: list[str] = []
    written = (text.encode(), base64.b64encode(f"ann:{text}".encode()))
    for root, _folders, names in os.walk(folder):
        for name in names:
            path = Path(root, name)
            if text in str(path) or (path.is_file() and any(one in path.read_bytes() for one in written)):
                found.append(str(path.relative_to(folder)))
    return found


def titles(engine: UvEngine) -> str:
    return "\n".join(name_of(process.pid) for process in processes_of(engine.home))


async def require_no_trace(engine: UvEngine) -> None:
    assert files_with(engine.home, CANARY) == []
    found, _total = await engine.executions.newest(engine.principal, states=None, limit=99)
    assert CANARY not in repr(found)
    for execution in found:
        assert CANARY not in repr(await engine.answer(execution))
    entries = await engine.services.environments.entries(engine.principal)
    assert CANARY not in repr(entries)
    for entry in entries:
        assert CANARY not in repr(await engine.services.environments.lock(engine.principal, entry.id))


def requests_of(engine: UvEngine, index: Index) -> dict[str, dict[str, object]]:
    (engine.directory / "secrets.env").write_text(f"UV_INDEX_URL={secret(index)}\nTOKEN={CANARY}\n")
    file = f"/files/zzlib-{version(index)}-py3-none-any.whl"
    wheel = f"zzlib @ {secret(index, file)}"
    return {
        "index_url": {"index_url": secret(index), "dependencies": ["zzlib"]},
        "variable": {"env_vars": {"UV_INDEX_URL": secret(index), "TOKEN": CANARY}, "dependencies": ["zzlib"]},
        "env-file": {"env_file": "secrets.env", "dependencies": ["zzlib"]},
        "dependency": {"dependencies": [wheel]},
        "repository": {"dependencies": [f"zzlib @ git+{secret(index, '/zzlib.git')}"]},
        "constraint": {"index_url": secret(index), "dependencies": ["zzlib"], "constraints": [wheel]},
    }


@pytest.mark.parametrize(
    "where",
    [
        "index_url",
        pytest.param("variable", marks=pytest.mark.exhaustive),
        "env-file",
        pytest.param("dependency", marks=pytest.mark.exhaustive),
        "repository",
        pytest.param("constraint", marks=pytest.mark.exhaustive),
    ],
)
async def test_what_it_takes_to_install_is_used_and_forgotten(uv_engine: UvEngine, index: Index, where: str) -> None:
    request = requests_of(uv_engine, index)[where]
    index.hold()
    execution = await uv_engine.submit(SHOW, args=["zzlib"], keep_as="tools", **request)
    assert await run_sync(index.reached.wait, 20)

    assert "pyexec.environments.build" in titles(uv_engine)
    assert CANARY not in titles(uv_engine)
    assert files_with(uv_engine.home, CANARY) == []
    index.may_answer.set()
    execution = await uv_engine.wait(execution)

    assert (execution.state, await uv_engine.stdout(execution)) == ("completed", f"zzlib={version(index)}\n")
    await require_no_trace(uv_engine)
    again = await uv_engine.run(SHOW, args=["zzlib"], **request)
    assert (again.state, uv_engine.prepared(again)) == ("completed", [])
    await require_no_trace(uv_engine)


@pytest.mark.parametrize(
    "where", ["index_url", *(pytest.param(where, marks=pytest.mark.exhaustive) for where in ("env-file", "dependency"))]
)
async def test_a_failing_build_tells_no_secret(uv_engine: UvEngine, index: Index, where: str) -> None:
    request = requests_of(uv_engine, index)[where]
    index.files.clear()

    execution = await uv_engine.run("", **request)

    assert execution.state == "failed"
    assert execution.outcome is not None
    assert execution.outcome.detail
    await require_no_trace(uv_engine)


async def test_an_index_that_refuses_is_one_sentence_without_the_secret(uv_engine: UvEngine, index: Index) -> None:
    url = f"http://ann:wrong{CANARY}@127.0.0.1:{index.port}/simple"

    reason = await uv_engine.failure(index_url=url, dependencies=["zzlib"], env_vars={"UV_HTTP_RETRIES": "0"})

    assert reason == "The package index 127.0.0.1 answered 401 Unauthorized."
    await require_no_trace(uv_engine)


async def test_an_index_that_is_away_is_one_sentence_without_the_secret(uv_engine: UvEngine) -> None:
    url = f"https://{CANARY}@127.0.0.1:9/simple"

    reason = await uv_engine.failure(index_url=url, dependencies=["zzznope"], env_vars={"UV_HTTP_RETRIES": "0"})

    assert reason.startswith("127.0.0.1 cannot be reached: ")
    await require_no_trace(uv_engine)


async def test_a_new_password_is_used_at_once_and_makes_no_new_environment(uv_engine: UvEngine, index: Index) -> None:
    first = await uv_engine.run("", index_url=secret(index), dependencies=["zzlib"])
    with package_index("ann", f"{CANARY}2") as moved:
        moved.files = index.files
        url = f"http://ann:{CANARY}2@127.0.0.1:{moved.port}/simple"
        second = await uv_engine.run("", index_url=url, dependencies=["zzlib"])

    assert (await uv_engine.answer(first)).digest == (await uv_engine.answer(second)).digest
    await require_no_trace(uv_engine)
