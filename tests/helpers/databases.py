"""Databases of records for tests: of each kind, and closed at the end, since Python 3.13 minds one only forgotten."""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine

from pyexec.domain.databases import DatabaseAddress
from pyexec.storage import postgresql
from pyexec.storage import sqlite as sqlite_storage
from pyexec.storage.database import Database
from pyexec.storage.opening import database_of
from pyexec.storage.state_folder import StateFolder
from tests.helpers.postgres import Postgres
from tests.helpers.tables import put_tables

KINDS = ("sqlite", "postgresql")
MOSTLY_SQLITE = ("sqlite", pytest.param("postgresql", marks=pytest.mark.exhaustive))
"""For what uses the database as everybody else does; the tests of the storage itself try each kind every time."""
_IDENTITY = "0123456789abcdef" * 2


@dataclass(frozen=True)
class Place:
    """A state folder and where its records lie; `address` is None for SQLite."""

    root: Path
    server: Postgres | None = None
    address: str | None = None

    def open(self) -> Database:
        """Return the database, as another server would use it."""
        address = None if self.address is None else DatabaseAddress(self.address)
        return database_of(StateFolder(self.root), address)

    def settings(self) -> dict[str, Any]:
        """Return the settings with which a server uses it, by their names in small letters."""
        return {} if self.address is None else {"database_url": self.address}

    def query(self, text: str) -> list[Any]:
        """Ask the database itself, or change something in it."""
        if self.server is not None:
            return self.server.execute(text, self.address)
        with closing(sqlite3.connect(self.root / "pyexec.db", isolation_level=None)) as connection:
            return connection.execute(text).fetchall()

    def version(self) -> int:
        """Return which schema there is."""
        query = "PRAGMA user_version" if self.server is None else "SELECT version FROM pyexec_state"
        return self.query(query)[0][0]

    def set_version(self, number: int) -> None:
        """Say that there is another one, as a newer pyexec would that migrates."""
        change = "PRAGMA user_version" if self.server is None else "UPDATE pyexec_state SET version"
        self.query(f"{change} = {number}")

    def lose(self) -> None:
        """Lose all records. Nobody may have the database open."""
        if self.server is not None:
            self.query("DROP TABLE executions, pyexec_state, pyexec_alembic_version")
        for path in self.root.glob("pyexec.db*"):
            path.unlink()


def place_of(kind: str, request: pytest.FixtureRequest, root: Path, *, fresh: bool = False) -> Place:
    """Return a place of a kind without records; where it need not be `fresh`, the tables may be there already."""
    if kind == "sqlite":
        if not fresh and not (root / "pyexec.db").exists():
            put_tables(root)
        return Place(root)
    server: Postgres = request.getfixturevalue("postgres")
    if fresh:
        return Place(root, server, server.database())
    address: str = request.getfixturevalue("shared_schema")
    (root / "identity").write_text(_IDENTITY)
    if server.execute("SELECT to_regclass('executions')", address) != [(None,)]:
        server.execute("DELETE FROM executions", address)
    return Place(root, server, address)


@contextmanager
def databases_closed() -> Generator[None]:
    """Close, at the end, every database that was opened meanwhile in this process."""
    engines: list[Engine] = []

    def remember(*arguments: Any, **options: Any) -> Engine:
        engines.append(create_engine(*arguments, **options))
        return engines[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgresql, "create_engine", remember)
        patch.setattr(sqlite_storage, "create_engine", remember)
        yield
    for engine in engines:
        engine.dispose()
