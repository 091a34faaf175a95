"""What an operator says about folders of data."""

import pytest

from pyexec.domain.principals import Principal, is_called
from pyexec.domain.sandboxes import parse_data


def test_folders_of_data_have_names_and_may_be_for_some() -> None:
    everybodys, some = parse_data("sales=/srv/sales, hr-1=/srv/h r;ann; https://id|bob")
    assert (everybodys.place, everybodys.path, everybodys.owners) == ("/data/sales", "/srv/sales", ())
    assert (some.place, some.path, some.owners) == ("/data/hr-1", "/srv/h r", ("ann", "https://id|bob"))
    ann, bob, eve = (
        Principal(issuer=issuer, subject=subject).key
        for issuer, subject in (("local", "ann"), ("https://id", "bob"), ("https://other", "ann"))
    )
    assert [everybodys.is_for(owner) for owner in (ann, bob, eve)] == [True, True, True]
    assert [some.is_for(owner) for owner in (ann, bob, eve)] == [True, True, False]


@pytest.mark.parametrize(
    "text", ["", "sales", "=/srv", "sales=srv", "a/b=/srv", "..=/srv", "a=/x,a=/y", "a=/x;", "a=/x,", "a=/x\0y"]
)
def test_what_is_no_folder_of_data_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no folder|twice"):
        parse_data(text)


def test_a_name_with_marks_of_our_own_is_nobody_elses() -> None:
    owner = Principal(issuer="https://id|x", subject="a|b").key
    assert is_called(owner, "https://id|x|a|b")
    assert not is_called(owner, "a|b")
