"""Where the records lie, when not in the state folder: the address of a PostgreSQL database."""

from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

ALLOWED = (
    "an address: postgresql://USER:PASSWORD@HOST:PORT/DATABASE, or postgresql://USER@/DATABASE?host=/FOLDER; "
    "what is special in a password is written as %40 for '@', %2F for '/', %3F for '?', %23 for '#'"
)
"""The forms of an address, for people."""

PARAMETERS = (
    "application_name",
    "channel_binding",
    "connect_timeout",
    "gssencmode",
    "host",
    "keepalives_idle",
    "options",
    "passfile",
    "sslcert",
    "sslcrl",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "target_session_attrs",
    "tcp_user_timeout",
)
"""What may follow the `?`; nothing of it is secret."""

_SCHEMES = ("postgresql", "postgres", "postgresql+psycopg")
_HIDDEN = "***"


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    """The address of a PostgreSQL database. As text it has `***` in place of its password."""

    url: str = field(repr=False)

    def __str__(self) -> str:
        parts = urlsplit(self.url)
        return parts._replace(scheme=_SCHEMES[0], netloc=_without_password(parts)).geturl()

    def masked(self, text: str) -> str:
        """Return a text without the password."""
        password = urlsplit(self.url).password
        for secret in {password, unquote(password)} if password else ():
            text = text.replace(secret, _HIDDEN)
        return text


def parse_database_address(text: str) -> DatabaseAddress:
    """Read the address of a database.

    Raises:
        ValueError: It is none of the forms that are allowed. The error says nothing of what is in it.
    """
    if not _is_allowed(text):
        raise ValueError
    return DatabaseAddress(text)


def _is_allowed(text: str) -> bool:
    try:
        parts = urlsplit(text)
        _port = parts.port
        query = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        return False
    names = [name for name, _value in query]
    database = unquote(parts.path.removeprefix("/"))
    return (
        text.isprintable()
        and " " not in text
        and parts.scheme in _SCHEMES
        and text.startswith(f"{parts.scheme}://")
        and not parts.fragment
        and bool(database)
        and "/" not in parts.path.removeprefix("/")
        and (bool(parts.hostname) != ("host" in names))
        and parts.netloc.count("@") <= 1
        and set(names) <= set(PARAMETERS)
        and len(set(names)) == len(names)
    )


def _without_password(parts: SplitResult) -> str:
    user, at, place = parts.netloc.rpartition("@")
    name, colon, _password = user.partition(":")
    return f"{name}:{_HIDDEN}{at}{place}" if colon else parts.netloc
