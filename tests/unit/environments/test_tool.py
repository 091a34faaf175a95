import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyexec.environments.tool import ToolError, Uv
from tests.helpers.processes import eventually

AWAY = "error: Request failed after 2 retries\n  cause: Failed to fetch: https://u:SECRET@x.org/simple/a/\n"
MISSING = "error: No solution found when resolving dependencies\n  cause: Because a was not found, no.\n"

# What it is called with goes to a file; what it does is said there, one step for each call.
PROGRAM = """\
#!{python} -IS
import json, os, sys
here = os.path.dirname(os.path.abspath(__file__))
steps = json.load(open(f"{{here}}/steps"))
step = steps.pop(0)
json.dump(steps, open(f"{{here}}/steps", "w"))
call = {{"argv": sys.argv[1:], "env": dict(os.environ), "stdin": sys.stdin.read()}}
if "--constraints" in sys.argv:
    call["constraints"] = open(sys.argv[sys.argv.index("--constraints") + 1]).read()
print(json.dumps(call), file=open(f"{{here}}/calls", "a"))
sys.stderr.write(step.get("stderr", ""))
print(step.get("stdout", ""), end="")
sys.exit(step.get("exit", 0))
"""


class Fake:
    """A uv that does as it is told and writes down how it was called."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.program = root / "uv"
        self.program.write_text(PROGRAM.format(python=sys.executable))
        self.program.chmod(0o755)
        self.said: list[str] = []

    def will(self, *steps: dict[str, Any]) -> None:
        (self.root / "steps").write_text(json.dumps(steps))

    def uv(self, environ: dict[str, str] | None = None, index_url: str | None = None) -> Uv:
        return Uv(str(self.program), environ or {}, index_url, self.said.append)

    def calls(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.root / "calls").read_text().splitlines()]


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    return Fake(tmp_path)


def test_uv_gets_arguments_input_and_variables_and_its_output_is_returned(fake: Fake) -> None:
    fake.will({"stdout": "rich==15\n"})
    environ = {"TOKEN": "1", "LC_ALL": "C.UTF-8"}
    assert fake.uv(environ).run("pip", "x", stdin="rich\n", variables={"MORE": "2"}) == "rich==15\n"
    (call,) = fake.calls()
    assert (call["argv"], call["stdin"]) == (["pip", "x"], "rich\n")
    assert call["env"] == {**environ, "MORE": "2"}


def test_variables_about_python_are_for_the_users_program_alone(fake: Fake) -> None:
    fake.will({})
    fake.uv({"PYTHONPATH": "/x", "PYTHONHOME": "/y", "UV_INDEX": "z", "LC_ALL": "C.UTF-8"}).run("x")
    assert fake.calls()[0]["env"] == {"UV_INDEX": "z", "LC_ALL": "C.UTF-8"}


@pytest.mark.case("B037")
def test_secrets_reach_uv_by_its_variables_and_by_a_file_without_a_name(fake: Fake) -> None:
    fake.will({})
    before = len(os.listdir("/proc/self/fd"))
    uv = fake.uv({"UV_DEFAULT_INDEX": "https://usual"}, "https://u:SECRET@x.org/simple")
    uv.run("pip", "compile", constraints=["a @ https://SECRET@x.org/a.whl", "b<2"])
    (call,) = fake.calls()
    assert call["env"]["UV_DEFAULT_INDEX"] == "https://u:SECRET@x.org/simple"
    assert call["constraints"] == "a @ https://SECRET@x.org/a.whl\nb<2\n"
    assert call["argv"][:3] == ["pip", "compile", "--constraints"]
    assert "SECRET" not in str(call["argv"])
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.case("B037")
def test_what_uv_is_about_is_told_without_credentials(fake: Fake) -> None:
    fake.will(
        {
            "stderr": "Resolved 2 packages\nDownloading cpython-3.14 (30MiB)\nBuilding a @ https://u:SECRET@x.org/a\n"
            "   Built a @ https://u:SECRET@x.org/a\nBuilding wheel...\nInstalled 2 packages\n"
            "warning: a @ https://SECRET@x.org/a is yanked\nwarning: Failed to hardlink files\n"
            "warning: `VIRTUAL_ENV=/x` does not match\n"
        }
    )
    uv = fake.uv()
    uv.run("x")
    assert fake.said == [
        "downloading cpython-3.14 (30MiB)",
        "building a @ https://***@x.org/a",
        "built a @ https://***@x.org/a",
    ]
    assert uv.warnings == ["a @ https://***@x.org/a is yanked"]


def test_a_failure_of_uv_is_explained(fake: Fake) -> None:
    fake.will({"stderr": MISSING, "exit": 1})
    with pytest.raises(ToolError) as caught:
        fake.uv().run("x")
    assert caught.value.failure.kind == "dependency_resolution"
    assert str(caught.value) == "The requirements cannot be met: Because a was not found, no."


def test_a_failure_over_an_index_of_the_calls_own_names_that(fake: Fake) -> None:
    fake.will({"stderr": "error: error sending request\n", "exit": 2})
    with pytest.raises(ToolError, match=r"^index\.example cannot be reached: "):
        fake.uv(index_url="https://u:SECRET@index.example/simple").run("x")


# -- without the network -------------------------------------------------------------------------------------------


def offline(fake: Fake) -> list[bool]:
    return ["--offline" in call["argv"] for call in fake.calls()]


def test_what_works_is_not_tried_twice(fake: Fake) -> None:
    fake.will({"stdout": "ok"})
    assert fake.uv().run_or_offline("pip") == ("ok", False)
    assert offline(fake) == [False]


@pytest.mark.case("B036")
def test_where_the_network_is_away_the_cache_is_looked_into(fake: Fake) -> None:
    fake.will({"stderr": AWAY, "exit": 2}, {"stdout": "ok"})
    assert fake.uv().run_or_offline("pip", "compile", stdin="a\n", constraints=["b"]) == ("ok", True)
    first, second = fake.calls()
    assert second["argv"][:3] == ["--offline", "pip", "compile"]
    assert (second["stdin"], second["constraints"]) == (first["stdin"], first["constraints"]) == ("a\n", "b\n")
    assert fake.said == ["the index cannot be reached; looking into uv's cache"]


@pytest.mark.case("B036")
def test_what_the_cache_lacks_is_the_networks_failure(fake: Fake) -> None:
    fake.will({"stderr": AWAY, "exit": 2}, {"stderr": MISSING, "exit": 1})
    with pytest.raises(ToolError) as caught:
        fake.uv().run_or_offline("pip")
    assert caught.value.failure.kind == "network"
    assert "SECRET" not in f"{caught.value} {caught.value.failure.detail}"


def test_a_failure_that_is_not_the_networks_is_final(fake: Fake) -> None:
    fake.will({"stderr": MISSING, "exit": 1})
    with pytest.raises(ToolError, match="cannot be met"):
        fake.uv().run_or_offline("pip")
    assert offline(fake) == [False]


@pytest.mark.parametrize("how", [Uv.run, Uv.run_or_offline], ids=["run", "run_or_offline"])
def test_a_uv_that_cannot_be_started_is_an_error(fake: Fake, how: Callable[..., object]) -> None:
    fake.program.unlink()
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(FileNotFoundError):
        how(fake.uv(), "x", constraints=["a"])
    eventually(lambda: len(os.listdir("/proc/self/fd")) == before)
