"""Where clients are found: in the store, or at the URL that is their id."""

from collections.abc import Callable

from pyexec_idp.domain.secrets import Clock, wall_clock
from pyexec_idp.domain.values import Client
from pyexec_idp.stores.clients import ClientStore

FindDocument = Callable[[str], Client | None]
"""Returns the client that a document at a URL describes, None where there is none."""


class Directory:
    """Finds clients by their id."""

    def __init__(self, store: ClientStore, find_document: FindDocument | None, now: Clock = wall_clock) -> None:
        self._store = store
        self._find_document = find_document
        self._now = now

    @property
    def reads_documents(self) -> bool:
        """Whether a client's id may be the URL of its document."""
        return self._find_document is not None

    def find(self, client_id: str) -> Client | None:
        """Return the client of an id."""
        if client_id.startswith("https://") and self._find_document is not None:
            return self._find_document(client_id)
        return self._store.get(client_id)

    def known(self, client_id: str) -> Client | None:
        """Return the client of an id without asking anywhere else for it."""
        return self._store.get(client_id)

    def used(self, client_id: str) -> None:
        """Note that it got tokens."""
        self._store.change(client_id, {"used_at": self._now()})
