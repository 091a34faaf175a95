import re

from pyexec.domain import errors
from pyexec.domain.errors import InvalidArgumentError, PyexecError


def every_error(root: type[PyexecError] = PyexecError) -> list[type[PyexecError]]:
    return [found for kind in root.__subclasses__() for found in (kind, *every_error(kind))]


def test_every_error_has_a_code_of_its_own() -> None:
    codes = [kind.code for kind in every_error()]

    assert len(set(codes)) == len(codes)
    assert "internal" not in codes


def test_the_drawing_in_the_docstring_names_every_error_and_its_code() -> None:
    drawn = dict(re.findall(r"[├└]── (\w+) +(\w+)", errors.__doc__ or ""))

    assert drawn == {kind.__name__: kind.code for kind in every_error()}


def test_an_error_with_a_hint_says_both() -> None:
    assert InvalidArgumentError("No.", hint="Do that.").sentence() == "No. Do that."


def test_an_error_without_a_hint_says_its_message() -> None:
    assert InvalidArgumentError("No.").sentence() == "No."


def test_details_are_values_by_name() -> None:
    assert InvalidArgumentError("No.", free_bytes=3).details == {"free_bytes": 3}
