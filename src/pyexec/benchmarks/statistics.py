"""What a row of samples says, and whether two rows differ by more than noise.

Nothing here supposes a distribution: run times have long tails. Rows of a comparison were taken in rounds, each variant
once in each, in a shuffled order; so two variants that are the same have differences that fall to either side alike,
and the signed-rank interval holds exactly, whatever else happened on the machine meanwhile.
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
_MOST_ROUNDS_EXACTLY = 60


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
        ratio: The Hodges-Lehmann estimate over the rounds.
        low, high: The interval that it lies in with `RATIO_CONFIDENCE`, of the signed ranks; None with too few rounds.
    """

    verdict: Verdict
    ratio: float
    low: float | None
    high: float | None


def summarize(values: Sequence[float]) -> Summary:
    """Sum up a row; it must not be empty."""
    ordered = sorted(values)
    median = statistics.median(ordered)
    low, high = _median_interval(ordered)
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
    logs = [math.log(b / a) for a, b in zip(first, other, strict=True)]
    means = sorted((a + b) / 2 for place, a in enumerate(logs) for b in logs[place:])
    middle = statistics.median(means)
    rank = _signed_rank(len(logs))
    if rank is None:
        return Comparison(verdict=NO_DIFFERENCE, ratio=math.exp(middle), low=None, high=None)
    low, high = means[rank], means[-1 - rank]
    least = math.log1p(LEAST_DIFFERENCE)
    verdict = NO_DIFFERENCE
    if low > 0 and middle > least:
        verdict = "slower"
    elif high < 0 and middle < -least:
        verdict = "faster"
    return Comparison(verdict=verdict, ratio=math.exp(middle), low=math.exp(low), high=math.exp(high))


def _median_interval(ordered: Sequence[float]) -> tuple[float | None, float | None]:
    """Return the narrowest pair of samples, the same number from either end, that is sure enough."""
    count = len(ordered)
    place, below = -1, 0.0
    # As many samples lie below the true median as heads fall.
    while (below := below + math.comb(count, place + 1) / 2**count) <= (1 - MEDIAN_CONFIDENCE) / 2:
        place += 1
    return (ordered[place], ordered[-1 - place]) if place >= 0 else (None, None)


def _signed_rank(count: int) -> int | None:
    """Return how many of the sorted Walsh means to leave out at either end; None where that cannot be sure enough.

    Each set of rounds is as likely as any other to be those where the first was the quicker one.
    """
    if count > _MOST_ROUNDS_EXACTLY:
        mean, deviation = count * (count + 1) / 4, math.sqrt(count * (count + 1) * (2 * count + 1) / 24)
        return math.floor(mean - statistics.NormalDist().inv_cdf((1 + RATIO_CONFIDENCE) / 2) * deviation)
    allowed = (1 - RATIO_CONFIDENCE) / 2 * 2**count
    most = count * (count + 1) // 2
    ways = [1] + [0] * most  # How many sets of ranks have a sum of so much.
    for rank in range(1, count + 1):
        for total in range(most, rank - 1, -1):
            ways[total] += ways[total - rank]
    left_out, sets = -1, 0
    for total, number in enumerate(ways):
        sets += number
        if sets > allowed:
            break
        left_out = total
    return left_out if left_out >= 0 else None
