import pytest

from pyexec.domain.errors import UvNotFoundError
from pyexec.environments.uv import find_uv, may_download_python, patience
from tests.unit.environments.conftest import Machine


def test_uv_is_looked_for_in_order(machine: Machine) -> None:
    places = ["named/uv", "own/bin/uv", "path/uv", "home/.local/bin/uv", "home/.cargo/bin/uv"]
    for place in places:
        machine.program(place)
    machine.program("home/.pyenv/shims/uv")
    machine.path("home/.pyenv/shims", "empty", "path")
    machine.environ["UV"] = str(machine.root / "named/uv")
    found: list[str] = []
    for _ in places:
        uv = find_uv(machine.environ, machine.root / "own")
        found.append(str(uv.relative_to(machine.root)))
        uv.unlink()
    assert found == places
    with pytest.raises(UvNotFoundError, match="uv is needed"):
        find_uv(machine.environ, machine.root / "own")


def test_a_uv_that_is_not_executable_or_not_absolute_does_not_count(machine: Machine) -> None:
    machine.program("path/uv").chmod(0o644)
    machine.path("path")
    with pytest.raises(UvNotFoundError) as caught:
        find_uv(machine.environ | {"UV": "uv"}, machine.root / "own")
    assert caught.value.hint is not None
    with pytest.raises(UvNotFoundError):
        find_uv({}, machine.root / "own")


def test_what_the_user_set_about_waiting_counts() -> None:
    assert patience({}) == {"UV_HTTP_CONNECT_TIMEOUT": "3", "UV_HTTP_RETRIES": "2"}
    assert patience({"UV_HTTP_RETRIES": "9"}) == {"UV_HTTP_CONNECT_TIMEOUT": "3"}


@pytest.mark.parametrize(
    ("environ", "may"),
    [
        ({}, True),
        ({"UV_PYTHON_DOWNLOADS": ""}, True),
        ({"UV_PYTHON_DOWNLOADS": "automatic"}, True),
        ({"UV_PYTHON_DOWNLOADS": "manual"}, False),
        ({"UV_PYTHON_DOWNLOADS": "never"}, False),
        ({"UV_OFFLINE": "1"}, False),
        ({"UV_OFFLINE": " TRUE "}, False),
        ({"UV_OFFLINE": "0"}, True),
    ],
)
def test_uv_may_download_a_python_unless_it_is_told_not_to(environ: dict[str, str], *, may: bool) -> None:
    assert may_download_python(environ) is may
