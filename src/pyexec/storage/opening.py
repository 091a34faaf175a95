"""Which database the records lie in."""

import importlib
from typing import TYPE_CHECKING, Any

from pyexec.domain.databases import DatabaseAddress
from pyexec.domain.errors import InvalidArgumentError
from pyexec.storage.database import Database
from pyexec.storage.sqlite import SqliteDatabase
from pyexec.storage.state_folder import StateFolder

if TYPE_CHECKING:
    from pyexec.storage.postgresql import Seen


def database_of(folder: StateFolder, address: DatabaseAddress | None) -> Database:
    """Return the database of a state folder's records: the one at an address, or (None) the one in the folder.

    Nothing is opened yet.

    Raises:
        InvalidArgumentError: The driver for PostgreSQL is not installed, or not whole.
    """
    if address is None:
        return SqliteDatabase(folder.database)
    opened: Database = _postgresql().PostgresqlDatabase(folder, address)
    return opened


def look_at(folder: StateFolder, address: DatabaseAddress) -> "Seen":
    """Look at a database on a server without changing anything; see `pyexec.storage.postgresql.look`.

    Raises:
        InvalidArgumentError: The driver for PostgreSQL is not installed, or not whole.
        StateUnusableError: The state folder's name cannot be read.
    """
    seen: Seen = _postgresql().look(folder, address)
    return seen


def _postgresql() -> Any:
    try:  # Its driver is an extra, and slow to import.
        return importlib.import_module("pyexec.storage.postgresql")
    except ImportError as error:
        raise InvalidArgumentError(
            f"The driver for PostgreSQL is not whole: {error}.", hint="pip install 'mcp-pyexec[postgres]'"
        ) from error
