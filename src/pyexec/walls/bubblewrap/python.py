"""The interpreter that sandboxes run on."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyexec.domain.errors import WallUnavailableError
from pyexec.domain.sandboxes import OLDEST_PYTHON, PYTHON
from pyexec.processes.commands import run_tool

_QUESTION = "import sys, json; print(json.dumps([sys.version_info[:2], sys.base_prefix, sys._base_executable]))"


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxPython:
    """An interpreter, as it is installed: no environment is around it."""

    executable: Path
    prefix: Path


def look_at(python: Path, environ: Mapping[str, str]) -> SandboxPython:
    """Return the interpreter that a path stands for; blocks while it is started and asked.

    Args:
        python: The interpreter, or one of an environment made with it.
        environ: What it needs to start.

    Raises:
        WallUnavailableError: It does not start, or is too old.
    """
    try:
        answer = run_tool([str(python), "-I", "-S", "-c", _QUESTION], env=environ, cwd="/")
        version, prefix, executable = json.loads(answer.stdout)
    except (OSError, ValueError) as error:
        raise WallUnavailableError(f"{python} is not a Python that works.") from error
    if tuple(version) < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        raise WallUnavailableError(
            f"Sandboxes need Python {oldest} or newer; {python} is {version[0]}.{version[1]}.",
            hint=f"Install one with `uv python install '{PYTHON}'`.",
        )
    return SandboxPython(executable=Path(executable), prefix=Path(prefix))
