"""The runner of benchmarks by itself, without a keeper."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyexec.benchmarks import runner

RUNNER = Path(runner.__file__).parent / "__main__.py"


@dataclass(frozen=True)
class Measured:
    """What it did: the samples it left, what it printed and its status."""

    samples: list[dict[str, Any]]
    stdout: str
    stderr: str
    status: int

    @property
    def last(self) -> dict[str, Any]:
        """The sample that it took last."""
        return self.samples[-1]


def orders(folder: Path, *programs: list[str], stdin: str | None = None, cwd: str | None = None, **told: Any) -> str:
    """Return what tells it to run programs, each once unless told otherwise."""
    instructions = {
        "head": {"names": [str(number) for number in range(len(programs))]},
        "samples": "samples.jsonl",
        "rounds": [list(range(len(programs)))],
        "warmup": 0,
        "interval": 0.05,
        "timeout": 0,
        "plot": None,
        **told,
    }
    values = [
        {
            "argv": argv,
            "cwd": cwd or str(folder),
            "env": dict(os.environ),
            "stdin": stdin,
            "answer": str(folder / f"{number}"),
        }
        for number, argv in enumerate(programs)
    ]
    return json.dumps({"instructions": instructions, "artifacts": str(folder), "programs": values})


def measure(folder: Path, *programs: list[str], **told: Any) -> Measured:
    """Have it run programs to their ends."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", RUNNER],
        input=orders(folder, *programs, **told),
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    lines = (folder / "samples.jsonl").read_text("utf-8").splitlines()
    return Measured(
        samples=[json.loads(line) for line in lines][1:],
        stdout=done.stdout,
        stderr=done.stderr,
        status=done.returncode,
    )


def python(code: str, *args: str) -> list[str]:
    """Return a command that runs code as quickly as Python can."""
    return [sys.executable, "-I", "-S", "-c", code, *args]
