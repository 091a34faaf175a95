"""`pyexec doctor` and `pyexec config`: what a person, or a bug report, gets to see of this machine."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.commands import Command
from tests.helpers.homes import processes_of

# Many commands, and each is a start of its own.
pytestmark = pytest.mark.timeout(120)

SECRET = "s3cr3t-of-a-person"


def doctor(
    run: Command, *options: str, status: int = 0, env: dict[str, str] | None = None
) -> dict[str, dict[str, Any]]:
    nobody = run.home.parent / "nobody"
    nobody.mkdir(exist_ok=True)
    ran = run("doctor", "--json", *options, env={"HOME": str(nobody), **(env or {})})
    assert ran.status == status, ran
    assert SECRET not in ran.stdout + ran.stderr
    said = json.loads(ran.stdout)
    assert said["ok"] is (status == 0)
    return {check["name"]: check for check in said["checks"]}


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_what_works_here_is_found_out_by_trying_and_nothing_of_it_stays(run: Command) -> None:
    before = sorted(run.home.iterdir())
    checks = doctor(run)
    assert [name for name, check in checks.items() if check["status"] == "fail"] == []
    for name in ("uv", "interpreters", "state folder", "child processes", "control group", "orphans", "a program"):
        assert name in checks
    assert any("PATH" in line or "pyenv" in line for line in checks["interpreters"]["details"])
    assert "(mode 0700)" in checks["state folder"]["message"]
    assert checks["a program"]["message"] == "It ran under a keeper, and its output was read."
    assert "package index" not in checks
    assert sorted(run.home.iterdir()) == before
    assert processes_of(run.home) == []


def test_lines_say_how_it_is_and_what_to_do(run: Command) -> None:
    run.home.chmod(0o755)
    try:
        lines = run("doctor", env={"PYEXEC_SPELT_WRONG": "1"}).stdout.splitlines()
    finally:
        run.home.chmod(0o700)
    assert "warn  settings: PYEXEC_SPELT_WRONG: no such setting." in lines
    at = lines.index(f"warn  state folder: {run.home} may be looked into by others (mode 0755).")
    assert lines[at + 1] == f"      > chmod 700 {run.home}"
    assert all(line[:6] in ("ok    ", "warn  ", "fail  ", "      ") for line in lines)


def test_what_fails_is_said_with_what_to_do_and_the_status_is_1(run: Command, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    uv = program(tmp_path / "uv", "exit 3")
    unusable = {"PYEXEC_HOME": str(tmp_path / "file" / "home"), "UV": str(uv)}
    checks = doctor(run, status=1, env=unusable)
    assert (checks["state folder"]["status"], checks["uv"]["status"]) == ("fail", "fail")
    assert checks["state folder"]["hint"] == "Set PYEXEC_HOME to a folder that you can write."
    assert checks["a program"]["status"] == "ok"
    old = program(tmp_path / "uv", "echo uv 0.1.0")
    full = {"UV": str(old), "PYEXEC_FREE_DISK_MB": "1000000000"}
    checks = doctor(run, status=1, env=full)
    assert (checks["uv"]["status"], checks["disk"]["status"]) == ("warn", "fail")
    assert checks["uv"]["message"] == f"0.1.0 at {old}"
    wrong = doctor(run, status=1, env={"PYEXEC_CONCURRENT": "many"})
    assert list(wrong) == ["settings"]
    assert "PYEXEC_CONCURRENT is 'many'" in wrong["settings"]["message"]


def test_a_state_folder_that_is_in_use_is_described(run: Command, tmp_path: Path) -> None:
    home = {"PYEXEC_HOME": str(tmp_path / "new")}
    assert doctor(run, env=home)["state folder"]["message"] == f"{tmp_path}/new is made when it is first used."
    assert not (tmp_path / "new").exists()
    run.ok("run", "--no-uv", "-c", "print('x' * 3_000_000)")
    checks = doctor(run)
    assert checks["database"]["message"] == "Schema 1."
    assert "executions: 2.9 MB" in checks["what it holds"]["details"]
    (run.home / "pyexec.db").rename(run.home / "aside")
    (run.home / "pyexec.db").write_bytes(b"nonsense " * 1000)
    try:
        assert doctor(run, status=1)["database"]["status"] == "fail"
    finally:
        (run.home / "aside").rename(run.home / "pyexec.db")


@pytest.mark.needs_uv
def test_the_package_index_is_asked_only_when_wanted(run: Command) -> None:
    assert doctor(run, "--online")["package index"]["status"] == "ok"
    nowhere = {"UV_DEFAULT_INDEX": f"http://me:{SECRET}@127.0.0.1:9/simple", "UV_HTTP_RETRIES": "0"}
    check = doctor(run, "--online", status=1, env=nowhere)["package index"]
    assert check["status"] == "fail"
    assert "127.0.0.1:9" in check["message"]


def test_clients_are_looked_into_and_a_command_that_is_gone_fails(run: Command) -> None:
    entry = {"command": "/not/there/pyexec", "args": ["serve"], "env": {"TOKEN": SECRET}}
    (run.directory / ".mcp.json").write_text(json.dumps({"mcpServers": {"pyexec": entry}}))
    try:
        check = doctor(run, status=1)["Claude Code"]
    finally:
        (run.directory / ".mcp.json").unlink()
    assert (check["status"], "/not/there/pyexec does not exist" in check["message"]) == ("fail", True)


@pytest.mark.case("B190")
def test_settings_are_shown_with_where_they_are_from_and_without_secrets(run: Command) -> None:
    env = {
        "PYEXEC_CONCURRENT": "7",
        "PYEXEC_MY_TOKEN": SECRET,
        "UV_PUBLISH_TOKEN": SECRET,
        "UV_DEFAULT_INDEX": f"https://me:{SECRET}@host/simple",
        "HTTPS_PROXY": f"http://me:{SECRET}@proxy:8080",
        "OTHER_TOKEN": SECRET,
    }
    ran = run("config", "show", "--json", env=env)
    assert SECRET not in ran.stdout + ran.stderr
    said = json.loads(ran.stdout)
    rows = {row["name"]: (row["value"], row["from"]) for row in said["settings"] + said["environment"]}
    assert rows["PYEXEC_CONCURRENT"] == ("7", "variable")
    assert rows["PYEXEC_WAIT_SECONDS"] == ("20", "default")
    assert rows["PYEXEC_HOME"] == (str(run.home), "variable")
    assert rows["UV_PUBLISH_TOKEN"] == ("***", "variable")
    assert rows["UV_DEFAULT_INDEX"] == ("https://***@host/simple", "variable")
    assert rows["HTTPS_PROXY"] == ("http://***@proxy:8080", "variable")
    assert "OTHER_TOKEN" not in rows
    assert said["unknown"] == ["PYEXEC_MY_TOKEN"]
    words = run("config", "show", env=env).stdout
    assert SECRET not in words
    assert f"{'PYEXEC_CONCURRENT':32} 7  (variable)" in words.splitlines()


def test_paths_say_where_things_lie(run: Command) -> None:
    found = json.loads(run.ok("config", "paths", "--json"))
    assert (found["state"], found["log"]) == (str(run.home), str(run.home / "logs" / "pyexec.log"))
    assert run.ok("config", "paths").splitlines()[0] == f"state         {run.home}"


@pytest.mark.case("B190")
@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--env", f"API_TOKEN={SECRET}"], "the value of API_TOKEN"),
        (["--env", f"WHERE=https://me:{SECRET}@host/"], "the value of WHERE"),
        (["--no-uv", "--env", "MODE=test"], None),
        (["--index-url", f"https://me:{SECRET}@127.0.0.1:9/simple", "--detach"], "a password in --index-url"),
    ],
)
def test_a_secret_on_the_command_line_is_warned_of_and_not_repeated(
    run: Command, options: list[str], what: str | None
) -> None:
    ran = run("run", *options, "-c", "print('ran')")
    assert ran.status == 0
    assert SECRET not in ran.stdout + ran.stderr
    said = f"warning: {what} can be read by others in the list of processes; " if what else ""
    assert ran.stderr.startswith(said)
    assert bool(ran.stderr) is bool(what)
