from pathlib import Path
from typing import Any

import pytest

from pyexec.domain.errors import InvalidArgumentError, NotFoundError
from pyexec.environments.asking import RunPlan
from pyexec.environments.orders import BuildOrder
from tests.unit.environments.bench import FRESH_SECONDS, LOCK, Bench
from tests.unit.environments.conftest import Machine, Write

DIGEST = "a" * 32


@pytest.fixture
def bench(machine: Machine, tmp_path: Path) -> Bench:
    return Bench(machine, tmp_path)


def test_a_named_environment_is_leased_and_runs_the_script_at_once(bench: Bench) -> None:
    made = bench.make(DIGEST, "pluggy==1.5.0")
    bench.name("tools", DIGEST)
    assert bench.plan(environment="tools", args=("a",)) == RunPlan(
        argv=(str(made.python), "main.py", "a"),
        strategy="uv-run",
        python=str(made.python),
        python_version="3.11.7",
        environment=bench.store.get(DIGEST),
        packages=("pluggy==1.5.0",),
        first_on_path=made.python.parent,
    )
    assert bench.leases(DIGEST) == {"1": str(bench.asked.holder_lock)}


def test_a_named_environment_that_is_gone_is_made_again_from_its_lock(bench: Bench) -> None:
    bench.name("tools", DIGEST)
    assert bench.order(environment="tools") == BuildOrder(
        root=str(bench.store.root),
        uv=str(bench.uv),
        key=None,
        python=str(bench.python),
        python_version="3.11.7",
        cwd=str(bench.directory),
        digest=DIGEST,
        lock=LOCK,
        fresh_seconds=FRESH_SECONDS,
        folder=str(bench.asked.folder),
        holder="1",
        holder_lock=str(bench.asked.holder_lock),
    )


def test_the_project_around_it_does_not_matter_to_a_named_environment(bench: Bench, write: Write) -> None:
    write("work/pyproject.toml", "[project]\ndependencies = ['rich']\nrequires-python = '>=3.13'\n")
    made = bench.make(DIGEST)
    bench.name("tools", DIGEST)
    assert (bench.plan(environment="tools")).python == str(made.python)


def test_a_name_that_nobody_gave_is_answered_with_those_there_are(bench: Bench) -> None:
    with pytest.raises(NotFoundError, match="no environment 'tools'; there are: none") as caught:
        bench.plan(environment="tools")
    assert caught.value.hint == "create_environment makes one."
    for name in ("web", "data"):
        bench.name(name, DIGEST)
    with pytest.raises(NotFoundError, match="there are: data, web"):
        bench.plan(environment="tools")


@pytest.mark.parametrize("name", ["", "../tools", "Tools", "x" * 5000, "a\0b"])
def test_what_cannot_be_a_name_is_the_name_of_nothing(bench: Bench, name: str) -> None:
    bench.name("tools", DIGEST)
    with pytest.raises(NotFoundError):
        bench.plan(environment=name)


def test_a_name_belongs_to_whoever_gave_it(bench: Bench) -> None:
    bench.make(DIGEST)
    bench.name("tools", DIGEST, owner="local|1001|")
    with pytest.raises(NotFoundError, match="there are: none"):
        bench.plan(environment="tools")


@pytest.mark.parametrize("changes", [{"dependencies": ("rich",)}, {"constraints": ("rich<2",)}])
def test_a_named_environment_takes_no_more_packages(bench: Bench, changes: dict[str, Any]) -> None:
    bench.make(DIGEST)
    bench.name("tools", DIGEST)
    with pytest.raises(InvalidArgumentError, match="Both environment='tools' and dependencies were given"):
        bench.plan(environment="tools", **changes)
    assert bench.leases(DIGEST) == {}


@pytest.mark.parametrize(
    ("asked", "header", "where"),
    [
        ("3.13", b"", "python_version asks for '3.13'"),
        ("/usr/bin/python3", b"", "python_version asks for '/usr/bin/python3'"),
        (None, b"# requires-python = '>=3.12'\n", "the script's header asks for '>=3.12'"),
    ],
)
def test_another_python_than_that_of_a_named_environment_is_refused(
    bench: Bench, asked: str | None, header: bytes, where: str
) -> None:
    bench.make(DIGEST)
    bench.name("tools", DIGEST)
    source = b"# /// script\n# dependencies = []\n" + header + b"# ///\n"
    with pytest.raises(InvalidArgumentError, match=f"'tools' has Python 3.11.7, and {where}"):
        bench.plan(environment="tools", python_version=asked, header_source=source)


def test_a_script_may_ask_for_the_python_of_a_named_environment(bench: Bench) -> None:
    made = bench.make(DIGEST)
    bench.name("tools", DIGEST)
    header = b"# /// script\n# requires-python = '>=3.11'\n# ///\n"
    plan = bench.plan(environment="tools", python_version="3.11", header_source=header)
    assert plan.python == str(made.python)


def test_a_header_has_to_be_met_by_a_named_environment(bench: Bench) -> None:
    made = bench.make(DIGEST, "pluggy==1.5.0", "lib @ file:///srv/lib")
    bench.name("tools", DIGEST)

    def header(*asked: str) -> bytes:
        return f"# /// script\n# dependencies = {list(asked)}\n# ///\n".encode()

    plan = bench.plan(environment="tools", header_source=header("Pluggy>=1", "lib>=3"))
    assert plan.python == str(made.python)
    with pytest.raises(
        InvalidArgumentError,
        match=r"lacks what the script's header asks for: 'pluggy<1' \(there is 1\.5\.0\), 'rich' \(not there\)\.",
    ):
        bench.plan(environment="tools", header_source=header("pluggy<1", "rich"))
    with pytest.raises(InvalidArgumentError, match=r"'\?' in the script's header cannot be read"):
        bench.plan(environment="tools", header_source=header("?"))


def test_a_ready_named_environment_needs_no_uv(bench: Bench) -> None:
    made = bench.make(DIGEST)
    bench.name("tools", DIGEST)
    bench.uv.unlink()
    assert (bench.plan(environment="tools")).python == str(made.python)
