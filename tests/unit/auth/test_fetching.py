"""Where issuers' documents are fetched from, and where not."""

import gzip
import json
from collections.abc import Iterator

import anyio
import pytest
from fastmcp.server.auth.ssrf import is_ip_allowed

from pyexec.auth import fetching
from pyexec.auth.fetching import LARGEST, Fetcher, Reach, reach_of
from pyexec.auth.refusals import IssuerUnavailableError
from pyexec.auth.strict_json import strict_object
from tests.oauth.stand import Answer, Stand, standing

OWN = Reach(loopback=True)
JSON = {"content-type": "application/json"}


@pytest.fixture
def stand() -> Iterator[Stand]:
    with standing() as made:
        yield made


@pytest.mark.parametrize(
    ("url", "reach"),
    [
        ("http://as.example/keys", Reach()),
        ("http://as.example/keys", OWN),
        ("http://10.0.0.1/keys", Reach(loopback=True, private=True)),
        ("https://127.0.0.1/keys", Reach()),
        ("https://127.0.0.1/keys", Reach(private=True)),
        ("https://[::1]/keys", Reach()),
        ("https://[::ffff:127.0.0.1]/keys", Reach()),
        ("https://10.0.0.1/keys", Reach()),
        ("https://192.168.1.1/keys", OWN),
        ("https://100.64.0.1/keys", Reach()),
        ("https://169.254.169.254/latest/meta-data", Reach()),
        ("https://169.254.169.254/latest/meta-data", Reach(private=True, loopback=True)),
        ("https://[fe80::1]/keys", Reach(private=True)),
        ("https://0.0.0.0/keys", Reach(private=True)),
        ("https://224.0.0.1/keys", Reach(private=True)),
        ("https://2130706433/keys", Reach()),
        ("https://user:secret@as.example/keys", Reach()),
        ("file:///etc/passwd", OWN),
        ("ftp://127.0.0.1/keys", OWN),
        ("gopher://127.0.0.1:70/", OWN),
        ("https:///keys", Reach()),
        ("https://as.example:99999/keys", Reach()),
        ("keys", OWN),
    ],
)
async def test_an_address_that_no_issuer_may_have_is_not_asked(url: str, reach: Reach) -> None:
    with pytest.raises(IssuerUnavailableError, match=r"no address to ask|may not have|cannot be asked: gaierror"):
        await Fetcher(is_ip_allowed).get(url, reach)


def test_an_issuer_reaches_the_own_machine_only_when_it_is_there() -> None:
    assert reach_of("http://127.0.0.1:8100", private=False) == OWN
    assert reach_of("https://as.example", private=False) == Reach()
    assert reach_of("https://localhost.evil.example", private=True) == Reach(private=True)


async def test_a_document_is_fetched(stand: Stand) -> None:
    stand.answers["/a?b=c"] = {"x": 1}
    assert await Fetcher(is_ip_allowed).get(f"{stand.url}/a?b=c", OWN) == {"x": 1}


def _redirect() -> Answer:
    return 302, {"location": "/there"}, b""


def _large() -> Answer:
    return 200, JSON, b" " * (LARGEST + 1)


def _bomb() -> Answer:
    return 200, {**JSON, "content-encoding": "gzip"}, gzip.compress(b" " * (LARGEST + 1))


def _error() -> Answer:
    return 500, JSON, b"{}"


def _page() -> Answer:
    return 200, JSON, b"<html>"


@pytest.mark.parametrize("answer", [_redirect, _large, _bomb, _error, _page])
async def test_what_is_no_plain_small_document_is_refused(stand: Stand, answer: object) -> None:
    stand.answers.update({"/here": answer, "/there": {}})
    with pytest.raises(IssuerUnavailableError):
        await Fetcher(is_ip_allowed).get(f"{stand.url}/here", OWN)
    assert "/there" not in stand.asked


async def test_who_never_answers_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "SECONDS", 0.1)
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        with pytest.raises(IssuerUnavailableError, match="does not answer"):
            await Fetcher(is_ip_allowed).get(f"http://127.0.0.1:{port}/", OWN)


@pytest.mark.parametrize("text", ['{"a":1,"a":2}', '{"b":{"a":1,"a":1}}', '{"a":NaN}', "[]", "1", "{", "[" * 100_000])
def test_json_that_two_readers_could_understand_differently_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        strict_object(text.encode())


def test_other_json_is_read() -> None:
    assert strict_object(json.dumps({"a": [1, {"b": None}]}).encode()) == {"a": [1, {"b": None}]}
