import pytest

from pyexec.domain.errors import InvalidArgumentError
from pyexec.environments.python_versions import parse_request, show


@pytest.mark.parametrize(
    ("text", "fits", "does_not"),
    [
        ("3.13", (3, 13, 2), (3, 12, 9)),
        (" 3.13 ", (3, 13, 0), (3, 1, 3)),
        ("3.13.2", (3, 13, 2), (3, 13, 3)),
        (">=3.11", (3, 14, 0), (3, 10, 9)),
        (">=3.11,<3.14", (3, 13, 9), (3, 14, 0)),
        ("==3.12.*", (3, 12, 4), (3, 13, 0)),
        ("~=3.11", (3, 12, 0), (3, 10, 0)),
        ("!=3.12.1", (3, 12, 2), (3, 12, 1)),
    ],
)
def test_a_request_accepts_what_it_says(text: str, fits: tuple[int, int, int], does_not: tuple[int, int, int]) -> None:
    request = parse_request(text)
    assert request.accepts(fits)
    assert not request.accepts(does_not)


@pytest.mark.parametrize(
    "text",
    ["", "3", "python3.13", "3.13t", "latest", "^3.11", ">=", ">=3.11 <3.14", "3.13.2.1", "pypy", "--help", "3.x"],
)
def test_anything_else_is_refused_with_the_value_and_the_allowed_forms(text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        parse_request(text)
    assert caught.value.message.startswith(f"python_version is {text!r}; allowed are '3.13', '3.13.2', a range")


def test_a_version_takes_the_first_and_a_range_the_newest() -> None:
    assert not parse_request("3.13").newest
    assert parse_request(">=3.13").newest


def test_narrowed_is_what_both_accept() -> None:
    both = parse_request(">=3.11").narrowed(parse_request("<3.13"))
    assert [version for version in ((3, 10, 0), (3, 11, 0), (3, 13, 0)) if both.accepts(version)] == [(3, 11, 0)]
    assert parse_request(both.text).accepts((3, 12, 9))


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [("3.9", ">=3.11", False), ("3.13", ">=3.11", True), (">=3.12", "<3.12", False), ("3.13", ">=3.13.5", True)],
)
def test_possible_tells_whether_two_requests_can_meet(one: str, other: str, *, meet: bool) -> None:
    assert parse_request(one).narrowed(parse_request(other)).possible() is meet


def test_versions_are_shown_as_people_write_them() -> None:
    assert show((3, 13, 2)) == "3.13.2"
