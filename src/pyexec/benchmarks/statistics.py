"""What a row of samples says, and whether two rows differ by more than noise.

Nothing here supposes a distribution: run times have long tails. Rows of a comparison were taken in rounds, each variant
once in each, in a shuffled order; so of two that are the same either is the quicker one of a round as a coin falls,
whatever else happened on the machine meanwhile. Signed ranks would need fewer rounds where nothing disturbs, and twice
as many where one run in ten is disturbed: the largest differences, which are those, weigh most in them.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["faster", "slower", "no difference beyond noise"]

NO_DIFFERENCE: Verdict = "no difference beyond noise"
MEDIAN_CONFIDENCE = 0.95
RATIO_CONFIDENCE = 0.99
FEWEST_ROUNDS = 8
"""With fewer rounds, no outcome whatever is rare enough for `RATIO_CONFIDENCE`."""
LEAST_DIFFERENCE = 0.01
"""Where code lies in memory and how long paths are make one part in a hundred; less is nobody's doing."""
OUTLYING = 5.0
_NORMAL_MAD = 1.4826


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A row of samples.

    Attributes:
        mad: The median distance from the median.
        low, high: The interval that the true median lies in with `MEDIAN_CONFIDENCE`, by order statistics; None with
            fewer than six samples.
    """

    median: float
    minimum: float
    maximum: float
    mad: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One variant against another: by which factor it takes longer, and between which bounds that lies.

    Attributes:
        ratio: The median of the ratios in each round.
        low, high: The interval that the true one lies in with `RATIO_CONFIDENCE`, by order statistics; None with fewer
            than eight rounds.
    """

    verdict: Verdict
    ratio: float
    low: float | None
    high: float | None


def summarize(values: Sequence[float]) -> Summary:
    """Sum up a row; it must not be empty."""
    ordered = sorted(values)
    median = statistics.median(ordered)
    low, high = _median_interval(ordered, MEDIAN_CONFIDENCE)
    return Summary(
        median=median,
        minimum=ordered[0],
        maximum=ordered[-1],
        mad=statistics.median(abs(value - median) for value in ordered),
        low=low,
        high=high,
    )


def outliers(values: Sequence[float]) -> list[int]:
    """Return the places of those that lie far outside: five standard deviations, were it a normal distribution.

    The deviation is told from the median distance to the median, which outliers do not move; one in a hundred of the
    median is allowed in any case.
    """
    if len(values) < 3:
        return []
    summary = summarize(values)
    allowed = max(OUTLYING * _NORMAL_MAD * summary.mad, 0.01 * summary.median)
    return [place for place, value in enumerate(values) if abs(value - summary.median) > allowed]


def compare(first: Sequence[float], other: Sequence[float]) -> Comparison:
    """Compare two rows that were taken in the same rounds, in the order of those; values must be above 0."""
    ratios = sorted(math.log(b / a) for a, b in zip(first, other, strict=True))
    middle = statistics.median(ratios)
    low, high = _median_interval(ratios, RATIO_CONFIDENCE)
    if low is None or high is None:
        return Comparison(verdict=NO_DIFFERENCE, ratio=math.exp(middle), low=None, high=None)
    least = math.log1p(LEAST_DIFFERENCE)
    verdict = NO_DIFFERENCE
    if low > 0 and middle > least:
        verdict = "slower"
    elif high < 0 and middle < -least:
        verdict = "faster"
    return Comparison(verdict=verdict, ratio=math.exp(middle), low=math.exp(low), high=math.exp(high))


def _median_interval(ordered: Sequence[float], confidence: float) -> tuple[float | None, float | None]:
    """Return the narrowest pair of samples, as far from either end, that is sure enough to have the median between."""
    count = len(ordered)
    place, below = -1, 0.0
    # As many samples lie below the true median as heads fall.
    while (below := below + math.comb(count, place + 1) / 2**count) <= (1 - confidence) / 2:
        place += 1
    return (ordered[place], ordered[-1 - place]) if place >= 0 else (None, None)
