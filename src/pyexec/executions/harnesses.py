"""What a tool of ours is told that runs programs by itself, and where the parts of those lie."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyexec.domain.executions import Harness
from pyexec.environments.asking import RunPlan
from pyexec.environments.orders import ANSWER
from pyexec.storage import artifacts

_COMPANION = "program-"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedProgram:
    """A program of an execution: how it is run, and the folder that the answer of what prepares it is left in."""

    plan: RunPlan
    env: Mapping[str, str] = field(repr=False)
    directory: Path
    folder: Path
    stdin: str | None = field(repr=False)


def framed(argv: tuple[str, ...], harness: Harness) -> tuple[str, ...]:
    """Return a command with its harness around it."""
    python, *program = argv
    return (*harness.before, python, *harness.options, *program)


def told(harness: Harness, folder: Path, programs: Sequence[PlannedProgram]) -> str | None:
    """Return what a harness finds on standard input; None where it wants no instructions."""
    if harness.instructions is None:
        return None
    values = {
        "instructions": harness.instructions,
        "artifacts": str(folder / artifacts.FOLDER),
        "programs": [
            {
                "argv": one.plan.argv,
                "cwd": str(one.directory),
                "env": {name: value for name, value in one.env.items() if name != artifacts.VARIABLE},
                "stdin": one.stdin,
                "answer": str(one.folder / ANSWER),
            }
            for one in programs
        ],
    }
    return json.dumps(values)


def companion_folder(folder: Path, number: int) -> Path:
    """Return where the parts of an execution's companion lie; the first has the number 1."""
    return folder / f"{_COMPANION}{number}"


def companion_folders(folder: Path) -> list[Path]:
    """Return those of all its companions."""
    return sorted(folder.glob(f"{_COMPANION}*"), key=lambda path: int(path.name.removeprefix(_COMPANION)))
