"""Clients whose id is the URL of a document that describes them (client id metadata documents)."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from urllib.parse import urlsplit

from pyexec_idp.domain.secrets import Clock, wall_clock
from pyexec_idp.domain.urls import canonical_resource
from pyexec_idp.domain.values import Client, Origin
from pyexec_idp.grants.fetching import Document, UnfetchableError
from pyexec_idp.grants.registration import MetadataError, described_client, read_object

_LONGEST_ID = 500
_KEPT_LEAST = 60.0
_KEPT_USUALLY = 300.0
_KEPT_MOST = 86400.0
_MOST = 1000


class Documents:
    """Finds clients by their documents, and keeps what it found for a while; that there was nothing, too."""

    def __init__(
        self, fetch: Callable[[str], Document], redirect_schemes: tuple[str, ...] = (), now: Clock = wall_clock
    ) -> None:
        self._fetch = fetch
        self._schemes = redirect_schemes
        self._now = now
        self._kept: OrderedDict[str, tuple[float, Client | None]] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, client_id: str) -> Client | None:
        """Return the client that a document describes, None where there is none."""
        if not is_client_url(client_id):
            return None
        with self._lock:
            until, client = self._kept.get(client_id, (0.0, None))
        if self._now() < until:
            return client
        client, kept_for = self._look(client_id)
        with self._lock:
            self._kept[client_id] = (self._now() + kept_for, client)
            self._kept.move_to_end(client_id)
            while len(self._kept) > _MOST:
                self._kept.popitem(last=False)
        return client

    def _look(self, client_id: str) -> tuple[Client | None, float]:
        try:
            document = self._fetch(client_id)
            said = read_object(document.body)
            if said.get("client_id") != client_id or "client_secret" in said:
                return None, _KEPT_LEAST
            # Nobody shares a secret with a document that everybody can read.
            open_client = {"token_endpoint_auth_method": "none", **said}
            client = described_client(open_client, client_id=client_id, origin=Origin.DOCUMENT, schemes=self._schemes)
        except (UnfetchableError, MetadataError):
            return None, _KEPT_LEAST
        if client.auth_method != "none":
            return None, _KEPT_LEAST
        asked = _KEPT_USUALLY if document.max_age is None else document.max_age
        return client, min(max(asked, _KEPT_LEAST), _KEPT_MOST)


def is_client_url(client_id: str) -> bool:
    """Tell whether a client's id may be a document's URL: https, with a path, and written in one way only."""
    if not client_id.startswith("https://") or len(client_id) > _LONGEST_ID:
        return False
    path = urlsplit(client_id).path
    dotted = any(part in {".", ".."} for part in path.split("/"))
    return canonical_resource(client_id) == client_id and path not in {"", "/"} and not dotted
