"""The plot of a benchmark. It is drawn by matplotlib, in an environment that is made when one is asked for."""

from pathlib import Path

from pyexec.domain.executions import ExecutionRequest

PLOT = "benchmark.png"
_REQUIREMENTS = ("matplotlib>=3.8",)
_DRAWING = Path(__file__).parent / "drawing.py"


def program(directory: str | None) -> ExecutionRequest:
    """Return the program that draws; it finds the samples in the artifacts of its execution, and leaves a PNG there."""
    return ExecutionRequest(
        directory=directory,
        script_content=_DRAWING.read_text(encoding="utf-8"),
        dependencies=_REQUIREMENTS,
        env_vars={"MPLBACKEND": "Agg"},
    )
