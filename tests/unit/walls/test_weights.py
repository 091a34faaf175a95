"""Who gets how much processor time where there is not enough for all."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import cast

import pytest

from pyexec.walls.bubblewrap.boxes import Box
from pyexec.walls.bubblewrap.weights import BEGINNING, LEFT_BEHIND, Weights


class Weighed:
    """Knows the weight that it was given last."""

    def __init__(self) -> None:
        self.share = 1.0
        self.gives_way = False
        self.used = 0.0

    def weigh(self, share: float, *, gives_way: bool = False) -> None:
        self.share, self.gives_way = share, gives_way

    def cpu_seconds(self) -> float:
        return self.used


def boxes(count: int) -> tuple[list[Weighed], list[Box]]:
    made = [Weighed() for _ in range(count)]
    return made, [cast("Box", one) for one in made]


@contextmanager
def at_work(weights: Weights, owner: str, box: Box) -> Generator[None]:
    weights.begin(owner, box)
    try:
        yield
    finally:
        weights.end(owner, box)


def test_the_sandboxes_of_one_owner_share_what_another_has_for_one() -> None:
    weights, (seen, (first, second, other)) = Weights(), boxes(3)
    with at_work(weights, "a", first), at_work(weights, "a", second), at_work(weights, "b", other):
        for owner, box in (("a", first), ("a", second), ("b", other)):
            weights.settle(owner, box)
        assert [one.share for one in seen] == [0.5, 0.5, 1.0]


def test_what_has_just_begun_counts_more_until_it_has_settled() -> None:
    weights, (seen, (old, new)) = Weights(), boxes(2)
    with at_work(weights, "a", old):
        weights.settle("a", old)
        with at_work(weights, "a", new):
            assert [one.share for one in seen] == [1.0, BEGINNING / 2]
            weights.settle("a", new)
            assert [one.share for one in seen] == [0.5, 0.5]
        assert [one.share for one in seen] == [1.0, LEFT_BEHIND]


def test_what_has_settled_gives_way_where_all_owners_have_as_many_of_those() -> None:
    weights, (seen, (first, second, other)) = Weights(), boxes(3)
    with at_work(weights, "a", first), at_work(weights, "a", second):
        assert [one.gives_way for one in seen] == [False, False, False]
        weights.settle("a", first)
        assert [one.gives_way for one in seen] == [True, False, False]
        with at_work(weights, "b", other):
            weights.settle("b", other)
            assert [one.gives_way for one in seen] == [True, False, True]
            weights.settle("a", second)
            assert [one.gives_way for one in seen] == [False, False, False]
            assert [one.share for one in seen] == [0.5, 0.5, 1.0]
        assert [one.gives_way for one in seen] == [True, True, False]
    assert [(one.share, one.gives_way) for one in seen] == [(LEFT_BEHIND, False)] * 3


def test_nothing_gives_way_to_what_was_left_behind() -> None:
    weights, (seen, (working, left)) = Weights(), boxes(2)
    with at_work(weights, "a", working), at_work(weights, "b", left):
        pass
    with at_work(weights, "a", working):
        weights.settle("a", working)
        due = weights.look(1000.0)
        for used, gives_way in ((5.0, False), (5.5, False), (5.51, True), (9.0, False)):
            seen[1].used = used
            assert weights.look(due - 0.01) == due
            due = weights.look(due)
            assert seen[0].gives_way is gives_way


def test_what_was_left_behind_is_seen_in_a_session_that_is_used_all_the_time() -> None:
    weights, (seen, (working, left, other)) = Weights(), boxes(3)
    with at_work(weights, "a", working):
        weights.settle("a", working)
        due = weights.look(weights.look(1000.0))
        assert seen[0].gives_way
        for _ in range(3):
            for box in (left, other):
                with at_work(weights, "b", box):
                    pass
            seen[1].used += 0.04  # Each alone is hardly at work.
            seen[2].used += 0.04
            for box in (left, other):
                with at_work(weights, "b", box):
                    pass
            due = weights.look(due)
            assert not seen[0].gives_way


def test_what_is_to_come_to_its_end_gives_way_no_more() -> None:
    weights, (seen, (first, second)) = Weights(), boxes(2)
    with at_work(weights, "a", first), at_work(weights, "a", second):
        for box in (first, second):
            weights.settle("a", box)
        weights.hurry("a", first)
        assert [(one.share, one.gives_way) for one in seen] == [(BEGINNING / 2, False), (0.5, True)]
    assert [(one.share, one.gives_way) for one in seen] == [(LEFT_BEHIND, False)] * 2


def test_what_a_cell_leaves_running_has_the_least_and_the_others_have_theirs_again() -> None:
    weights, (seen, (staying, leaving)) = Weights(), boxes(2)
    with at_work(weights, "a", staying):
        weights.settle("a", staying)
        with pytest.raises(KeyError), at_work(weights, "a", leaving):
            raise KeyError
        assert [one.share for one in seen] == [1.0, LEFT_BEHIND]
        weights.settle("a", leaving)  # Late, as its clock is another's.
        assert [one.share for one in seen] == [1.0, LEFT_BEHIND]


def test_what_is_over_at_once_costs_the_others_nothing_and_what_they_gave_up_comes_back() -> None:
    weights, (seen, (old, other, short)) = Weights(), boxes(3)
    with at_work(weights, "a", old), at_work(weights, "a", other):
        weights.settle("a", other)
        with at_work(weights, "a", short):
            assert [one.share for one in seen[:2]] == [BEGINNING / 2, 0.5]
            weights.settle("a", old)
            assert [one.share for one in seen] == [1 / 3, 1 / 3, BEGINNING / 3]
        assert [one.share for one in seen] == [0.5, 0.5, LEFT_BEHIND]
