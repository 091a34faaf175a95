"""Secrets in URLs: never shown, never kept.

`https://user:token@host/simple` is used as it is, shown as `https://***@host/simple` and kept as
`https://host/simple`. The user of an SSH address (`git+ssh://git@host`) is no secret and stays.
"""

import re
from collections.abc import Iterable

# A password may have an `@` of its own in it, and quotes: only the last `@` before the path ends it.
_IN_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<secret>[^/?#\s]+)@")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s#]+")


def masked(text: str) -> str:
    """Return the text with `***` in place of the credentials in its URLs."""
    return _IN_URL.sub(lambda match: match[0] if _is_plain(match) else f"{match['scheme']}://***@", text)


def stripped(text: str) -> str:
    """Return the text without the credentials in its URLs."""
    return _IN_URL.sub(lambda match: match[0] if _is_plain(match) else f"{match['scheme']}://", text)


def restored(text: str, originals: Iterable[str]) -> str:
    """Return a stripped text with the credentials put back that the texts it was made from have in their URLs.

    What stands after an `@` in a path (the revision of a repository) may have changed meanwhile.
    """
    urls = [url for original in originals for url in _URL.findall(original)]
    pairs = {_without_revision(stripped(url)): _without_revision(url) for url in urls if stripped(url) != url}
    for bare, full in sorted(pairs.items(), key=lambda pair: -len(pair[0])):
        text = re.sub(rf"{re.escape(bare)}(?=[/@?#\s]|$)", full.replace("\\", r"\\"), text)
    return text


def _without_revision(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host}{slash}{path.partition('@')[0]}"


def _is_plain(match: "re.Match[str]") -> bool:
    return match["scheme"].lower().endswith("ssh") and ":" not in match["secret"]
