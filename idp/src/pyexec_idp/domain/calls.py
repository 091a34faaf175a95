"""An HTTP request as the rooms below the web see it: already read, and bounded."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request. Pairs keep what was sent twice; `address` is the peer's, after trusted proxies."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    form: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    cookies: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    address: str = ""

    def asked(self, name: str) -> str | None:
        """Return a parameter of the query, the first if there are several."""
        return _first(self.query, name)

    def filled(self, name: str) -> str | None:
        """Return a field of the form, the first if there are several."""
        return _first(self.form, name)


def _first(pairs: tuple[tuple[str, str], ...], name: str) -> str | None:
    return next((value for key, value in pairs if key == name), None)
