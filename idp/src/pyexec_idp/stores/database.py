"""The database: SQLite by default, PostgreSQL by URL; opened and brought to this version's shape on first use."""

import fcntl
import os
import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry

from pyexec_idp.domain.errors import InvalidSettingError, StateUnusableError

BUSY_SECONDS = 30
_MIGRATION_LOCK = 7_265_431_001
"""Any number that nobody else uses for an advisory lock in the same PostgreSQL database."""


class Database:
    """Opens transactions on the database."""

    def __init__(self, url: str) -> None:
        try:
            self._url = make_url(url)
        except ArgumentError:
            raise InvalidSettingError("The database URL cannot be read.", hint="postgresql+psycopg://…") from None
        self._engine: Engine | None = None
        self._opening = threading.Lock()

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a file beside us rather than a server."""
        return self._url.get_backend_name() == "sqlite"

    def close(self) -> None:
        """Close all connections."""
        with self._opening:
            engine, self._engine = self._engine, None
        if engine is not None:
            engine.dispose()

    @contextmanager
    def reading(self) -> Generator[Connection]:
        """A transaction that only reads."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Generator[Connection]:
        """A transaction that writes; on SQLite it waits its turn from the start, so it cannot fail half way."""
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    @contextmanager
    def _transaction(self, begin: str) -> Generator[Connection]:
        try:
            engine = self._ready()
            if not self.is_sqlite:
                with engine.begin() as connection:
                    yield connection
                return
            with engine.connect() as connection:
                connection.exec_driver_sql(begin)
                try:
                    yield connection
                except BaseException:
                    connection.exec_driver_sql("ROLLBACK")
                    raise
                connection.exec_driver_sql("COMMIT")
        except DBAPIError as error:
            if error.orig is not None and "onstraint" in type(error).__name__ + str(error.orig):
                raise
            raise self._unusable(error) from error

    def _ready(self) -> Engine:
        with self._opening:
            if self._engine is None:
                self._engine = self._open()
            return self._engine
