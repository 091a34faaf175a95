"""`pyexec doctor` and `pyexec config`: what a person, or a bug report, gets to see of this machine."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.helpers.commands import Command
from tests.helpers.homes import processes_of, temporary_home

# Many commands, and each is a start of its own.

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


@pytest.fixture(scope="module")
def run() -> Iterator[Command]:
    """The command line, on a state folder that nobody has used yet."""
    with temporary_home(used=False) as home:
        work = home.parent / "work"
        work.mkdir()
        yield Command(home, work)


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


def test_a_setting_that_is_wrong_is_the_first_thing_to_be_said_and_the_status_is_1(run: Command) -> None:
    wrong = doctor(run, status=1, env={"PYEXEC_CONCURRENT": "many"})
    assert list(wrong) == ["settings"]
    assert "PYEXEC_CONCURRENT is 'many'" in wrong["settings"]["message"]


@pytest.mark.case("B190")
def test_settings_are_shown_with_where_they_are_from_and_without_secrets(run: Command) -> None:
    env = {
        "PYEXEC_CONCURRENT": "7",
        "PYEXEC_MY_TOKEN": SECRET,
        "UV_PUBLISH_TOKEN": SECRET,
        "UV_DEFAULT_INDEX": f"https://me:{SECRET}@host/simple",
        "HTTPS_PROXY": f"http://me:{SECRET}@proxy:8080",
        "OTHER_TOKEN": SECRET,
        "PYEXEC_DATABASE_URL": f"postgresql://me:{SECRET}@host/records",
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
    assert rows["PYEXEC_DATABASE_URL"] == ("***", "variable")
    assert SECRET not in run("config", "paths", env=env).stdout
    assert said["unknown"] == ["PYEXEC_MY_TOKEN"]


def test_settings_and_paths_are_shown_in_words_too(run: Command) -> None:
    shown = run("config", "show", env={"PYEXEC_CONCURRENT": "7", "UV_PUBLISH_TOKEN": SECRET}).stdout.splitlines()
    assert f"{'PYEXEC_CONCURRENT':32} 7  (variable)" in shown
    assert f"{'UV_PUBLISH_TOKEN':32} ***  (variable)" in shown
    assert run.ok("config", "paths").splitlines()[0] == f"state         {run.home}"


@pytest.mark.case("B190")
@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--no-uv", "--env", f"API_TOKEN={SECRET}"], "the value of API_TOKEN"),
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
