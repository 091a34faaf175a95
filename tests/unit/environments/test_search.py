from pathlib import Path

from pyexec.environments.search import all_interpreters, first_interpreters, is_shims, program_directories
from tests.unit.environments.conftest import Machine


def names(machine: Machine, own: Path | None = None) -> list[str]:
    return [str(path.relative_to(machine.root)) for path in all_interpreters(machine.environ, own)]


def test_path_comes_first_then_its_versioned_names_then_pyenv_then_uv_then_our_own(machine: Machine) -> None:
    own = machine.program("own/bin/python")
    for path in (
        "home/.local/share/uv/python/cpython-3.12.4-linux/bin/python3",
        "home/.local/share/uv/python/cpython-3.13.1-linux/bin/python3",
        "home/.pyenv/versions/3.9.18/bin/python",
        "home/.pyenv/versions/3.13.0/bin/python",
        "one/python3.9",
        "one/python3.12",
        "one/python3-config",
        "one/python3.12-config",
        "one/python",
        "two/python3",
    ):
        machine.program(path)
    machine.path("one", "two")
    assert names(machine, own) == [
        "one/python",
        "two/python3",
        "one/python3.12",
        "one/python3.9",
        "home/.pyenv/versions/3.13.0/bin/python",
        "home/.pyenv/versions/3.9.18/bin/python",
        "home/.local/share/uv/python/cpython-3.13.1-linux/bin/python3",
        "home/.local/share/uv/python/cpython-3.12.4-linux/bin/python3",
        "own/bin/python",
    ]


def test_two_names_of_one_interpreter_count_once(machine: Machine) -> None:
    real = machine.program("usr/bin/python3.11")
    machine.link("usr/bin/python3", real)
    machine.link("bin", machine.root / "usr/bin")
    machine.path("usr/bin", "bin", "usr/bin")
    assert names(machine) == ["usr/bin/python3"]


def test_a_virtual_environment_is_not_its_base_and_keeps_its_link(machine: Machine) -> None:
    base = machine.program("usr/bin/python3")
    machine.link("venv/bin/python3", base)
    machine.link("venv/bin/python", base)
    machine.program("venv/pyvenv.cfg")
    machine.path("venv/bin", "usr/bin")
    assert names(machine) == ["venv/bin/python3", "usr/bin/python3"]


def test_shims_are_passed_over_for_the_versions_pyenv_has_active(machine: Machine) -> None:
    for path in ("shims/python3", "shims/python", "shims/python3.12", "plugins/virtualenv/shims/python3"):
        machine.program(f"home/.pyenv/{path}")
    for version in ("3.11.7", "3.12.1", "3.12.10", "3.13.0"):
        machine.program(f"home/.pyenv/versions/{version}/bin/python")
    (machine.root / "home/.pyenv/version").write_text("3.12\nsystem\n3.11.7\n")
    machine.program("usr/python3")
    machine.path("home/.pyenv/plugins/virtualenv/shims", "home/.pyenv/shims", "usr")
    assert names(machine) == [
        "home/.pyenv/versions/3.12.10/bin/python",
        "home/.pyenv/versions/3.11.7/bin/python",
        "usr/python3",
        "home/.pyenv/versions/3.13.0/bin/python",
        "home/.pyenv/versions/3.12.1/bin/python",
    ]


def test_pyenv_version_beats_its_file_and_pyenv_root_beats_the_home_folder(machine: Machine) -> None:
    machine.program("opt/pyenv/shims/python3")
    for version in ("3.11.7", "3.12.1"):
        machine.program(f"opt/pyenv/versions/{version}/bin/python")
    (machine.root / "opt/pyenv/version").write_text("3.11.7\n")
    machine.path("opt/pyenv/shims")
    machine.environ |= {"PYENV_ROOT": str(machine.root / "opt/pyenv"), "PYENV_VERSION": "3.12.1:gone"}
    found = list(first_interpreters(machine.environ))
    assert found == [machine.root / "opt/pyenv/versions/3.12.1/bin/python"]


def test_shims_without_a_chosen_version_give_nothing(machine: Machine) -> None:
    machine.program("home/.pyenv/shims/python3")
    machine.path("home/.pyenv/shims")
    assert list(first_interpreters(machine.environ)) == []


def test_a_folder_called_shims_elsewhere_is_no_stand_in(machine: Machine) -> None:
    machine.program("asdf/shims/python3")
    assert not is_shims(machine.root / "asdf/shims", machine.environ)
    assert not is_shims(machine.root / "asdf/shims", {})


def test_uv_is_found_where_its_settings_say(machine: Machine) -> None:
    machine.program("pythons/a/bin/python3")
    machine.program("data/uv/python/b/bin/python3")
    machine.environ["XDG_DATA_HOME"] = str(machine.root / "data")
    assert names(machine) == ["data/uv/python/b/bin/python3"]
    machine.environ["UV_PYTHON_INSTALL_DIR"] = str(machine.root / "pythons")
    assert names(machine) == ["pythons/a/bin/python3"]


def test_what_is_no_program_is_passed_over(machine: Machine) -> None:
    (machine.root / "one/python3").mkdir(parents=True)
    machine.program("one/python").chmod(0o644)
    (machine.root / "one/python3.12").symlink_to(machine.root / "gone")
    (machine.root / "one/python3.13").symlink_to(machine.root / "one/python3.13")
    machine.path("one", "missing")
    assert names(machine) == []


def test_relative_folders_on_path_do_not_count() -> None:
    environ = {"PATH": ":.:bin:/usr/bin::/usr/bin:/bin"}
    assert program_directories(environ) == (Path("/usr/bin"), Path("/bin"))


def test_without_a_home_folder_stand_ins_cannot_be_told_and_nothing_breaks(machine: Machine) -> None:
    machine.program("home/.pyenv/shims/python3")
    machine.path("home/.pyenv/shims")
    del machine.environ["HOME"]
    assert names(machine) == ["home/.pyenv/shims/python3"]


def test_a_name_too_long_for_the_disk_is_passed_over(machine: Machine) -> None:
    machine.program("one/python3")
    machine.path("x" * 300, "one")
    assert names(machine) == ["one/python3"]


def test_an_empty_environment_has_no_interpreters() -> None:
    assert list(all_interpreters({}, None)) == []
