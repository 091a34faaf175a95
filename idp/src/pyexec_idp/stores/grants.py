"""What people allowed, and the codes and refresh tokens that hang on it."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import BindParameter, Connection, String, bindparam, delete, exists, insert, select, update

from pyexec_idp.domain.values import Code, Grant, RefreshToken
from pyexec_idp.stores.database import Database
from pyexec_idp.stores.schema import clients, codes, consents, grants, refresh_tokens, revoked_tokens


class GrantStore:
    """Grants with their codes and refresh tokens. What can happen once is decided by one UPDATE."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, grant: Grant, code: Code | None = None) -> None:
        """Add a grant, with the code that stands for it."""
        with self._database.writing() as connection:
            connection.execute(
                insert(grants).values(
                    id=grant.id,
                    user_id=grant.user_id,
                    client_id=grant.client_id,
                    scopes=list(grant.scopes),
                    resource=grant.resource,
                    auth_time=grant.auth_time,
                    created_at=grant.created_at,
                    used_at=grant.used_at,
                )
            )
            if code is not None:
                connection.execute(
                    insert(codes).values(
                        hash=code.hash,
                        grant_id=grant.id,
                        redirect_uri=code.redirect_uri,
                        challenge=code.challenge,
                        nonce=code.nonce,
                        expires_at=code.expires_at,
                    )
                )

    def get(self, grant_id: str) -> Grant | None:
        """Return the grant of an id."""
        with self._database.reading() as connection:
            row = connection.execute(_GRANT, {"wanted": grant_id}).mappings().one_or_none()
        return None if row is None else _grant(dict(row))

    def of(self, user_id: str) -> list[Grant]:
        """Return the grants of a user that tokens came from and that hold, newest first."""
        query = select(grants).where(
            grants.c.user_id == user_id, grants.c.revoked_at.is_(None), grants.c.used_at.is_not(None)
        )
        with self._database.reading() as connection:
            return [
                _grant(dict(row)) for row in connection.execute(query.order_by(grants.c.created_at.desc())).mappings()
            ]

    def revoke(self, grant_id: str, now: float, *, user_id: str | None = None) -> bool:
        """End a grant (of that user, where one is named); tell whether it held until now."""
        query = update(grants).where(grants.c.id == grant_id, grants.c.revoked_at.is_(None))
        if user_id is not None:
            query = query.where(grants.c.user_id == user_id)
        with self._database.writing() as connection:
            return connection.execute(query.values(revoked_at=now)).rowcount > 0

    def revoke_all(self, user_id: str, now: float, *, client_id: str | None = None) -> None:
        """End every grant of a user, or those of one client; what was remembered of consent with them."""
        ending = update(grants).where(grants.c.user_id == user_id, grants.c.revoked_at.is_(None))
        forgetting = delete(consents).where(consents.c.user_id == user_id)
        if client_id is not None:
            ending = ending.where(grants.c.client_id == client_id)
            forgetting = forgetting.where(consents.c.client_id == client_id)
        with self._database.writing() as connection:
            connection.execute(ending.values(revoked_at=now))
            connection.execute(forgetting)

    # -- codes -----------------------------------------------------------------------------------------------------

    def code(self, code_hash: str) -> Code | None:
        """Return the code of a hash, used or not."""
        with self._database.reading() as connection:
            row = connection.execute(_CODE, {"wanted": code_hash}).mappings().one_or_none()
        if row is None:
            return None
        return Code(
            hash=row["hash"],
            grant=_grant(dict(row), "g_"),
            redirect_uri=row["redirect_uri"],
            challenge=row["challenge"],
            nonce=row["nonce"],
            expires_at=row["expires_at"],
            used_at=row["used_at"],
        )

    def use_code(self, code: Code, now: float, refresh_hash: str | None, refresh_expires_at: float) -> bool:
        """Take a code, and keep what it gives; tell whether it was there to take."""
        with self._database.writing() as connection:
            if connection.execute(_TAKE_CODE, {"wanted": code.hash, "used_at": now}).rowcount == 0:
                return False
            if connection.execute(_USE_GRANT, {"wanted": code.grant.id, "used_at": now}).rowcount == 0:
                return False
            connection.execute(_USE_CLIENT, {"wanted": code.grant.client_id, "used_at": now})
            if refresh_hash is not None:
                _keep(connection, refresh_hash, code.grant.id, refresh_expires_at)
            return True

    # -- refresh tokens --------------------------------------------------------------------------------------------

    def refresh_token(self, token_hash: str) -> RefreshToken | None:
        """Return the refresh token of a hash, replaced or not."""
        with self._database.reading() as connection:
            row = connection.execute(_REFRESH_TOKEN, {"wanted": token_hash}).mappings().one_or_none()
        if row is None:
            return None
        return RefreshToken(
            hash=row["hash"],
            grant=_grant(dict(row), "g_"),
            expires_at=row["expires_at"],
            replaced_at=row["replaced_at"],
            successor_replaced=row["later_replaced_at"] is not None,
        )

    def add_refresh_token(self, grant_id: str, token_hash: str, expires_at: float) -> None:
        """Keep a refresh token that did not come from a code."""
        with self._database.writing() as connection:
            _keep(connection, token_hash, grant_id, expires_at)

    def replace(self, token: RefreshToken, successor: str, now: float, expires_at: float) -> bool:
        """Put a successor in a refresh token's place; tell whether that was done now rather than before."""
        with self._database.writing() as connection:
            values = {"wanted": token.hash, "replaced_at": now, "successor": successor}
            if connection.execute(_REPLACE, values).rowcount == 0:
                return False
            _keep(connection, successor, token.grant.id, expires_at)
            connection.execute(_USE_GRANT, {"wanted": token.grant.id, "used_at": now})
            return True

    # -- access tokens ---------------------------------------------------------------------------------------------

    def revoke_token(self, jti: str, expires_at: float) -> None:
        """Refuse an access token until it would have expired anyway."""
        with self._database.writing() as connection:
            connection.execute(delete(revoked_tokens).where(revoked_tokens.c.jti == jti))
            connection.execute(insert(revoked_tokens).values(jti=jti, expires_at=expires_at))

    def is_token_revoked(self, jti: str) -> bool:
        """Tell whether it was."""
        with self._database.reading() as connection:
            return bool(connection.execute(select(exists().where(revoked_tokens.c.jti == jti))).scalar_one())

    # -- consent ---------------------------------------------------------------------------------------------------

    def consented(self, user_id: str, client_id: str, resource: str) -> frozenset[str]:
        """Return the scopes that somebody allowed a client at a resource before."""
        query = select(consents.c.scopes).where(*_consent(user_id, client_id, resource))
        with self._database.reading() as connection:
            found = connection.execute(query).scalar_one_or_none()
        return frozenset(found or ())

    def remember(self, user_id: str, client_id: str, resource: str, scopes: frozenset[str], now: float) -> None:
        """Add scopes to those."""
        with self._database.writing() as connection:
            where = _consent(user_id, client_id, resource)
            found = connection.execute(select(consents.c.scopes).where(*where)).scalar_one_or_none()
            connection.execute(delete(consents).where(*where))
            connection.execute(
                insert(consents).values(
                    user_id=user_id,
                    client_id=client_id,
                    resource=resource,
                    scopes=sorted(scopes.union(found or ())),
                    given_at=now,
                )
            )


def _consent(user_id: str, client_id: str, resource: str) -> tuple[Any, ...]:
    return (consents.c.user_id == user_id, consents.c.client_id == client_id, consents.c.resource == resource)


def _keep(connection: Connection, token_hash: str, grant_id: str, expires_at: float) -> None:
    connection.execute(_ADD_REFRESH_TOKEN, {"hash": token_hash, "grant_id": grant_id, "expires_at": expires_at})


# What every exchange runs is put together once: that costs more than running it.
_WANTED: BindParameter[str] = bindparam("wanted", type_=String)
_OF_GRANT = tuple(column.label(f"g_{column.name}") for column in grants.c)
_LATER = refresh_tokens.alias("later")
_GRANT = select(grants).where(grants.c.id == _WANTED)
_CODE = select(codes, *_OF_GRANT).join(grants, grants.c.id == codes.c.grant_id).where(codes.c.hash == _WANTED)
_REFRESH_TOKEN = (
    select(refresh_tokens, *_OF_GRANT, _LATER.c.replaced_at.label("later_replaced_at"))
    .join(grants, grants.c.id == refresh_tokens.c.grant_id)
    .outerjoin(_LATER, _LATER.c.hash == refresh_tokens.c.successor)
    .where(refresh_tokens.c.hash == _WANTED)
)
_TAKE_CODE = update(codes).where(codes.c.hash == _WANTED, codes.c.used_at.is_(None))
_USE_GRANT = update(grants).where(grants.c.id == _WANTED, grants.c.revoked_at.is_(None))
_USE_CLIENT = update(clients).where(clients.c.id == _WANTED)
_REPLACE = update(refresh_tokens).where(refresh_tokens.c.hash == _WANTED, refresh_tokens.c.replaced_at.is_(None))
_ADD_REFRESH_TOKEN = insert(refresh_tokens)


def _grant(values: Mapping[str, Any], prefix: str = "") -> Grant:
    return Grant(
        id=values[f"{prefix}id"],
        user_id=values[f"{prefix}user_id"],
        client_id=values[f"{prefix}client_id"],
        scopes=tuple(values[f"{prefix}scopes"]),
        resource=values[f"{prefix}resource"],
        auth_time=values[f"{prefix}auth_time"],
        created_at=values[f"{prefix}created_at"],
        used_at=values[f"{prefix}used_at"],
        revoked_at=values[f"{prefix}revoked_at"],
    )
