"""The interpreter that sandboxes run on."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyexec.domain.errors import WallUnavailableError
from pyexec.processes.commands import run_tool

OLDEST = (3, 12)
WANTED = ">=3.12"
"""What to ask an interpreter finder for."""

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
    if tuple(version) < OLDEST:
        raise WallUnavailableError(
            f"Sandboxes need Python {OLDEST[0]}.{OLDEST[1]} or newer; {python} is {version[0]}.{version[1]}.",
            hint=f"Install one with `uv python install '{WANTED}'`.",
        )
    return SandboxPython(executable=Path(executable), prefix=Path(prefix))
