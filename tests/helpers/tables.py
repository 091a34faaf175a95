"""Tables for state folders, made once by each process of tests: making them takes longer than most tests."""

import functools
import importlib
import os
import tempfile
from pathlib import Path
from typing import Any


def put_tables(home: Path) -> None:
    """Have a state folder begin as a first server has left it, with tables and without records."""
    fd = os.open(home / "pyexec.db", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(_tables())


@functools.cache
def _tables() -> bytes:
    storage: Any = importlib.import_module("pyexec.storage.sqlite")  # Slow, and not all who import this need it.
    with tempfile.TemporaryDirectory(prefix="pe-", dir="/tmp") as folder:
        path = Path(folder, "pyexec.db")
        database = storage.SqliteDatabase(path)
        database.require()
        database.close()
        return path.read_bytes()
