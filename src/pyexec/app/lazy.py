"""Services on first use: storage is slow to import, and a client's `initialize` must not wait for it."""

from typing import TYPE_CHECKING

import anyio
from anyio.to_thread import run_sync

from pyexec.app.loading import load
from pyexec.settings import Settings

if TYPE_CHECKING:
    from pyexec.app.services import Services
    from pyexec.executions.observing import ExecutionObserver


class LazyServices:
    """Opens the services once, whoever asks first."""

    def __init__(self, settings: Settings, observer: "ExecutionObserver | None" = None) -> None:
        self._settings = settings
        self._observer = observer
        self._lock = anyio.Lock()
        self._services: Services | None = None

    async def get(self) -> "Services":
        """Return the services; the first call opens them, a failed one is tried again by the next."""
        if self._services is not None:
            return self._services
        async with self._lock:
            if self._services is None:
                self._services = await run_sync(_open, self._settings, self._observer)
            return self._services

    def close(self) -> None:
        """Let go of what this process holds; executions go on."""
        if self._services is not None:
            self._services.close()


def _open(settings: Settings, observer: "ExecutionObserver | None") -> "Services":
    services: Services = load("pyexec.app.services").open_services(settings, observer)
    services.launcher.warm()
    return services
