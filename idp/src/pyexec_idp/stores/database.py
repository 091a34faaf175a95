"""The database: SQLite by default, PostgreSQL by URL; opened and brought to this version's shape on first use."""

import importlib
import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, NoSuchModuleError
from sqlalchemy.pool import ConnectionPoolEntry

from pyexec_idp.domain.errors import InvalidSettingError, StateUnusableError
from pyexec_idp.stores.schema import SCHEMA_VERSION

BUSY_SECONDS = 30
_MIGRATION_LOCK = 7_265_431_001
"""Any number that nobody else uses for an advisory lock in the same PostgreSQL database."""
_BACKENDS = ("sqlite", "postgresql")


class Database:
    """Opens transactions on the database."""

    def __init__(self, url: str) -> None:
        try:
            self._url = make_url(url)
        except ArgumentError:
            raise InvalidSettingError("The database URL cannot be read.", hint="postgresql+psycopg://…") from None
        if self._url.get_backend_name() not in _BACKENDS:
            raise InvalidSettingError(
                f"There is no {self._url.get_backend_name()} database for us.", hint=f"One of {', '.join(_BACKENDS)}."
            )
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
            if isinstance(error, IntegrityError):
                raise
            raise _unusable(error) from error

    def _ready(self) -> Engine:
        with self._opening:
            if self._engine is None:
                self._engine = self._open()
            return self._engine

    def _open(self) -> Engine:
        try:
            engine = self._sqlite() if self.is_sqlite else self._server()
        except (ImportError, NoSuchModuleError) as error:
            raise InvalidSettingError(
                f"The driver for {self._url.drivername} is not installed.", hint="pip install 'pyexec-idp[postgres]'"
            ) from error
        try:
            self._migrate(engine)
        except BaseException:
            engine.dispose()
            raise
        return engine

    def _sqlite(self) -> Engine:
        if self._url.database:
            path = Path(self._url.database)
            try:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                path.touch(mode=0o600)  # SQLite gives its side files the mode of this one.
            except OSError as error:
                raise StateUnusableError(f"The database {path} cannot be made: {error.strerror}.") from error
        engine = create_engine(
            self._url,
            isolation_level="AUTOCOMMIT",
            connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False},
            hide_parameters=True,
        )
        event.listen(engine, "connect", _configure)
        return engine

    def _server(self) -> Engine:
        return create_engine(self._url, pool_size=20, max_overflow=20, pool_pre_ping=True, hide_parameters=True)

    def _migrate(self, engine: Engine) -> None:
        """Bring the tables to this version's shape; of several that start at once, one does and the others wait."""
        with engine.connect() as connection:
            if self.is_sqlite:
                if _is_current(connection):
                    return
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                _upgrade(connection)
                connection.exec_driver_sql("COMMIT")
                return
            with connection.begin():
                connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": _MIGRATION_LOCK})
                if not _is_current(connection):
                    _upgrade(connection)


def _is_current(connection: Connection) -> bool:
    if not inspect(connection).has_table("alembic_version"):
        return False
    return connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one_or_none() == SCHEMA_VERSION


def _upgrade(connection: Connection) -> None:
    # Alembic is half of the start of a command, and mostly there is nothing to do.
    importlib.import_module("pyexec_idp.stores.migrate").upgrade(connection)


def _unusable(error: DBAPIError) -> StateUnusableError:
    return StateUnusableError(f"The database cannot be used: {type(error.orig).__name__}.")


def _configure(connection: sqlite3.Connection, _record: ConnectionPoolEntry) -> None:
    # NORMAL may lose the last writes when the machine itself goes down: a few people sign in again.
    for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")
