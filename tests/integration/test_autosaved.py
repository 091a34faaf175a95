"""Inline code is kept, beside the run and never in its way."""

import hashlib
import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest

from pyexec.domain.errors import NotFoundError
from pyexec.domain.principals import Principal
from pyexec.scripts.autosaved import RUNS_KEPT, AutosavedScripts
from pyexec.storage.state_folder import StateFolder
from tests.integration.conftest import MakeEngine
from tests.integration.engine import Engine

DAY = 24 * 3600.0


def names(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.py"))


def sidecar(folder: Path, name: str) -> dict[str, object]:
    return json.loads((folder / f"{name}.json").read_bytes())


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    return StateFolder(tmp_path)


@pytest.fixture
def owner() -> str:
    return Principal(issuer="local", subject="1000").key


@pytest.fixture
def kept(state: StateFolder, owner: str) -> Path:
    return state.autosaved_scripts(owner)


def keep(autosaved: AutosavedScripts, owner: str, *sources: str, days_ago: float = 0) -> None:
    """Keep sources, as if they had been run some days ago, each a second after the one before."""
    for number, source in enumerate(sources):
        before = set(names(autosaved._folder.autosaved_scripts(owner)))
        autosaved.keep(owner, source.encode(), {"job_id": source, "at": 0})
        folder = autosaved._folder.autosaved_scripts(owner)
        for name in set(names(folder)) - before:
            for suffix in (".py", ".json"):
                path = folder / f"{name}{suffix}"
                at = path.stat().st_mtime - days_ago * DAY + number
                os.utime(path, (at, at))


def test_the_same_source_is_one_file_that_knows_its_latest_runs(state: StateFolder, owner: str, kept: Path) -> None:
    autosaved = AutosavedScripts(state, most=10)
    for number in range(RUNS_KEPT + 5):
        autosaved.keep(owner, b"print()", {"job_id": f"{number}"})
    autosaved.keep(owner, b"print(1)", {"job_id": "other"})
    assert len(names(kept)) == 2
    (told,) = [one for name in names(kept) if (one := sidecar(kept, name))["runs_in_all"] != 1]
    assert told["runs_in_all"] == RUNS_KEPT + 5
    assert told["runs"] == [{"job_id": f"{number}"} for number in reversed(range(5, RUNS_KEPT + 5))]


def test_runs_that_are_noted_together_are_told_as_if_each_had_been_by_itself(
    state: StateFolder, owner: str, kept: Path
) -> None:
    autosaved = AutosavedScripts(state, most=10)
    autosaved.keep(owner, b"print()", {"job_id": "0"})
    autosaved.keep(owner, b"print()", *({"job_id": f"{number}"} for number in range(1, 4)))
    autosaved.keep(owner, b"print(1)", *({"job_id": f"{number}"} for number in range(50)))
    told = [sidecar(kept, name) for name in names(kept)]
    (few, many) = sorted(told, key=lambda one: str(one["runs_in_all"]))
    assert (few["runs_in_all"], few["runs"]) == (4, [{"job_id": f"{number}"} for number in (3, 2, 1, 0)])
    assert (many["runs_in_all"], many["runs"]) == (50, [{"job_id": f"{number}"} for number in range(49, 29, -1)])


def test_many_runs_of_one_source_at_once_are_all_counted(state: StateFolder, owner: str, kept: Path) -> None:
    autosaved = AutosavedScripts(state, most=10)
    threads = [threading.Thread(target=autosaved.keep, args=(owner, b"print()", {"job_id": "x"})) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (name,) = names(kept)
    assert sidecar(kept, name)["runs_in_all"] == 16
    assert sorted(path.name for path in kept.iterdir()) == [".gitignore", f"{name}.json", f"{name}.py"]


def test_what_somebody_left_in_its_place_is_put_right(
    state: StateFolder, owner: str, kept: Path, tmp_path: Path
) -> None:
    autosaved = AutosavedScripts(state, most=10)
    autosaved.keep(owner, b"print()", {"job_id": "1"})
    (name,) = names(kept)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("print() # not mine")
    for left in ("[]", '{"runs": 3, "runs_in_all": "many"}', "[" * 100_000, '{"runs": [1, {"job_id": 2}]}'):
        (kept / f"{name}.json").write_text(left)
        (kept / f"{name}.py").unlink()
        (kept / f"{name}.py").symlink_to(elsewhere)
        autosaved.keep(owner, b"print()", {"job_id": "2"})
        assert sidecar(kept, name)["runs"][0] == {"job_id": "2"}  # type: ignore[index]
        assert (kept / f"{name}.py").read_bytes() == b"print()"
        assert not (kept / f"{name}.py").is_symlink()
    assert elsewhere.read_text() == "print() # not mine"


def test_what_was_not_run_for_long_is_removed_and_counted(state: StateFolder, owner: str, kept: Path) -> None:
    autosaved = AutosavedScripts(state, most=10)
    keep(autosaved, owner, "old = 1", "old = 2", days_ago=20)
    keep(autosaved, owner, "new = 1")
    (kept / "mine.py").write_text("a person's own")
    size = sum(path.stat().st_size for path in kept.iterdir() if path.stat().st_mtime < os.stat(kept).st_mtime - DAY)
    assert autosaved.remove_older_than(owner, 14 * DAY, dry_run=True) == (2, size)
    assert len(names(kept)) == 4
    assert autosaved.remove_older_than(owner, 14 * DAY) == (2, size)
    assert autosaved.remove_older_than(owner, 14 * DAY) == (0, 0)
    assert len(names(kept)) == 2
    assert autosaved.remove_older_than("nobody", 0) == (0, 0)


def test_the_sweep_removes_for_every_owner_what_is_old_or_too_much(state: StateFolder, owner: str, kept: Path) -> None:
    autosaved = AutosavedScripts(state, most=2)
    other = Principal(issuer="https://id.example", subject="1").key
    for somebody in (owner, other):
        keep(autosaved, somebody, "old = 1", days_ago=20)
        keep(autosaved, somebody, "new = 1", "new = 2", "new = 3")
    (kept / ".3f.py.77-1").write_text("half-written by one that was killed")
    os.utime(kept / ".3f.py.77-1", (0, 0))
    assert autosaved.sweep(14 * DAY) == 4
    for somebody in (owner, other):
        folder = state.autosaved_scripts(somebody)
        assert sorted((folder / f"{name}.py").read_text() for name in names(folder)) == ["new = 2", "new = 3"]
    assert not (kept / ".3f.py.77-1").exists()


async def test_every_owner_sees_their_own(state: StateFolder, owner: str) -> None:
    autosaved = AutosavedScripts(state, most=10)
    me, other = Principal(issuer="local", subject="1000"), Principal(issuer="https://id.example", subject="1")
    keep(autosaved, other.key, "secret = 1")
    (entry,) = await autosaved.entries(other, 10)
    assert await autosaved.entries(me, 10) == []
    with pytest.raises(NotFoundError) as theirs:
        await autosaved.source(me, entry.name)
    with pytest.raises(NotFoundError) as unknown:
        await autosaved.source(me, "0" * 16)
    assert theirs.value.sentence().replace(entry.name, "0" * 16) == unknown.value.sentence()


async def test_a_run_is_none_the_worse_when_its_code_cannot_be_kept(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    (engine.home / "autosaved_scripts").write_text("in the way")
    execution = await engine.run("print('ran')")
    assert (execution.state, await engine.stdout(execution)) == ("completed", "ran\n")
    assert await engine.services.autosaved.entries(engine.principal, 10) == []
    assert f"the code of job {execution.id} could not be autosaved" in caplog.text


async def test_neither_the_call_nor_the_run_waits_for_the_code_to_be_kept(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go = threading.Event(), threading.Event()
    keep_now = engine.services.autosaved.keep

    def keep_slowly(owner: str, source: bytes, *runs: Mapping[str, object]) -> None:
        begun.set()
        assert go.wait(20)
        keep_now(owner, source, *runs)

    monkeypatch.setattr(engine.services.autosaved, "keep", keep_slowly)
    execution = await engine.run("print('kept')")
    assert await anyio.to_thread.run_sync(begun.wait, 20), "it is kept though nobody asks for it"
    go.set()
    (entry,) = await engine.services.autosaved.entries(engine.principal, 10)
    assert entry.path.read_text() == "print('kept')"
    assert entry.last_job_id == execution.id


async def test_whoever_reads_sees_all_that_was_started_before_the_latest_run_first(engine: Engine) -> None:
    codes = [f"print({number % 3})" for number in range(7)]
    started = [await engine.submit(code) for code in codes]

    entries = await engine.services.autosaved.entries(engine.principal, 10)

    assert [(one.path.read_text(), one.runs, one.last_job_id) for one in entries] == [
        ("print(0)", 3, started[6].id),
        ("print(2)", 2, started[5].id),
        ("print(1)", 2, started[4].id),
    ]
    more = await engine.submit("print('more')")
    name = hashlib.sha256(b"print('more')").hexdigest()[:16]
    _path, source, told = await engine.services.autosaved.source(engine.principal, name)
    assert (source, told["runs"][0]["job_id"]) == ("print('more')", more.id)
    await engine.submit("print('last')")
    assert engine.services.autosaved.remove_older_than(engine.principal.key, 0, dry_run=True)[0] == 5
    for execution in [*started, more]:
        await engine.wait(execution)


async def test_what_was_started_is_kept_when_the_server_ends(engine: Engine) -> None:
    execution = await engine.submit("print('kept')")
    engine.close()
    (name,) = names(engine.home / "autosaved_scripts")
    assert sidecar(engine.home / "autosaved_scripts", name)["runs"][0]["job_id"] == execution.id  # type: ignore[index]
    await engine.wait(execution)


async def test_an_operator_can_have_nothing_kept(make_engine: MakeEngine) -> None:
    engine = make_engine(autosaved_scripts=0)
    await engine.run("print('not kept')")
    assert await engine.services.autosaved.entries(engine.principal, 10) == []
    assert not (engine.home / "autosaved_scripts").exists()
