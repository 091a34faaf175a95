from hypothesis import example, given
from hypothesis import strategies as st

from pyexec.domain.principals import Principal

PARTS = st.text(alphabet="ab|%27C5", max_size=6)
PRINCIPALS = st.builds(lambda i, s, c: Principal(issuer=i, subject=s, client=c), PARTS, PARTS, PARTS)


@given(PRINCIPALS, PRINCIPALS)
@example(Principal(issuer="a|b", subject="c"), Principal(issuer="a", subject="b|c"))
@example(Principal(issuer="a%7C", subject=""), Principal(issuer="a|", subject=""))
def test_two_principals_share_a_key_only_when_they_are_the_same(one: Principal, other: Principal) -> None:
    assert (one.key == other.key) is (one == other)
