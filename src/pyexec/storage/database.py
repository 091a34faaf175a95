"""The database of records: what every kind of it offers. `sqlite` and `postgresql` are the two there are."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager

from sqlalchemy import Connection, Engine, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from pyexec.domain.errors import PyexecError

# What can pass over rows that are there already; the two have no name in common that says so.
Insert = sqlite.Insert | postgresql.Insert


class Database(ABC):
    """Opens transactions on the database; creates and migrates it first where that is needed."""

    def __init__(self) -> None:
        self._engine: Engine | None = None
        self._opening = threading.Lock()

    def close(self) -> None:
        """Close all connections; the next use opens new ones."""
        with self._opening:
            engine, self._engine = self._engine, None
        if engine is not None:
            engine.dispose()

    @contextmanager
    def reading(self) -> Generator[Connection]:
        """Give a connection for reading only; it never waits for writers.

        Raises:
            StateVersionError: A newer pyexec has migrated the database.
            StateUnusableError: The database cannot be used.
            RecordsUnavailableError: Its server does not answer.
        """
        with self._translated(), self._transaction(self._ready_engine(), writes=False) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Generator[Connection]:
        """Open a transaction that writes: all of it is done, or nothing.

        Raises:
            StateVersionError: A newer pyexec has migrated the database.
            StateUnusableError: The database cannot be used.
            DiskFullError: There is no room.
            RecordsUnavailableError: Its server does not answer; it says whether what was written may be there.
        """
        with self._translated(), self._transaction(self._ready_engine(), writes=True) as connection:
            yield connection

    def require(self) -> None:
        """Have the database answer.

        Raises:
            PyexecError: As `reading` does.
        """
        with self.reading():
            pass

    def require_reachable(self) -> None:
        """Have its server answer, where it has one: a file is there, or will say so when it is written.

        Raises:
            RecordsUnavailableError: It does not.
        """
        return

    @property
    def is_at_hand(self) -> bool:
        """Whether it is a file, of which nobody has to ask whether it answers."""
        return True

    @abstractmethod
    def is_new(self) -> bool:
        """Tell whether there are no records yet, or no more: what has run is then to be found in its folders."""

    @abstractmethod
    def insert(self, table: Table) -> Insert:
        """Return an INSERT that can be told to pass over what is there."""

    @abstractmethod
    def _make_engine(self) -> Engine:
        """Return an engine; nothing is connected yet."""

    @abstractmethod
    def _migrate(self, engine: Engine) -> None:
        """Bring the tables to this version's shape, where they are not."""

    @abstractmethod
    def _transaction(self, engine: Engine, *, writes: bool) -> AbstractContextManager[Connection]: ...

    @abstractmethod
    def _unusable(self, error: DBAPIError | PoolTimeoutError) -> PyexecError:
        """Say what an error of the driver means."""

    @contextmanager
    def _translated(self) -> Generator[None]:
        try:
            yield
        except IntegrityError:
            raise
        except (DBAPIError, PoolTimeoutError) as error:
            raise self._unusable(error) from error

    def _ready_engine(self) -> Engine:
        with self._opening:  # Two at once would open two, and close one.
            if self._engine is None:
                self._engine = self._open()
            return self._engine

    def _open(self) -> Engine:
        engine = self._make_engine()
        try:
            self._migrate(engine)
        except BaseException:
            engine.dispose()
            raise
        return engine
