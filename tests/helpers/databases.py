"""Closing what a test has opened: Python 3.13 minds a database that is only forgotten."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine

from pyexec.storage import postgresql, sqlite


@contextmanager
def databases_closed() -> Generator[None]:
    """Close, at the end, every database that was opened meanwhile in this process."""
    engines: list[Engine] = []

    def remember(*arguments: Any, **options: Any) -> Engine:
        engines.append(create_engine(*arguments, **options))
        return engines[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgresql, "create_engine", remember)
        patch.setattr(sqlite, "create_engine", remember)
        yield
    for engine in engines:
        engine.dispose()
