"""From an environment and what the operator has set to what is inside a wall."""

from pathlib import Path

import pytest

from pyexec.app import sandboxes
from pyexec.app.sandboxes import INSTALL_FONTS, inside_of, memory_together
from pyexec.domain.sandboxes import SandboxSettings
from pyexec.walls.bubblewrap.python import SandboxPython

PYTHON = SandboxPython(executable=Path("/opt/python/bin/python3.13"), prefix=Path("/opt/python"))


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    site = tmp_path / "lib" / "python3.13" / "site-packages"
    for name in ("IPython", "numpy"):
        (site / name).mkdir(parents=True)
    monkeypatch.setattr(sandboxes, "look_at", lambda _python, _environ: PYTHON)
    return tmp_path


def test_as_much_is_imported_ahead_as_is_installed(environment: Path) -> None:
    inside = inside_of(environment, SandboxSettings(), {})
    assert inside.preloaded == ("IPython", "numpy", INSTALL_FONTS)
    assert inside.packages == environment / "lib/python3.13/site-packages"
    assert (inside.python, inside.guest, inside.environment) == (PYTHON, "pyexec_guest.inner:run", {})


def test_what_the_operator_wants_imported_ahead_is_not_left_out_in_silence(environment: Path) -> None:
    assert inside_of(environment, SandboxSettings(preloaded=("scipy",)), {}).preloaded == ("scipy", INSTALL_FONTS)


def test_of_where_libraries_are_only_the_interpreters_own_are_told_inside(environment: Path) -> None:
    environ = {"LD_LIBRARY_PATH": "/home/me/lib:/opt/python/lib:", "PATH": "/usr/bin"}
    assert inside_of(environment, SandboxSettings(), environ).environment == {"LD_LIBRARY_PATH": "/opt/python/lib"}


def test_all_sandboxes_together_have_three_quarters_of_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes.machine, "memory", lambda: 1000)
    assert memory_together(SandboxSettings()) == 750
    assert memory_together(SandboxSettings(together=123)) == 123
