import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyexec.environments.credentials import (
    is_readable,
    masked,
    restored,
    stripped,
    variables_for_git,
    without_those_for_git,
)

PLAIN = [
    "rich>=13",
    "https://x.org/simple",
    "https://x.org:8443/simple/@scope/lib.whl",
    "git+https://x.org/lib@v1.0#subdirectory=py",
    "git+ssh://git@x.org/lib@v1",
    "ssh://git@x.org/lib",
    "git+SSH://git@x.org/lib",
    "https://x.org#a@b.org",
    "file:///srv/my@lib",
    "write to https://x.org or to me@x.org",
    "",
]
"""Nothing here is a secret."""


@pytest.mark.parametrize("text", PLAIN)
def test_what_has_no_credentials_stays_as_it_is(text: str) -> None:
    assert masked(text) == text
    assert stripped(text) == text
    assert restored(text, [text]) == text


@pytest.mark.case("B037")
@pytest.mark.parametrize(
    ("text", "shown", "kept"),
    [
        ("https://tok3n@x.org/simple", "https://***@x.org/simple", "https://x.org/simple"),
        ("https://user:tok3n@x.org:8443/a", "https://***@x.org:8443/a", "https://x.org:8443/a"),
        ("http://:tok3n@x.org", "http://***@x.org", "http://x.org"),
        ("HTTPS://tok3n@x.org/simple", "HTTPS://***@x.org/simple", "HTTPS://x.org/simple"),
        ("git+https://tok3n@x.org/lib@v1", "git+https://***@x.org/lib@v1", "git+https://x.org/lib@v1"),
        ("git+ssh://git:tok3n@x.org/lib", "git+ssh://***@x.org/lib", "git+ssh://x.org/lib"),
        ("https://u%40x.org:tok3n%2Fa@x.org/a", "https://***@x.org/a", "https://x.org/a"),
        ("https://user:tok@3n@x.org/a", "https://***@x.org/a", "https://x.org/a"),
        ("https://user:tok'3\"n;!$&()*+,=@x.org/a", "https://***@x.org/a", "https://x.org/a"),
        ("mine=https://tok3n@x.org/a", "mine=https://***@x.org/a", "mine=https://x.org/a"),
        ("lib @ https://tok3n@x.org/a ; x", "lib @ https://***@x.org/a ; x", "lib @ https://x.org/a ; x"),
        ("(https://tok3n@x.org/a), 'https://b@y.org'", "(https://***@x.org/a), 'https://***@y.org'", None),
    ],
)
def test_credentials_are_shown_as_stars_and_not_kept(text: str, shown: str, kept: str | None) -> None:
    assert masked(text) == shown
    assert stripped(text) == (kept if kept is not None else shown.replace("***@", ""))


def test_every_line_of_a_text_is_looked_at() -> None:
    text = "error: https://tok3n@x.org/a\n  cause: http://u:tok3n@y.org\n"
    assert masked(text) == "error: https://***@x.org/a\n  cause: http://***@y.org\n"


# Whatever may stand between a scheme and a host, and what must not: a URL's path begins with the first of these.
SECRETS = st.text(st.characters(exclude_characters="/?#", exclude_categories=("Z", "C")))
SCHEMES = st.sampled_from(["https", "http", "HTTP", "git+https", "hg+http", "ftp"])


@pytest.mark.case("B037")
@given(
    scheme=SCHEMES,
    secret=SECRETS,
    before=st.sampled_from(["", "lib @ ", "--index=", "error: '", "https://x.org, ", "https://x.org "]),
    after=st.sampled_from(["", "/simple", "/lib@v1#egg=x", ":8080/a ; python_version > '3'", "' and me@y.org"]),
)
def test_a_secret_never_survives(scheme: str, secret: str, before: str, after: str) -> None:
    text = f"{before}{scheme}://S3CR3T{secret}S3CR3T@host.org{after}"
    for what in (masked(text), stripped(text)):
        assert "S3CR3T" not in what
        assert f"{'***@' if what == masked(text) else ''}host.org{after}" in what
        assert what.startswith(before)


@given(st.lists(st.sampled_from(["https://", "@", "S3CR3T", "/", " ", ":", "git+ssh://", "#", "x.org"])).map("".join))
def test_what_was_stripped_once_has_nothing_left_to_strip(text: str) -> None:
    assert masked(masked(text)) == masked(text)
    assert stripped(stripped(text)) == stripped(text)


# -- putting them back ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "asked",
    [
        "lib @ https://user:tok3n@x.org/lib-1.whl",
        "lib @ https://tok3n@x.org/lib-1.whl ; python_version > '3'",
        "lib[x] @ git+https://tok3n@x.org/lib.git@main#subdirectory=py",
        "lib @ git+https://tok3n@x.org/lib.git",
        "lib @ git+ssh://git:tok3n@x.org/lib.git",
        "lib @ https://user:a;b@c\\1@x.org/lib-1.whl",
        "lib @ https://tok3n@x.org/@scope/lib.whl",
    ],
)
def test_a_lock_gets_the_credentials_of_what_was_asked_for_back(asked: str) -> None:
    assert restored(stripped(asked), [asked]) == asked
    assert restored(f"{stripped(asked)}\nrich==15.0.0\n", ["rich", asked]) == f"{asked}\nrich==15.0.0\n"


def test_the_revision_may_have_become_a_commit() -> None:
    asked = ["lib @ git+https://tok3n@x.org/lib.git@main"]
    lock = "lib @ git+https://x.org/lib.git@0123abcd#subdirectory=py"
    assert restored(lock, asked) == "lib @ git+https://tok3n@x.org/lib.git@0123abcd#subdirectory=py"


def test_each_address_gets_its_own_credentials() -> None:
    asked = ["a @ https://one@x.org/a.whl", "b @ https://two@y.org/a.whl", "ab @ https://three@x.org/a.whl.whl"]
    assert restored("\n".join(map(stripped, asked)), asked) == "\n".join(asked)


@pytest.mark.parametrize(
    "other",
    ["b @ https://x.org/ab.whl", "b @ http://x.org/a", "b @ https://y.org/a", "b @ https://x.org/a.whl", "a==1"],
)
def test_no_other_address_gets_credentials(other: str) -> None:
    assert restored(other, ["a @ https://tok3n@x.org/a"]) == other


def test_credentials_for_a_host_are_not_sent_to_one_whose_name_begins_like_it() -> None:
    assert restored("b @ https://x.org.evil.example/b", ["a @ https://tok3n@x.org"]) == (
        "b @ https://x.org.evil.example/b"
    )


def test_credentials_put_back_are_not_put_back_twice() -> None:
    asked = ["a @ https://tok3n@x.org/a"]
    assert restored(restored("a @ https://x.org/a", asked), asked) == asked[0]


def test_what_an_address_is_signed_with_is_a_secret_too() -> None:
    signed = "lib @ https://x.org/lib.whl?X-Signature=SECRET&a=b#sha256=00"
    assert masked(signed) == "lib @ https://x.org/lib.whl?***#sha256=00"
    bare = stripped(signed)
    assert bare == "lib @ https://x.org/lib.whl#sha256=00"
    assert restored("lib @ https://x.org/lib.whl", [signed]) == "lib @ https://x.org/lib.whl?X-Signature=SECRET&a=b"


@pytest.mark.parametrize(
    "url", ["http://user:pa/SECRET@host/simple", "https://u:a#b@h/", "https://u:a?b@h/", "https://[x/"]
)
def test_a_password_that_is_not_encoded_cannot_be_told_from_a_path(url: str) -> None:
    assert not is_readable(url)
    assert is_readable("git+https://u:p%2F@host:8443/x.git@v1")
    assert is_readable("file:///srv/x")


def test_git_gets_the_credentials_of_its_repositories_by_variables() -> None:
    wanted = ["lib @ git+https://ann:S%40T@x.org/lib.git@v1", "other @ https://u:p@x.org/o.whl"]
    assert [without_those_for_git(one) for one in wanted] == ["lib @ git+https://x.org/lib.git@v1", wanted[1]]
    assert variables_for_git(wanted, {"GIT_CONFIG_COUNT": "2"}) == {
        "GIT_CONFIG_KEY_2": "http.https://x.org/lib.git.extraHeader",
        "GIT_CONFIG_VALUE_2": "Authorization: Basic YW5uOlNAVA==",
        "GIT_CONFIG_COUNT": "3",
    }
    assert variables_for_git(wanted[1:], {}) == {}
