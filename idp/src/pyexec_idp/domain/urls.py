"""The URLs that decide where codes go and whom tokens are for: which are allowed, and which are the same."""

import re
from urllib.parse import SplitResult, urlsplit

from pyexec_idp.domain.errors import InvalidRedirectError, InvalidSettingError, InvalidValueError

LONGEST = 2000
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_PRINTABLE = re.compile(r"[!#-;=?-\[\]_a-z~]+")
"""What RFC 3986 allows in a URI; no backslash, quote, space or control character, which browsers read in their way."""
_DEFAULT_PORTS = {"http": 80, "https": 443}


def check_redirect(uri: str, schemes: tuple[str, ...] = ()) -> None:
    """Check that a redirect URI may be registered: https, http to this very machine, or a scheme of `schemes`.

    Raises:
        InvalidRedirectError: It may not.
    """
    parts = _split(uri)
    if parts is None:
        raise InvalidRedirectError(f"The redirect URI {_shown(uri)} cannot be read.")
    if "#" in uri or parts.username is not None or parts.password is not None:
        raise InvalidRedirectError(f"The redirect URI {_shown(uri)} has a fragment or a user name in it.")
    if parts.scheme == "https" and parts.hostname:
        return
    if parts.scheme == "http" and parts.hostname in _LOOPBACK:
        return
    if parts.scheme in schemes:
        return
    raise InvalidRedirectError(
        f"The redirect URI {_shown(uri)} is neither https nor http to 127.0.0.1, [::1] or localhost.",
        hint="PYEXEC_IDP_REDIRECT_SCHEMES allows schemes of applications.",
    )


def redirect_matches(registered: str, asked: str) -> bool:
    """Tell whether a code may go to `asked`: the same, letter by letter, but for the port of a loopback address.

    A program that waits for the answer on its own machine takes whatever port is free (RFC 8252 section 7.3). The host
    is compared as it is written: localhost and 127.0.0.1 are two.
    """
    if registered == asked:
        return True
    known, wanted = _split(registered), _split(asked)
    if known is None or wanted is None or "#" in asked or wanted.username is not None or wanted.password is not None:
        return False
    if known.scheme != "http" or known.hostname not in _LOOPBACK:
        return False
    return (known.scheme, known.hostname, known.path, known.query) == (
        wanted.scheme,
        wanted.hostname,
        wanted.path,
        wanted.query,
    ) and asked.startswith("http://")


def is_loopback(uri: str) -> bool:
    """Tell whether a redirect URI leads to the machine that the browser runs on."""
    parts = _split(uri)
    return parts is not None and parts.scheme == "http" and parts.hostname in _LOOPBACK


def shown_host(uri: str) -> str:
    """Return where a redirect URI leads, for a person to read."""
    parts = _split(uri)
    if parts is None:
        return uri
    return parts.hostname or f"{parts.scheme}:"


def canonical_resource(url: str) -> str | None:
    """Return the one way to write a resource's URL, None where it is none (RFC 8707: absolute, no fragment).

    Scheme and host are compared in lower case, without the scheme's own port; a path of "/" is none.
    """
    parts = _split(url)
    if parts is None or parts.scheme not in _DEFAULT_PORTS or not parts.hostname or "#" in url or "@" in parts.netloc:
        return None
    port = parts.port
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    at = host if port is None or port == _DEFAULT_PORTS[parts.scheme] else f"{host}:{port}"
    path = "" if parts.path == "/" else parts.path
    return f"{parts.scheme}://{at}{path}" + (f"?{parts.query}" if parts.query else "")


def check_resource(url: str) -> str:
    """Return the one way to write a resource's URL.

    Raises:
        InvalidValueError: It is no absolute http or https URL, or has a fragment.
    """
    found = canonical_resource(url)
    if found is None:
        raise InvalidValueError(f"The resource {_shown(url)} is no absolute http or https URL without a fragment.")
    return found


def check_issuer(url: str) -> str:
    """Check the issuer's URL: https (http on the loopback only), with no query, fragment or final slash.

    Raises:
        InvalidSettingError: It is of another kind.
    """
    parts = _split(url)
    fits = (
        parts is not None
        and (parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK))
        and bool(parts.hostname)
        and not (parts.query or "#" in url or "?" in url or "@" in parts.netloc or url.endswith("/"))
        and canonical_resource(url) == url
    )
    if not fits:
        raise InvalidSettingError(
            f"The issuer {_shown(url)} cannot be used.",
            hint="An https URL (http on 127.0.0.1 or localhost), as https://id.example.com, without a final slash.",
        )
    return url


def _split(uri: str) -> SplitResult | None:
    if not 0 < len(uri) <= LONGEST or _PRINTABLE.fullmatch(uri) is None:
        return None
    try:
        parts = urlsplit(uri)
        port = parts.port
    except ValueError:  # Such as a port that is no number.
        return None
    return parts if parts.scheme and port != 0 else None


def _shown(text: str) -> str:
    return repr(text[:200])
