"""What the runner is told: the programs, how often and in which order to run them."""

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MARK = "PYEXEC_EXECUTION_ID"
ANSWER_BYTES = 16 * 1024 * 1024


class Program:
    """One program. `stdin` is what it finds on standard input."""

    def __init__(self, argv: list[str], cwd: str, env: dict[str, str], stdin: str) -> None:
        self.argv = argv
        self.cwd = cwd
        self.env = env
        self.stdin = stdin


class Orders:
    """What to do.

    Attributes:
        programs: What there is to run.
        head: What is written before the samples, for whoever reads them.
        samples: The file that they are written to.
        rounds: The numbers of the programs in the order of each round; warm-up rounds come first.
        warmup: How many rounds are not counted.
        interval: Seconds between two looks at the memory.
        timeout: Seconds that one run may take; 0 means any.
        plot: The number of the program that draws the plot, where one is wanted.
    """

    def __init__(self, text: str) -> None:
        values: dict[str, Any] = json.loads(text)
        told: dict[str, Any] = values["instructions"]
        self.programs = [_program(one) for one in values["programs"]]
        self.artifacts: str = values["artifacts"]
        self.head: dict[str, Any] = told["head"]
        self.samples: str = os.path.join(self.artifacts, told["samples"])
        self.rounds: list[list[int]] = told["rounds"]
        self.warmup: int = told["warmup"]
        self.interval: float = told["interval"]
        self.timeout: float = told["timeout"]
        self.plot: int | None = told["plot"]


def _program(values: "dict[str, Any]") -> Program:
    # What tells strays of this execution from other processes goes on to them.
    mark = {name: os.environ[name] for name in (MARK,) if name in os.environ}
    argv, env = list(values["argv"]), {**values["env"], **mark}
    python = _prepared(values["answer"])
    if python is not None:
        argv[0] = python
        env["PATH"] = os.pathsep.join(filter(None, [os.path.dirname(python), env.get("PATH", "")]))
    return Program(argv=argv, cwd=values["cwd"], env=env, stdin=values["stdin"] or "")


def _prepared(path: str) -> str | None:
    """Return the interpreter that preparing has found or made; None where it was known before."""
    try:
        with open(path, "rb") as file:
            python: object = json.loads(file.read(ANSWER_BYTES)).get("python")
    except FileNotFoundError:
        return None
    return python if isinstance(python, str) else None
