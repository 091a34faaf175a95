"""The statistics of benchmarks, on noise that is made with a fixed seed."""

import math
import random
from collections.abc import Callable

import pytest

from pyexec.benchmarks.statistics import NO_DIFFERENCE, compare, outliers, summarize

Noise = Callable[[random.Random, int], list[float]]


def quiet(noise: random.Random, runs: int) -> list[float]:
    """Return times that scatter by one part in a hundred."""
    return [1 + abs(noise.gauss(0, 0.01)) for _run in range(runs)]


def spiky(noise: random.Random, runs: int) -> list[float]:
    """Return times of which one in ten is up to twice as long."""
    return [time + (noise.random() if noise.random() < 0.1 else 0) for time in quiet(noise, runs)]


def test_a_row_is_summed_up_by_its_median_and_what_is_around_it() -> None:
    summary = summarize([5.0, 1.0, 2.0, 4.0, 9.0])
    assert (summary.median, summary.minimum, summary.maximum, summary.mad) == (4.0, 1.0, 9.0, 2.0)
    assert (summary.low, summary.high) == (None, None)


@pytest.mark.parametrize(
    ("count", "interval"), [(5, (None, None)), (6, (1, 6)), (9, (2, 8)), (10, (2, 9)), (20, (6, 15)), (100, (40, 61))]
)
def test_the_interval_of_the_median_is_that_of_the_tables(count: int, interval: tuple[int | None, int | None]) -> None:
    summary = summarize([float(number) for number in range(1, count + 1)])
    assert (summary.low, summary.high) == interval


@pytest.mark.parametrize(("rounds", "place"), [(8, 0), (11, 0), (12, 1), (15, 2), (20, 3), (30, 7)])
def test_the_interval_of_a_ratio_leaves_out_as_many_rounds_as_the_table_of_the_sign_test(
    rounds: int, place: int
) -> None:
    found = compare([1.0] * rounds, [1.0 + number for number in range(rounds)])
    assert (found.low, found.high) == (pytest.approx(1 + place), pytest.approx(rounds - place))


@pytest.mark.case("B136")
@pytest.mark.parametrize("noise", [quiet, spiky], ids=["quiet", "spiky"])
@pytest.mark.parametrize("runs", [8, 15, 40])
def test_two_that_are_the_same_are_called_different_in_at_most_one_of_twenty(noise: Noise, runs: int) -> None:
    seeded = random.Random(20)
    drift = [1 + 0.5 * number / runs for number in range(runs)]  # The machine gets slower meanwhile.
    called = [
        compare(*([a * b for a, b in zip(drift, noise(seeded, runs), strict=True)] for _variant in range(2))).verdict
        for _comparison in range(400)
    ]
    assert sum(verdict != NO_DIFFERENCE for verdict in called) <= 400 // 20


@pytest.mark.parametrize(("factor", "verdict"), [(1.1, "slower"), (0.9, "faster")])
def test_what_takes_longer_is_called_so_with_the_ratio_and_its_interval(factor: float, verdict: str) -> None:
    seeded = random.Random(5)
    found = [compare(spiky(seeded, 20), [factor * time for time in spiky(seeded, 20)]) for _comparison in range(100)]
    assert sum(one.verdict == verdict for one in found) >= 90
    assert sum(one.low is not None and one.high is not None and one.low <= factor <= one.high for one in found) >= 97


def test_a_difference_of_less_than_one_in_a_hundred_is_nobodys_doing() -> None:
    first = [1.0 + number / 1e6 for number in range(30)]
    assert compare(first, [1.004 * time for time in first]).verdict == NO_DIFFERENCE
    assert compare(first, [1.02 * time for time in first]).verdict == "slower"


def test_few_rounds_are_never_enough_to_call_a_difference() -> None:
    found = compare([1.0] * 7, [2.0] * 7)
    assert (found.verdict, found.low, found.high) == (NO_DIFFERENCE, None, None)
    assert math.isclose(found.ratio, 2.0)


@pytest.mark.case("B132")
def test_a_first_run_that_is_far_off_is_an_outlier() -> None:
    assert outliers([0.55, 0.051, 0.05, 0.052, 0.05, 0.049]) == [0]


def test_ordinary_scatter_has_no_outliers() -> None:
    seeded = random.Random(1)
    assert outliers(quiet(seeded, 50)) == []
    assert outliers([1.0, 1.0, 1.0, 1.0, 1.005]) == []
    assert outliers([1.0, 3.0]) == []
