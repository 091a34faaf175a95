"""Draw the plot of a benchmark; runs in an environment with matplotlib, as a program of its own."""

import importlib
import json
import os
import statistics
from pathlib import Path
from typing import Any

plt: Any = importlib.import_module("matplotlib.pyplot")

FOLDER = Path(os.environ["PYEXEC_ARTIFACTS"])
LARGEST = 64 * 1024 * 1024


def main() -> None:
    """Draw it, from the samples to a PNG beside them."""
    with (FOLDER / "samples.jsonl").open("rb") as file:
        head, *rest = [json.loads(line) for line in file.read(LARGEST).splitlines()]
    names: list[str] = head["benchmark"]["names"]
    counted = [line for line in rest if line.get("warmup") is False]
    rows = [[line for line in counted if line["program"] == number] for number in range(len(names))]
    figure, (times, memory) = plt.subplots(1, 2, figsize=(10, 4), dpi=100, layout="constrained")
    _draw_times(times, names, [[line["wall"] for line in row] for row in rows])
    _draw_memory(memory, names, rows)
    figure.savefig(FOLDER / "benchmark.png")


def _draw_times(axes: Any, names: list[str], rows: list[list[float]]) -> None:
    """Draw each run as a point in its place, and the medians as lines."""
    for number, (name, row) in enumerate(zip(names, rows, strict=True)):
        color = f"C{number}"
        axes.plot(range(1, len(row) + 1), row, "o", color=color, markersize=4, label=_plain(name))
        axes.axhline(statistics.median(row), color=color, linewidth=1)
    axes.set(title="Wall time (line: median)", xlabel="run", ylabel="seconds", ylim=(0, None))
    axes.legend()


def _draw_memory(axes: Any, names: list[str], rows: list[list[dict[str, Any]]]) -> None:
    """Draw the memory of each variant's median run over time."""
    for number, (name, row) in enumerate(zip(names, rows, strict=True)):
        line = sorted(row, key=lambda one: one["wall"])[len(row) // 2]
        points = [(0.0, 0), *line["memory"]]
        times, sizes = zip(*points, strict=True)
        axes.plot(times, [size / 2**20 for size in sizes], color=f"C{number}", marker=".", label=_plain(name))
        axes.axhline(line["peak"] / 2**20, color=f"C{number}", linewidth=0.8, linestyle="--")
    axes.set(title="Memory of the median run (dashed: peak)", xlabel="seconds", ylabel="MB", ylim=(0, None))


def _plain(name: str) -> str:
    return name.replace("$", r"\$")


if __name__ == "__main__":
    main()
