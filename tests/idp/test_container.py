"""The container file without an engine: its steps, in empty folders. With an engine: tests/containers."""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pyexec_idp.settings import VARIABLES
from tests.helpers.processes import eventually

ROOT = Path(__file__).parents[2]
FILE = ROOT / "deploy" / "identity-provider" / "Containerfile"
KNOWN = {"ARG", "FROM", "RUN", "WORKDIR", "COPY", "ENV", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"}
STEP_SECONDS = 200.0


@dataclass(frozen=True)
class Step:
    stage: int
    word: str
    rest: str


def steps() -> list[Step]:
    lines = [line for line in FILE.read_text("utf-8").splitlines() if line.strip() and not line.startswith("#")]
    found: list[Step] = []
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        word, _, rest = line.partition(" ")
        found.append(Step(len([one for one in found if one.word == "FROM"]) - (word != "FROM"), word, rest.strip()))
    return found


def values_of(stage: int) -> dict[str, str]:
    found = (
        pair.partition("=")
        for one in steps()
        if (one.stage, one.word) == (stage, "ENV")
        for pair in shlex.split(one.rest)
    )
    return {name: value for name, _, value in found}


def only(word: str) -> str:
    (found,) = [one.rest for one in steps() if one.word == word]
    return found


def test_it_is_made_of_what_every_engine_knows_and_runs_as_nobody_in_particular() -> None:
    assert {one.word for one in steps()} <= KNOWN
    assert [one.stage for one in steps() if one.word == "FROM"] == [0, 1]
    assert int(only("USER")) > 0
    settings = {name: value for name, value in values_of(1).items() if name.startswith("PYEXEC_")}
    assert settings.keys() <= {variable.name for variable in VARIABLES}
    assert (settings["PYEXEC_IDP_HOME"], settings["PYEXEC_IDP_PORT"]) == (only("VOLUME"), only("EXPOSE"))
    assert not re.search(r"(?i)secret|password|token", FILE.read_text("utf-8"))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What its first stage makes, of nothing but what it copies."""
    folder = tmp_path_factory.mktemp("container")
    source, environment = folder / "source", folder / "environment"
    source.mkdir()
    for one in steps():
        if (one.stage, one.word) == (0, "COPY"):
            *names, target = one.rest.split()
            for name in names:
                if (ROOT / name).is_dir():
                    shutil.copytree(ROOT / name, source / target, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copy(ROOT / name, source / target / name)
    (sync,) = [one.rest for one in steps() if (one.stage, one.word) == (0, "RUN") and one.rest.startswith("uv ")]
    program = Path(sys.prefix) / "bin" / "uv"
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYEXEC_", "VIRTUAL_ENV"))}
    subprocess.run(
        [program, *shlex.split(sync)[1:], "--python", sys.executable],
        cwd=source,
        env={**inherited, "UV_PROJECT_ENVIRONMENT": str(environment), "UV_LINK_MODE": "hardlink"},
        check=True,
        capture_output=True,
        timeout=STEP_SECONDS,
    )
    yield environment
    shutil.rmtree(folder)


@pytest.mark.exhaustive
@pytest.mark.needs_uv
def test_what_it_installs_serves_and_its_health_check_says_so(installed: Path, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    environ = {
        **values_of(1),
        "PATH": f"{installed / 'bin'}:{os.environ['PATH']}",
        "PYEXEC_IDP_HOME": str(tmp_path / "home"),
        "PYEXEC_IDP_HOST": "127.0.0.1",
        "PYEXEC_IDP_PORT": port,
        "PYEXEC_IDP_ISSUER": "https://example.com/id",
    }
    start = [*json.loads(only("ENTRYPOINT")), *json.loads(only("CMD"))]
    check = json.loads(only("HEALTHCHECK").partition("CMD ")[2])

    def is_healthy() -> bool:
        return (
            subprocess.run(check, env=environ, capture_output=True, timeout=STEP_SECONDS, check=False).returncode == 0
        )

    assert not is_healthy()
    with subprocess.Popen(start, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            assert eventually(is_healthy)
        finally:
            process.terminate()
    packages = {path.name.partition("-")[0] for path in installed.glob("lib/python3*/site-packages/*.dist-info")}
    assert {"pyexec_idp", "psycopg", "opentelemetry_sdk"} <= packages
    assert packages.isdisjoint({"pytest", "fastmcp", "mcp_pyexec"})
