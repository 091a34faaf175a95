"""Loading modules when they are needed, and quickly."""

import gc
import importlib
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any


@contextmanager
def nothing_collected() -> Generator[None]:
    """Make what stays for the life of the process.

    Python looks for cyclic garbage while objects are made, which is a tenth of the time that loading takes; and there
    is next to none. What was made until the end is never looked at again, which spares later rounds as much.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def load(module: str) -> Any:
    """Return a module by its name."""
    with nothing_collected():
        return importlib.import_module(module)
