"""A store of session state for a server that has none.

FastMCP looks into its store at every call of a tool, for what a session may have been shown or not. Ours keeps nothing
there, and a look into nothing need not take long.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, SupportsFloat


class NoState:
    """Holds nothing, and takes nothing."""

    async def get(self, key: str, *, collection: str | None = None) -> dict[str, Any] | None:
        """Return None."""
        del key, collection
        return None

    async def ttl(self, key: str, *, collection: str | None = None) -> tuple[dict[str, Any] | None, float | None]:
        """Return None, twice."""
        del key, collection
        return None, None

    async def get_many(self, keys: Sequence[str], *, collection: str | None = None) -> list[dict[str, Any] | None]:
        """Return None for each."""
        del collection
        return [None for _key in keys]

    async def ttl_many(
        self, keys: Sequence[str], *, collection: str | None = None
    ) -> list[tuple[dict[str, Any] | None, float | None]]:
        """Return None twice for each."""
        del collection
        return [(None, None) for _key in keys]

    async def delete(self, key: str, *, collection: str | None = None) -> bool:
        """Return that it was not there."""
        del key, collection
        return False

    async def delete_many(self, keys: Sequence[str], *, collection: str | None = None) -> int:
        """Return that none was there."""
        del keys, collection
        return 0

    async def put(
        self,
        key: str,
        value: Mapping[str, Any],
        *,
        collection: str | None = None,
        ttl: SupportsFloat | None = None,
    ) -> NoReturn:
        """Refuse."""
        raise NotImplementedError("this server keeps no state of sessions")

    async def put_many(
        self,
        keys: Sequence[str],
        values: Sequence[Mapping[str, Any]],
        *,
        collection: str | None = None,
        ttl: SupportsFloat | None = None,
    ) -> NoReturn:
        """Refuse."""
        raise NotImplementedError("this server keeps no state of sessions")
