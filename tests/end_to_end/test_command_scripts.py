"""`pyexec scripts`: what a person does with scripts."""

import json

import pytest

from tests.helpers.commands import Command

SOURCE = "import sys\nprint('ran', sys.argv[1:], sys.stdin.read())\nsys.exit(3)\n"


@pytest.mark.needs_uv
def test_a_script_is_saved_listed_shown_run_and_deleted(run: Command) -> None:
    (run.directory / "mine.py").write_text(SOURCE)
    saved = run.ok("scripts", "save", "report", "mine.py", "--requires-python", ">=3.8", "--description", "Reports.")
    path = run.home / "scripts" / "report.py"
    assert saved == f"{path}\n"
    assert run.ok("scripts", "show", "report") == path.read_text()
    ran = run("scripts", "run", "-i", "report", "--week", "12", stdin="typed")
    assert (ran.status, ran.stdout) == (3, "ran ['--week', '12'] typed\n")
    head, row = run.ok("scripts", "list").splitlines()
    assert head.split() == ["NAME", "STATUS", "LAST", "RUN", "WHAT"]
    assert row.startswith("report  failed  ")
    assert row.endswith("  Reports.")
    job = run.ok("scripts", "run", "--detach", "--label", "nightly", "report", "later").strip()
    (told,) = json.loads(run.ok("scripts", "list", "--json"))["scripts"]
    assert (told["name"], told["requires_python"], told["last_run"]["id"]) == ("report", ">=3.8", job)
    assert told["last_run"]["label"] == "nightly"
    assert run.ok("scripts", "delete", "report") == f"Deleted {path}.\n"


def test_a_script_comes_from_stdin_and_is_replaced_only_when_asked(run: Command) -> None:
    told = json.loads(run.ok("scripts", "save", "piped", "-", "--with", "six", "--json", stdin="'''Piped.'''\n"))
    assert (told["docstring"], told["dependencies"], told["last_run"]) == ("Piped.", ["six"], None)
    gone = run("scripts", "run", "pipe")
    assert (gone.status, gone.stdout) == (1, "")
    assert "error: There is no script 'pipe'; there are: piped." in gone.stderr
    again = run("scripts", "save", "piped", "-", stdin="a = 1\n")
    assert again.status == 1
    assert "There is a script 'piped' already." in again.stderr
    broken = run("scripts", "save", "piped", "-", "--overwrite", stdin="def (\n")
    assert broken.status == 0
    assert "note: Line " in broken.stderr


def test_inline_code_is_listed_and_shown_with_its_runs(run: Command) -> None:
    run.ok("run", "--no-uv", "-c", "'''Inline.'''\nprint(1)", "--env", "KEY=swordfish")
    _head, row = run.ok("scripts", "list", "--autosaved").splitlines()
    name = row.split()[0]
    assert row.endswith("      1  Inline.")
    told = json.loads(run.ok("scripts", "show", "--autosaved", "--json", name))
    assert told["source"] == "'''Inline.'''\nprint(1)"
    (ran,) = told["sidecar"]["runs"]
    assert ran["arguments"]["env_vars"] == {"KEY": "***"}
    (listed,) = json.loads(run.ok("scripts", "list", "--autosaved", "--json"))["autosaved"]
    assert (listed["name"], listed["runs"], listed["last_run"]["id"]) == (name, 1, ran["job_id"])
