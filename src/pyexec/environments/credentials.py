"""Secrets in URLs: never shown, never kept.

`https://user:token@host/simple` is used as it is, shown as `https://***@host/simple` and kept as
`https://host/simple`. So is what follows a `?`: whoever signs an address puts the signature there. The user of an SSH
address (`git+ssh://git@host`) is no secret and stays.
"""

import base64
import re
from collections.abc import Iterable, Mapping
from urllib.parse import unquote, urlsplit

HOW_TO_ENCODE = "In a password '/', '?', '#' and '@' are written as %2F, %3F, %23 and %40."
# A password may have an `@` of its own in it, and quotes: only the last `@` before the path ends it.
_IN_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<secret>[^/?#\s]+)@")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s#]+")
_QUERY = re.compile(r"(?P<address>https?://[^\s?#'\"`)]+)\?[^\s#'\"`)]+", re.IGNORECASE)
SHORTEST_SECRET = 6
_GIT = re.compile(r"git\+https?://", re.IGNORECASE)


def masked(text: str) -> str:
    """Return the text with `***` in place of the credentials in its URLs."""
    text = _IN_URL.sub(lambda match: match[0] if _is_plain(match) else f"{match['scheme']}://***@", text)
    return _QUERY.sub(r"\g<address>?***", text)


def stripped(text: str) -> str:
    """Return the text without the credentials in its URLs."""
    text = _IN_URL.sub(lambda match: match[0] if _is_plain(match) else f"{match['scheme']}://", text)
    return _QUERY.sub(r"\g<address>", text)


def is_readable(url: str) -> bool:
    """Tell whether host and credentials of a URL can be told apart, as in `http://user:pa/ss@host` they cannot."""
    try:
        parts = urlsplit(url.removeprefix("git+"))
        _port = parts.port
    except ValueError:
        return False
    return bool(parts.hostname) or parts.scheme == "file"


def secrets_in(texts: Iterable[str]) -> list[str]:
    """Return the parts of URLs that may be credentials, the longest first, also where a URL is malformed."""
    found: set[str] = set()
    for text in texts:
        for part in text.split("://")[1:]:
            secret = part.rpartition("@")[0]
            found |= {one for one in (secret, *secret.split(":", 1)) if len(one) >= SHORTEST_SECRET}
    return sorted(found, key=len, reverse=True)


def restored(text: str, originals: Iterable[str]) -> str:
    """Return a stripped text with the credentials put back that the texts it was made from have in their URLs.

    What stands after an `@` in a path (the revision of a repository) may have changed meanwhile.
    """
    urls = [url for original in originals for url in _URL.findall(original)]
    pairs = {_without_revision(stripped(url)): _without_revision(url) for url in urls if stripped(url) != url}
    for bare, full in sorted(pairs.items(), key=lambda pair: -len(pair[0])):
        text = re.sub(rf"{re.escape(bare)}(?=[/@?#\s]|$)", full.replace("\\", r"\\"), text)
    return text


def without_those_for_git(text: str) -> str:
    """Return the text without the credentials in `git+https://…` URLs, which git would show on its command line."""
    return _URL.sub(lambda match: stripped(match[0]) if _GIT.match(match[0]) else match[0], text)


def variables_for_git(texts: Iterable[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return variables that give git what `without_those_for_git` takes away; those of `environ` go on counting."""
    known = environ.get("GIT_CONFIG_COUNT", "")
    number = int(known) if known.isdecimal() else 0
    variables: dict[str, str] = {}
    for url in [url for text in texts for url in _URL.findall(text) if _GIT.match(url)]:
        found = _IN_URL.match(url)
        if found is None:
            continue
        user, _colon, password = unquote(found["secret"]).partition(":")
        basic = base64.b64encode(f"{user}:{password}".encode()).decode()
        repository = _without_revision(stripped(url))[len("git+") :]
        variables[f"GIT_CONFIG_KEY_{number}"] = f"http.{repository}.extraHeader"
        variables[f"GIT_CONFIG_VALUE_{number}"] = f"Authorization: Basic {basic}"
        number += 1
    return variables | {"GIT_CONFIG_COUNT": str(number)} if variables else {}


def _without_revision(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host}{slash}{path.partition('@')[0]}"


def _is_plain(match: "re.Match[str]") -> bool:
    return match["scheme"].lower().endswith("ssh") and ":" not in match["secret"]
