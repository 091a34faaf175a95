"""From the folder of an environment to what is inside a wall."""

from pathlib import Path

import pytest

from pyexec.domain.errors import WallUnavailableError
from pyexec.walls.bubblewrap import inside
from pyexec.walls.bubblewrap.inside import INSTALL_FONTS, inside_of
from pyexec.walls.bubblewrap.python import SandboxPython

PYTHON = SandboxPython(executable=Path("/opt/python/bin/python3.13"), prefix=Path("/opt/python"))


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    site = tmp_path / "lib" / "python3.13" / "site-packages"
    for name in ("IPython", "numpy", "matplotlib_inline"):
        (site / name).mkdir(parents=True)
    monkeypatch.setattr(inside, "look_at", lambda _python, _environ: PYTHON)
    return tmp_path


def test_as_much_is_imported_ahead_as_is_installed(environment: Path) -> None:
    found = inside_of(environment, None, {})
    assert found.preloaded == ("IPython", "numpy", INSTALL_FONTS)
    assert found.packages == environment / "lib/python3.13/site-packages"
    assert (found.python, found.guest, found.environment) == (PYTHON, "pyexec_guest.inner:run", {})


def test_what_the_operator_wants_imported_ahead_is_not_left_out_in_silence(environment: Path) -> None:
    assert inside_of(environment, ("scipy",), {}).preloaded == ("scipy", INSTALL_FONTS)


def test_in_another_environment_that_is_left_out_which_is_not_there(environment: Path) -> None:
    assert inside_of(environment, ("scipy", "numpy"), {}, ahead="found").preloaded == ("numpy", INSTALL_FONTS)
    assert inside_of(environment, (), {}, ahead="found").preloaded == (INSTALL_FONTS,)
    assert inside_of(environment, None, {}, ahead="nothing").preloaded == (INSTALL_FONTS,)


def test_of_where_libraries_are_only_the_interpreters_own_are_told_inside(environment: Path) -> None:
    environ = {"LD_LIBRARY_PATH": "/home/me/lib:/opt/python/lib:", "PATH": "/usr/bin"}
    assert inside_of(environment, None, environ).environment == {"LD_LIBRARY_PATH": "/opt/python/lib"}


def test_a_folder_that_is_no_environment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WallUnavailableError, match="has no packages"):
        inside_of(tmp_path, None, {})
