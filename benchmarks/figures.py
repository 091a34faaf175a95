"""What a benchmark finds, and how it is shown."""

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Unit = Literal["ms", "MB", "MB/s", "calls/s", "calls"]

HEADINGS = ("what", "figure", "baseline", "ratio", "target", "")


@dataclass(frozen=True, slots=True)
class Target:
    """What the product promises, in words, and whether it was kept."""

    text: str
    met: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One row of the table.

    Attributes:
        what: What was measured, and against what.
        value: The median of the samples, in `unit`.
        unit: What `value` and `baseline` are counted in.
        baseline: The median of what a person would use instead; None where nothing is compared.
        target: What is promised; None for a figure that is only shown.
        samples: How many measurements are behind it.
        spread: The middle half of the samples, as a share of the median: how far the figure can be trusted.
    """

    what: str
    value: float
    unit: Unit
    baseline: float | None = None
    target: Target | None = None
    samples: int = 1
    spread: float = 0.0

    @property
    def ratio(self) -> float | None:
        """How many times the baseline it is."""
        return self.value / self.baseline if self.baseline else None

    def as_json(self) -> dict[str, Any]:
        """Return it for programs to read."""
        return {**asdict(self), "ratio": self.ratio}


def interleave(rounds: int, *measures: Callable[[], float]) -> tuple[list[float], ...]:
    """Take one sample of each per round, so that what else the machine does falls on all alike.

    The order is another one in each round, and the same ones in each run: whoever comes second may find a disk cache
    or memory that the first one has warmed.
    """
    samples: tuple[list[float], ...] = tuple([] for _measure in measures)
    order = random.Random(rounds)
    turns = list(zip(measures, samples, strict=True))
    for _round in range(rounds):
        order.shuffle(turns)
        for measure, taken in turns:
            taken.append(measure())
    return samples


def in_milliseconds(
    what: str,
    ours: Sequence[float],
    theirs: Sequence[float] | None = None,
    *,
    at_most: float | None = None,
    plus_milliseconds: float = 0.0,
) -> Figure:
    """Return the figure of samples in seconds; `at_most` times the baseline, plus so much, is the target."""
    value = 1000 * statistics.median(ours)
    baseline = None if theirs is None else 1000 * statistics.median(theirs)
    target = None
    if at_most is not None and baseline is not None:
        limit = at_most * baseline + plus_milliseconds
        text = f"<= {at_most:g} x" + (f" + {plus_milliseconds:g} ms = {limit:.1f} ms" if plus_milliseconds else "")
        target = Target(text, value <= limit)
    return Figure(
        what=what,
        value=value,
        unit="ms",
        baseline=baseline,
        target=target,
        samples=len(ours),
        spread=_spread(ours),
    )


def as_speed(
    what: str, size: int, ours: Sequence[float], theirs: Sequence[float], *, at_least: float | None = None
) -> Figure:
    """Return the figure of moving `size` bytes in so many seconds; `at_least` times the baseline is the target."""
    value = size / statistics.median(ours) / 1e6
    baseline = size / statistics.median(theirs) / 1e6
    target = None if at_least is None else Target(f">= {at_least:g} x", value >= at_least * baseline)
    return Figure(
        what=what,
        value=value,
        unit="MB/s",
        baseline=baseline,
        target=target,
        samples=len(ours),
        spread=_spread(ours),
    )


def table(figures: Sequence[Figure]) -> str:
    """Return the rows, aligned, for a person to read."""
    rows = [HEADINGS, *(_row(figure) for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    lines: list[str] = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [row[column].rjust(widths[column]) for column in (1, 2, 3)]
        cells += [row[4].ljust(widths[4]), row[5]]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "-" * max(map(len, lines)))
    return "\n".join(lines)


def _row(figure: Figure) -> tuple[str, ...]:
    return (
        figure.what,
        _amount(figure.value, figure.unit),
        "" if figure.baseline is None else _amount(figure.baseline, figure.unit),
        "" if figure.ratio is None else f"{figure.ratio:.2f}",
        "" if figure.target is None else figure.target.text,
        "" if figure.target is None else "ok" if figure.target.met else "OVER",
    )


def _amount(value: float, unit: Unit) -> str:
    return f"{value:.0f} {unit}" if unit == "calls" else f"{value:.1f} {unit}"


def _spread(samples: Sequence[float]) -> float:
    if len(samples) < 4:
        return (max(samples) - min(samples)) / statistics.median(samples)
    low, _middle, high = statistics.quantiles(samples, n=4)
    return (high - low) / statistics.median(samples)
