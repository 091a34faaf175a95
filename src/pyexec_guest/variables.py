"""Environment variables for the length of a turn."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast


@contextmanager
def set_variables(asked: Any, *, stay: bool = False) -> Generator[None]:
    """Set variables. Take them back at the end, but for those that the code has changed itself, unless they `stay`."""
    given = _plain(asked)
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if stay or os.environ.get(name) != given[name]:
                continue
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _plain(asked: Any) -> "dict[str, str]":
    """Return those of the variables that can be set at all."""
    if not isinstance(asked, dict):
        return {}
    return {
        name: value
        for name, value in cast("dict[Any, Any]", asked).items()
        if isinstance(name, str) and isinstance(value, str) and name and "=" not in name and "\0" not in name + value
    }
