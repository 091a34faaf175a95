"""The SQLite database in the state folder, which several servers of one user share."""

import fcntl
import importlib
import os
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, Engine, Table, create_engine, event
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import ConnectionPoolEntry

from pyexec.domain.errors import DiskFullError, PyexecError, StateUnusableError, StateVersionError
from pyexec.storage.database import Database, Insert
from pyexec.storage.schema import SCHEMA_VERSION

BUSY_SECONDS = 30


class SqliteDatabase(Database):
    """A file. Who writes waits their turn from the start, so no transaction fails half way for want of a lock."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def is_new(self) -> bool:
        """See `Database.is_new`."""
        return not self._path.exists()

    def insert(self, table: Table) -> Insert:
        """See `Database.insert`."""
        return sqlite.insert(table)

    @contextmanager
    def _transaction(self, engine: Engine, *, writes: bool) -> Generator[Connection]:
        with engine.connect() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
            try:
                self._require_version(connection)
                yield connection
            except BaseException:
                connection.exec_driver_sql("ROLLBACK")
                raise
            connection.exec_driver_sql("COMMIT")

    def _make_engine(self) -> Engine:
        engine = create_engine(
            f"sqlite:///{self._path}",
            isolation_level="AUTOCOMMIT",
            connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False},
            hide_parameters=True,
        )
        event.listen(engine, "connect", _configure)
        return engine

    def _migrate(self, engine: Engine) -> None:
        self._path.touch(mode=0o600)  # SQLite gives its side files the mode of this one.
        with self._lock(), engine.connect() as connection:
            if _version(connection) >= SCHEMA_VERSION:
                return
            migrate = importlib.import_module("pyexec.storage.migrate")
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            migrate.upgrade(connection)
            connection.exec_driver_sql(f"PRAGMA user_version = {SCHEMA_VERSION}")
            connection.exec_driver_sql("COMMIT")

    def _unusable(self, error: DBAPIError | PoolTimeoutError) -> PyexecError:
        said = str(error.orig if isinstance(error, DBAPIError) else error)
        if "full" in said:
            return DiskFullError(
                f"The disk of the state folder {self._path.parent} is full.",
                hint="Free some space; what has run stays readable meanwhile.",
            )
        return StateUnusableError(
            f"The database {self._path} cannot be used: {said}.",
            hint="Move it away to start afresh: what has run is found again in the folders beside it.",
        )

    @contextmanager
    def _lock(self) -> Generator[None]:
        fd = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def _require_version(self, connection: Connection) -> None:
        found = _version(connection)
        if found > SCHEMA_VERSION:
            raise StateVersionError(
                f"The state folder {self._path.parent} was migrated by a newer pyexec (schema {found}; this one knows "
                f"{SCHEMA_VERSION}).",
                hint="Upgrade this pyexec and start it again, or give it a PYEXEC_HOME of its own.",
            )


def stored_version(path: Path) -> int | None:
    """Return which schema a database has, without touching it; None where there is none that can be read."""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.Error:
        return None
    return int(version)


def _version(connection: Connection) -> int:
    return int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())


def _configure(connection: sqlite3.Connection, _record: ConnectionPoolEntry) -> None:
    # WAL lets readers and a writer work side by side; NORMAL is durable against every crash but the machine's own,
    # and what that loses is found again in the executions' folders.
    for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")
