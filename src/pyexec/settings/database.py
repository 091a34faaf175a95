"""The variables by which an operator says where the records lie."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pyexec.domain.databases import ALLOWED, DatabaseAddress, parse_database_address
from pyexec.domain.errors import InvalidArgumentError
from pyexec.settings.reading import Variable

DRIVER = "psycopg"
INSTALL = "pip install 'mcp-pyexec[postgres]'"
LARGEST_FILE = 16 * 1024
_URL = "PYEXEC_DATABASE_URL"
_URL_FILE = "PYEXEC_DATABASE_URL_FILE"


def _file(text: str) -> Path:
    if not Path(text).is_absolute():
        raise ValueError
    return Path(text)


DATABASE_VARIABLES: tuple[Variable, ...] = (
    Variable(
        name=_URL,
        meaning="The PostgreSQL database of the records, this state folder's only. Needs `mcp-pyexec[postgres]`.",
        default="none: a SQLite database in the state folder",
        allowed=ALLOWED,
        read=parse_database_address,
        limit="database_url",
        secret=True,
    ),
    Variable(
        name=_URL_FILE,
        meaning="A file that holds that address.",
        default="none",
        allowed="an absolute path",
        read=_file,
        limit="database_url_file",
    ),
)


def database_settings(given: Mapping[str, Any]) -> DatabaseAddress | None:
    """Return where the records lie; None: in the state folder.

    Raises:
        InvalidArgumentError: It is said twice, its file cannot be used, or the driver is not installed.
    """
    address: DatabaseAddress | None = given.get("database_url")
    path: Path | None = given.get("database_url_file")
    if path is not None:
        if address is not None:
            raise InvalidArgumentError(f"{_URL} and {_URL_FILE} are both set; only one of them may be.")
        address = _in_file(path)
    if address is not None and find_spec(DRIVER) is None:
        raise InvalidArgumentError(
            f"{_URL if path is None else _URL_FILE} is set, and the driver for PostgreSQL is not installed.",
            hint=INSTALL,
        )
    return address


def _in_file(path: Path) -> DatabaseAddress:
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST_FILE).decode().strip()
    except OSError as error:
        raise InvalidArgumentError(f"The file {path} of {_URL_FILE} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise InvalidArgumentError(f"The file {path} of {_URL_FILE} is no UTF-8.") from None
    try:
        return parse_database_address(text)
    except ValueError:
        raise InvalidArgumentError(f"The file {path} of {_URL_FILE} must hold {ALLOWED}.") from None
