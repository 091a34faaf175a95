"""A PostgreSQL database, for a service that many use. Imported only where one is set, with its driver."""

import importlib
import logging
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.pq import TransactionStatus
from sqlalchemy import Connection, Engine, Row, Table, create_engine, event, make_url, select, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import ConnectionPoolEntry

from pyexec.domain.databases import DatabaseAddress
from pyexec.domain.errors import (
    DiskFullError,
    PyexecError,
    RecordsUnavailableError,
    StateUnusableError,
    StateVersionError,
)
from pyexec.storage.database import Database, Insert
from pyexec.storage.identity import has_identity, identity_of
from pyexec.storage.schema import SCHEMA_VERSION, executions
from pyexec.storage.state_folder import StateFolder

CONNECT_SECONDS = 5
SHUT_SECONDS = 5.0
"""For so long at most nobody tries to connect after that has failed."""

STATEMENT_SECONDS = 20
ANSWER_SECONDS = 30.0
"""After that a server counts as gone, though its machine still holds the connection."""

POOL = 5
MOST_CONNECTIONS = 20
POOL_SECONDS = 10.0

_CONNECTING = {
    "application_name": "pyexec",
    "client_encoding": "utf8",
    "connect_timeout": CONNECT_SECONDS,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": int(ANSWER_SECONDS * 1000),
}

_ENCODING = "UTF8"

_MIGRATION_LOCK = 7_265_431_002
"""Any number that nobody else uses for an advisory lock in the same database."""

_VERSION_TABLE = "pyexec_alembic_version"
"""Not Alembic's own name for it: other programs may have their tables in the same schema."""

# What SQLite keeps as `user_version`; and whose records these are.
_MAKE_STATE = (
    "CREATE TABLE IF NOT EXISTS pyexec_state ("
    "single boolean PRIMARY KEY DEFAULT true CHECK (single), version integer NOT NULL, folder text NOT NULL)"
)
_STATE = "SELECT version, folder FROM pyexec_state"

_FULL = "53100"
_FORBIDDEN = ("42501", "3F000")
# Shutting down or starting, out of connections or memory, a lock not had in time, on a standby: all that passes.
_PASSING_CLASSES = ("08", "53", "57")
_PASSING = ("25006", "40001", "40P01", "55P03")

_log = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")


class PostgresqlDatabase(Database):
    """The records of one state folder, on a server.

    A server that goes away is told as `RecordsUnavailableError`, and used again as soon as it is back; where attempts
    to reach it take seconds, some seconds later.
    """

    def __init__(self, folder: StateFolder, address: DatabaseAddress) -> None:
        super().__init__()
        self._folder = folder
        self._address = address
        self._door = _Door()
        self._identity = ""
        self._away = False

    def is_new(self) -> bool:
        """See `Database.is_new`."""
        with self.reading() as connection:
            return connection.execute(select(executions.c.number).limit(1)).first() is None

    @property
    def is_at_hand(self) -> bool:
        """See `Database.is_at_hand`."""
        return False

    def require_reachable(self) -> None:
        """See `Database.require_reachable`."""
        self.require()

    def insert(self, table: Table) -> Insert:
        """See `Database.insert`."""
        return postgresql.insert(table)

    @contextmanager
    def _transaction(self, engine: Engine, *, writes: bool) -> Generator[Connection]:
        with self._begun(engine, writes=writes) as connection:
            if self._away:
                self._away = False
                _log.warning("the database %s answers again", self._address)
            yield connection
            if writes:  # Who does not come so far hands the connection back, and with that all is undone.
                self._commit(connection)

    def _commit(self, connection: Connection) -> None:
        try:
            connection.exec_driver_sql("COMMIT")
        except DBAPIError as error:
            if not error.connection_invalidated:
                raise
            told = self._unusable(error)
            if isinstance(told, RecordsUnavailableError):
                told.may_be_kept = True
            raise told from error

    def _begun(self, engine: Engine, *, writes: bool) -> Connection:
        try:
            return self._begin(engine, writes=writes)
        except DBAPIError as error:
            if not error.connection_invalidated or isinstance(error.orig, NoAnswerError):
                raise
        # It was a connection from before a restart of the server, as are all in the pool; nothing was done on it yet.
        return self._begin(engine, writes=writes)

    def _begin(self, engine: Engine, *, writes: bool) -> Connection:
        connection = engine.connect()
        try:
            if writes:
                connection.exec_driver_sql("BEGIN")
            self._require_ours(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _make_engine(self) -> Engine:
        self._identity = identity_of(self._folder.root)
        return _engine(self._address, self._door)

    def _migrate(self, engine: Engine) -> None:
        """Bring the tables to this version's shape; of several servers that start at once, one does, others wait."""
        with engine.connect() as connection:
            encoding = connection.exec_driver_sql("SHOW server_encoding").scalar_one()
            if encoding != _ENCODING:
                raise StateUnusableError(
                    f"The database {self._address} holds texts as {encoding}; it must be {_ENCODING}.",
                    hint="CREATE DATABASE pyexec TEMPLATE template0 ENCODING 'UTF8'",
                )
            row = _state(connection)
            if row is not None and row.version >= SCHEMA_VERSION:
                return
            connection.exec_driver_sql("BEGIN")
            connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": _MIGRATION_LOCK})
            connection.exec_driver_sql(_MAKE_STATE)
            connection.execute(
                text("INSERT INTO pyexec_state (version, folder) VALUES (0, :folder) ON CONFLICT DO NOTHING"),
                {"folder": self._identity},
            )
            if self._require_ours(connection) < SCHEMA_VERSION:
                migrate = importlib.import_module("pyexec.storage.migrate")
                migrate.upgrade(connection, _VERSION_TABLE)
                connection.execute(text("UPDATE pyexec_state SET version = :version"), {"version": SCHEMA_VERSION})
            connection.exec_driver_sql("COMMIT")

    def _require_ours(self, connection: Connection) -> int:
        """Refuse the records of another state folder, or of a newer pyexec; return which schema they have."""
        version, folder = connection.exec_driver_sql(_STATE).one()
        if folder != self._identity:
            raise StateUnusableError(
                f"The database {self._address} has the records of another state folder than {self._folder.root}.",
                hint="Give each state folder a database, or a schema, of its own; see docs/guides/postgresql.md.",
            )
        if version > SCHEMA_VERSION:
            raise StateVersionError(
                f"The database {self._address} was migrated by a newer pyexec (schema {version}; this one knows "
                f"{SCHEMA_VERSION}).",
                hint="Upgrade this pyexec and start it again, or give it a PYEXEC_HOME and a database of its own.",
            )
        return int(version)

    def _unusable(self, error: DBAPIError | PoolTimeoutError) -> PyexecError:
        cause = error.orig if isinstance(error, DBAPIError) else None
        code = getattr(cause, "sqlstate", None) or ""
        if code == _FULL:
            return DiskFullError(
                "The disk of the database server is full.",
                hint="Free some space there; what has run stays readable meanwhile.",
            )
        passing = code.startswith(_PASSING_CLASSES) or code in _PASSING
        lost = isinstance(error, DBAPIError) and error.connection_invalidated
        silent = not code and isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError | None)
        said = _said(self._address, cause or error)
        if passing or lost or silent:
            if not self._away:
                self._away = True
                _log.warning("the database %s does not answer: %s", self._address, said)
            return RecordsUnavailableError(
                "The database of the records does not answer.",
                hint="What runs goes on, and nothing of it is lost. Try again in a moment; the log says more.",
            )
        hint = (
            "The user it is opened with must own the database, or a schema that is there."
            if code in _FORBIDDEN
            else None
        )
        return StateUnusableError(f"The database {self._address} cannot be used: {said}.", hint=hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a look at a database has shown. `trouble` is why there was nothing to see.

    `schema` is None where there are no tables yet; `foreign` says that they belong to another state folder.
    """

    trouble: str | None = None
    server: str = ""
    schema: int | None = None
    foreign: bool = False


def look(folder: StateFolder, address: DatabaseAddress) -> Seen:
    """Look at a database without changing anything; blocks, for seconds where nobody answers."""
    engine = _engine(address, _Door())
    try:
        with engine.connect() as connection:
            server = str(connection.exec_driver_sql("SHOW server_version").scalar_one())
            row = _state(connection)
    except DBAPIError as error:
        return Seen(trouble=_said(address, error.orig or error))
    finally:
        engine.dispose()
    if row is None:
        return Seen(server=server)
    own = identity_of(folder.root) if has_identity(folder.root) else None
    return Seen(server=server, schema=row.version, foreign=row.folder != own)


def _said(address: DatabaseAddress, error: BaseException) -> str:
    return address.masked(str(error)).strip().partition("\n")[0]


def _state(connection: Connection) -> Row[Any] | None:
    """Return which schema there is, and whose; None where there is nothing yet."""
    if connection.exec_driver_sql("SELECT to_regclass('pyexec_state')").scalar_one() is None:
        return None
    return connection.exec_driver_sql(_STATE).one_or_none()


def _engine(address: DatabaseAddress, door: "_Door") -> Engine:
    url = make_url(address.url).set(drivername="postgresql+psycopg")
    engine = create_engine(
        url,
        isolation_level="AUTOCOMMIT",
        pool_size=POOL,
        max_overflow=MOST_CONNECTIONS - POOL,
        pool_timeout=POOL_SECONDS,
        pool_use_lifo=True,
        # Where the machine or the network goes, nobody says that the connection has.
        connect_args={**_CONNECTING, **{name: value for name, value in url.query.items() if name in _CONNECTING}},
        use_native_hstore=False,
        hide_parameters=True,
    )
    event.listen(engine, "do_connect", door.connect)
    event.listen(engine, "connect", _configure)
    return engine


class NoAnswerError(psycopg.OperationalError):
    """The server says nothing, and does not hang up either."""


class NotReachedError(psycopg.OperationalError):
    """The server was not reached a moment ago, and was not tried again."""


class _BoundedConnection(psycopg.Connection[Any]):
    """A connection that does not wait for ever."""

    def wait(self, gen: PQGen[_Answer], interval: float = 0.1, timeout: float | None = None) -> _Answer:
        """See `psycopg.Connection.wait`."""
        try:
            return super().wait(gen, interval, ANSWER_SECONDS if timeout is None else timeout)
        except psycopg.OperationalError as error:
            if self.pgconn.transaction_status != TransactionStatus.ACTIVE:
                raise
            self.pgconn.finish()  # The answer may yet come, to nobody.
            raise NoAnswerError(f"no answer within {ANSWER_SECONDS:g} s") from error


class _Door:
    """Connects. What took long to fail is not tried again at once: it fails for as long as that took, without waiting.

    So a server that nobody reaches costs some callers some seconds, and not each of them, whether it was ever reached
    or not; one that refuses at once, because it is just starting, is used as soon as it is up.
    """

    def __init__(self) -> None:
        self._shut = (0.0, "")

    def connect(self, _dialect: object, _record: object, arguments: list[Any], named: dict[str, Any]) -> Any:
        """Be SQLAlchemy's way to connect; may be called from several threads."""
        began = time.monotonic()
        until, why = self._shut
        if began < until:
            raise NotReachedError(why)
        try:
            return _BoundedConnection.connect(*arguments, **named)
        except psycopg.OperationalError as error:
            now = time.monotonic()
            self._shut = now + min(now - began, SHUT_SECONDS), str(error)
            raise


def _configure(connection: psycopg.Connection[Any], _record: ConnectionPoolEntry) -> None:
    limit = f"{STATEMENT_SECONDS}s"
    connection.execute(
        "SELECT set_config('statement_timeout', %s, false),"
        " set_config('idle_in_transaction_session_timeout', %s, false)",
        (limit, limit),
    )
