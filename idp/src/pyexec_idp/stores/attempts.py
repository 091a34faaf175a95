"""What was tried lately, counted by key; and what happened, for the operator to read."""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import bindparam, delete, func, insert, select

from pyexec_idp.domain.secrets import Clock, hash_of, wall_clock
from pyexec_idp.stores.database import Database
from pyexec_idp.stores.schema import attempts, audit

_LOG = logging.getLogger("pyexec_idp.audit")
_NOTE = insert(audit)
_COUNT = (
    select(attempts.c.key, func.count())
    .where(attempts.c.key.in_(bindparam("keys", expanding=True)), attempts.c.at > bindparam("since"))
    .group_by(attempts.c.key)
)


class AttemptStore:
    """Attempts by key. Keys are kept as hashes: they hold names and addresses."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def count(self, key: str, since: float) -> int:
        """Count those of a key."""
        return self.counts((key,), since)[0]

    def counts(self, keys: Sequence[str], since: float) -> tuple[int, ...]:
        """Count those of each key, in one look."""
        hashes = [hash_of(key) for key in keys]
        with self._database.reading() as connection:
            found = connection.execute(_COUNT, {"keys": hashes, "since": since}).all()
        numbers: dict[str, int] = {key: number for key, number in found if number}
        return tuple(numbers.get(key, 0) for key in hashes)

    def add(self, keys: Iterable[str], at: float) -> None:
        """Add one for each key."""
        with self._database.writing() as connection:
            connection.execute(insert(attempts), [{"key": hash_of(key), "at": at} for key in keys])

    def forget(self, key: str) -> None:
        """Remove those of a key."""
        with self._database.writing() as connection:
            connection.execute(delete(attempts).where(attempts.c.key == hash_of(key)))


class Audit:
    """Notes what happened, never with a secret; counts it, too."""

    def __init__(self, database: Database, now: Clock = wall_clock) -> None:
        self._database = database
        self._now = now
        self._counts: Counter[str] = Counter()

    def note(
        self,
        what: str,
        *,
        user_id: str | None = None,
        client_id: str | None = None,
        address: str | None = None,
        **detail: str | list[str],
    ) -> None:
        """Note it."""
        values = {"what": what, "user_id": user_id, "client_id": client_id, "address": address, "detail": detail}
        self._counts[what] += 1
        _LOG.info(what, extra={"fields": {key: value for key, value in values.items() if value and key != "what"}})
        with self._database.writing() as connection:
            connection.execute(_NOTE, {"at": self._now(), **values})

    def latest(self, limit: int, *, user_id: str | None = None, client_id: str | None = None) -> list[dict[str, Any]]:
        """Return the latest, newest first; of one user or client only, where one is named."""
        query = select(audit).order_by(audit.c.number.desc()).limit(limit)
        if user_id is not None:
            query = query.where(audit.c.user_id == user_id)
        if client_id is not None:
            query = query.where(audit.c.client_id == client_id)
        with self._database.reading() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def counts(self) -> dict[str, int]:
        """Return how often each thing happened since the start of this process."""
        return dict(self._counts)
