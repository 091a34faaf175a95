"""`pyexec env`: what a person does with environments."""

import json

import pytest

from tests.helpers.commands import Command

pytestmark = pytest.mark.needs_uv


def test_an_environment_is_made_listed_used_locked_and_removed(run: Command) -> None:
    nothing = run("env", "list")
    assert (nothing.status, nothing.stdout, nothing.stderr) == (0, "", "No environments.\n")
    made = run("env", "create", "tools", "six<1.17", "-c", "six<1.16")
    assert made.status == 0, made.stderr
    assert made.stdout.startswith("tools: Python 3.")
    assert made.stdout.endswith(", 1 package\n")
    assert "installing 1 package" in made.stderr
    assert run.ok("run", "--environment", "tools", "-c", "import six; print(six.__version__)") == "1.15.0\n"
    (row,) = json.loads(run.ok("env", "list", "--json"))
    assert (row["names"], row["packages"]) == (["tools"], ["six==1.15.0"])
    assert "tools: six==1.15.0" in run.ok("env", "list")
    assert "six==1.15.0" in run.ok("env", "lock", row["id"][:8])
    assert run.ok("env", "remove", "tools") == "Removed tools.\n"
    gone = run("env", "remove", "tools")
    assert gone.status == 1
    assert "There is no environment 'tools'." in gone.stderr


def test_one_that_cannot_be_made_is_said_in_a_sentence_with_a_status(run: Command) -> None:
    failed = run("env", "create", "never", "six==0.0.0.1")
    assert failed.status == 1
    assert "error: The requirements cannot be met: " in failed.stderr
    assert "six==0.0.0.1" in failed.stderr
