"""The state folder that this process works with: the one of `PYEXEC_HOME`, opened at the first use."""

import importlib
import threading
from typing import TYPE_CHECKING

from anyio.to_thread import run_sync

from pyexec.settings import load_settings

if TYPE_CHECKING:
    from pyexec.app.services import Services


class Home:
    """Opens the services once, whoever asks first, from any thread and any event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._services: Services | None = None

    async def get(self) -> "Services":
        """Return the services; a failed attempt is made again by the next call.

        Raises:
            InvalidArgumentError: A setting has a value that is not allowed.
            StateUnusableError: The state folder cannot be used.
        """
        return self._services or await run_sync(self._open)

    def close(self) -> None:
        """Let go of what is open; the next use opens it again."""
        with self._lock:
            services, self._services = self._services, None
        if services is not None:
            services.close()

    def _open(self) -> "Services":
        with self._lock:
            if self._services is None:
                # Storage is slow to import, and no server of anybody's must start later for it.
                module = importlib.import_module("pyexec.app.services")
                opened: Services = module.open_services(load_settings())
                self._services = opened
            return self._services


HOME = Home()
