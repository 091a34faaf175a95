"""What is found out about a machine where something is wrong."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from pyexec.app.diagnosis import programs
from pyexec.app.diagnosis.checks import Check
from pyexec.app.diagnosis.doctor import examine
from pyexec.app.diagnosis.programs import check_index, check_uv
from pyexec.app.diagnosis.state import check_engine, check_state_folder
from pyexec.settings import Settings, load_settings
from tests.helpers.homes import environment
from tests.integration.engine import Engine

SECRET = "s3cr3t-of-a-person"


def settings(home: Path, env: Mapping[str, str] | None = None) -> Settings:
    return load_settings(environment(home, {"HOME": str(home.parent / "nobody"), **(env or {})}), directory=home.parent)


def by_name(*checks: Check) -> dict[str, Check]:
    assert SECRET not in repr(checks)
    return {check.name: check for check in checks}


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_state_folder_that_cannot_be_made_or_has_no_room_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "home").mkdir(mode=0o700)
    unusable = {"PYEXEC_HOME": str(tmp_path / "file" / "home")}
    (check,) = check_state_folder(settings(tmp_path, unusable))
    assert (check.status, check.hint) == ("fail", "Set PYEXEC_HOME to a folder that you can write.")
    (check,) = check_state_folder(settings(tmp_path / "new"))
    assert (check.status, check.message) == ("ok", f"{tmp_path}/new is made when it is first used.")
    assert not (tmp_path / "new").exists()
    found = by_name(*check_state_folder(settings(tmp_path / "home", {"PYEXEC_FREE_DISK_MB": "1000000000"})))
    assert (found["state folder"].status, found["disk"].status) == ("ok", "fail")
    assert found["database"].message == "It is made when it is first used."


async def test_a_state_folder_that_is_in_use_is_described(make_engine: Callable[..., Engine]) -> None:
    engine = make_engine()
    await engine.run("print('x' * 3_000_000)")
    database = engine.home / "pyexec.db"
    found = by_name(*check_state_folder(settings(engine.home)))
    assert found["database"].message == "Schema 2."
    assert "executions: 2.9 MB" in found["what it holds"].details
    engine.close()
    database.rename(engine.home / "aside")
    database.write_bytes(b"nonsense " * 1000)
    assert by_name(*check_state_folder(settings(engine.home)))["database"].status == "fail"
    (engine.home / "aside").rename(database)


@pytest.mark.parametrize(
    ("text", "status", "message"), [("exit 3", "fail", "does not work."), ("echo uv 0.1.0", "warn", "0.1.0 at ")]
)
def test_a_uv_that_does_not_work_or_is_too_old_is_told(
    state_home: Path, tmp_path: Path, text: str, status: str, message: str
) -> None:
    check = check_uv(settings(state_home, {"UV": str(program(tmp_path / "uv", text))}))
    assert check.status == status
    assert message in check.message
    assert check.hint is not None


async def test_when_no_program_can_be_run_it_is_said_why(state_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = state_home.parent / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    wrong = settings(state_home, {"PYEXEC_FREE_DISK_MB": "1000000000"})
    check = await check_engine(wrong)
    assert check.status == "fail"
    assert "1000000000 MB are needed" in check.message
    assert list(temporary.iterdir()) == []


@pytest.mark.needs_uv
def test_the_package_index_is_asked_the_way_environments_are_made(state_home: Path) -> None:
    assert check_index(settings(state_home)).status == "ok"
    nowhere = {"UV_DEFAULT_INDEX": f"http://me:{SECRET}@127.0.0.1:9/simple", "UV_HTTP_RETRIES": "0"}
    check = by_name(check_index(settings(state_home, nowhere)))["package index"]
    assert (check.status, "127.0.0.1:9" in check.message) == ("fail", True)


@pytest.mark.exhaustive
async def test_client_configurations_are_among_what_is_looked_at(state_home: Path) -> None:
    entry = f'{{"mcpServers": {{"mine": {{"command": "/not/there/pyexec", "env": {{"TOKEN": "{SECRET}"}}}}}}}}'
    (state_home.parent / ".mcp.json").write_text(entry)
    found = by_name(*await examine(settings(state_home), online=False))
    assert found["Claude Code"].status == "fail"
    assert "/not/there/pyexec does not exist" in found["Claude Code"].message


def test_what_a_keeper_cannot_do_here_is_told_with_what_that_means(
    state_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = """import json; print(json.dumps({"control_group": False, "adopts_orphans": False}))"""
    monkeypatch.setattr(programs, "_FACILITIES", ("-c", nothing))
    group, adopts = programs.check_facilities(settings(state_home))
    assert (group.status, adopts.status) == ("warn", "warn")
    assert "found by its descent" in group.message
    monkeypatch.setattr(programs, "_FACILITIES", ("-c", "raise SystemExit(1)"))
    (check,) = programs.check_facilities(settings(state_home))
    assert (check.name, check.status) == ("keeper", "fail")
