"""The programs that ask for tokens, and the servers that tokens are for."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Row, bindparam, delete, func, insert, select, update

from pyexec_idp.domain.values import Client, Origin, Resource
from pyexec_idp.stores.database import Database
from pyexec_idp.stores.schema import clients, consents, grants, resources

_LISTS = ("redirect_uris", "grant_types", "scopes", "post_logout_redirect_uris", "introspects")


class ClientStore:
    """Clients that were entered by the operator, or registered themselves."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, client: Client) -> None:
        """Add one."""
        with self._database.writing() as connection:
            connection.execute(insert(clients).values(_columns(client)))

    def get(self, client_id: str) -> Client | None:
        """Return the one of an id."""
        with self._database.reading() as connection:
            row = connection.execute(_CLIENT, {"wanted": client_id}).one_or_none()
        return None if row is None else _client(row)

    def all(self) -> list[Client]:
        """Return every one, oldest first."""
        with self._database.reading() as connection:
            return [_client(row) for row in connection.execute(select(clients).order_by(clients.c.created_at))]

    def count(self, origin: Origin) -> int:
        """Count those of an origin."""
        query = select(func.count()).select_from(clients).where(clients.c.origin == origin.value)
        with self._database.reading() as connection:
            return connection.execute(query).scalar_one()

    def change(self, client_id: str, values: Mapping[str, Any]) -> None:
        """Set columns of a client."""
        with self._database.writing() as connection:
            connection.execute(update(clients).where(clients.c.id == client_id).values(values))

    def remove(self, client_id: str) -> bool:
        """Remove a client with all that it was allowed; tell whether there was one."""
        with self._database.writing() as connection:
            connection.execute(delete(grants).where(grants.c.client_id == client_id))
            connection.execute(delete(consents).where(consents.c.client_id == client_id))
            return connection.execute(delete(clients).where(clients.c.id == client_id)).rowcount > 0


class ResourceStore:
    """The register of servers that tokens may be for."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, resource: Resource) -> None:
        """Add one, or put it in the place of the one with that URL."""
        with self._database.writing() as connection:
            if resource.is_default:
                connection.execute(update(resources).values(is_default=False))
            connection.execute(delete(resources).where(resources.c.url == resource.url))
            connection.execute(
                insert(resources).values(
                    url=resource.url,
                    name=resource.name,
                    scopes=dict(resource.scopes),
                    is_default=resource.is_default,
                )
            )

    def all(self) -> list[Resource]:
        """Return every one, by URL."""
        with self._database.reading() as connection:
            rows = connection.execute(select(resources).order_by(resources.c.url)).all()
        return [Resource(url=row.url, name=row.name, scopes=row.scopes, is_default=row.is_default) for row in rows]

    def remove(self, url: str) -> bool:
        """Remove one; tell whether there was one."""
        with self._database.writing() as connection:
            return connection.execute(delete(resources).where(resources.c.url == url)).rowcount > 0


def _columns(client: Client) -> dict[str, Any]:
    values: dict[str, Any] = {name: list(getattr(client, name)) for name in _LISTS}
    return values | {
        "id": client.id,
        "name": client.name,
        "origin": client.origin.value,
        "auth_method": client.auth_method,
        "secret_hash": client.secret_hash,
        "uri": client.uri,
        "created_at": client.created_at,
        "used_at": client.used_at,
    }


def _client(row: Row[Any]) -> Client:
    return Client(
        id=row.id,
        name=row.name,
        origin=Origin(row.origin),
        auth_method=row.auth_method,
        secret_hash=row.secret_hash,
        redirect_uris=tuple(row.redirect_uris),
        grant_types=tuple(row.grant_types),
        scopes=tuple(row.scopes),
        post_logout_redirect_uris=tuple(row.post_logout_redirect_uris),
        introspects=tuple(row.introspects),
        uri=row.uri,
        created_at=row.created_at,
        used_at=row.used_at,
    )


_CLIENT = select(clients).where(clients.c.id == bindparam("wanted"))
