from hypothesis import example, given
from hypothesis import strategies as st

from pyexec.domain.principals import Principal

PARTS = st.text(alphabet="ab|%27C5", max_size=6)
PRINCIPALS = st.builds(lambda i, s: Principal(issuer=i, subject=s), PARTS, PARTS)


@given(PRINCIPALS, PRINCIPALS)
@example(Principal(issuer="a|b", subject="c"), Principal(issuer="a", subject="b|c"))
@example(Principal(issuer="a%7C", subject=""), Principal(issuer="a|", subject=""))
def test_two_principals_share_a_key_only_when_they_are_the_same(one: Principal, other: Principal) -> None:
    assert (one.key == other.key) is (one == other)


def test_one_person_is_one_with_whatever_client_and_from_wherever() -> None:
    one = Principal(issuer="i", subject="s", client="desktop", address="192.0.2.1")
    other = Principal(issuer="i", subject="s", client="editor", address="2001:db8::1")
    assert one == other
    assert one.key == other.key
