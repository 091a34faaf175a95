"""Calls that wait, and are answered early when the server has to go: with a handle to what goes on."""

from collections.abc import Generator
from contextlib import contextmanager

import anyio


class Leaving:
    """Ends waits, not what is waited for."""

    def __init__(self) -> None:
        self._scopes: set[anyio.CancelScope] = set()
        self._left = False

    @contextmanager
    def wait(self) -> Generator[anyio.CancelScope]:
        """Wait within this as if time were up when the server has to go; the scope then says that it was cancelled."""
        with anyio.CancelScope() as scope:
            if self._left:
                scope.cancel()
            self._scopes.add(scope)
            try:
                yield scope
            finally:
                self._scopes.discard(scope)

    def leave(self) -> None:
        """End all waits, and those that begin later at once."""
        self._left = True
        for scope in self._scopes:
            scope.cancel()
