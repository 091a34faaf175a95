"""Who may sign in, and where they are signed in."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Row, bindparam, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from pyexec_idp.domain.errors import UserExistsError
from pyexec_idp.domain.values import SignIn, User
from pyexec_idp.stores.database import Database
from pyexec_idp.stores.schema import sign_ins, users


class UserStore:
    """The users. Names are compared in lower case."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, user: User, password_hash: str | None) -> None:
        """Add a user.

        Raises:
            UserExistsError: The name is taken.
        """
        values = {
            "id": user.id,
            "name": user.name,
            "display_name": user.display_name,
            "email": user.email,
            "created_at": user.created_at,
            "password_hash": password_hash,
        }
        try:
            with self._database.writing() as connection:
                connection.execute(insert(users).values(values))
        except IntegrityError:
            raise UserExistsError(f"There is a user {user.name} already.") from None

    def all(self) -> list[User]:
        """Return every user, by name."""
        with self._database.reading() as connection:
            return [_user(row) for row in connection.execute(select(users).order_by(users.c.name))]

    def named(self, name: str) -> tuple[User, str | None] | None:
        """Return the user of a name, with the hash of the password."""
        with self._database.reading() as connection:
            row = connection.execute(select(users).where(users.c.name == name.lower())).one_or_none()
        return None if row is None else (_user(row), row.password_hash)

    def get(self, user_id: str) -> User | None:
        """Return the user of an id."""
        with self._database.reading() as connection:
            row = connection.execute(_USER, {"wanted": user_id}).one_or_none()
        return None if row is None else _user(row)

    def change(self, user_id: str, values: Mapping[str, Any]) -> None:
        """Set columns of a user."""
        with self._database.writing() as connection:
            connection.execute(update(users).where(users.c.id == user_id).values(values))


class SignInStore:
    """The browsers in which somebody is signed in, by the hash of what their cookie holds."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, token_hash: str, sign_in: SignIn) -> None:
        """Add one."""
        with self._database.writing() as connection:
            connection.execute(
                insert(sign_ins).values(
                    token_hash=token_hash,
                    id=sign_in.id,
                    user_id=sign_in.user.id,
                    created_at=sign_in.created_at,
                    last_seen_at=sign_in.last_seen_at,
                    expires_at=sign_in.expires_at,
                    address=sign_in.address,
                    user_agent=sign_in.user_agent,
                )
            )

    def find(self, token_hash: str, now: float) -> SignIn | None:
        """Return the one of a cookie, None where it has ended or its user is disabled."""
        query = _JOINED.where(
            sign_ins.c.token_hash == token_hash, sign_ins.c.expires_at > now, users.c.disabled_at.is_(None)
        )
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else _sign_in(row)

    def of(self, user_id: str, now: float) -> list[SignIn]:
        """Return those of a user, newest first."""
        query = _JOINED.where(sign_ins.c.user_id == user_id, sign_ins.c.expires_at > now)
        with self._database.reading() as connection:
            return [_sign_in(row) for row in connection.execute(query.order_by(sign_ins.c.created_at.desc()))]

    def seen(self, sign_in_id: str, now: float) -> None:
        """Note that it was used."""
        with self._database.writing() as connection:
            connection.execute(update(sign_ins).where(sign_ins.c.id == sign_in_id).values(last_seen_at=now))

    def end(self, user_id: str, sign_in_id: str | None = None) -> None:
        """End one of a user's, or all of them."""
        query = delete(sign_ins).where(sign_ins.c.user_id == user_id)
        if sign_in_id is not None:
            query = query.where(sign_ins.c.id == sign_in_id)
        with self._database.writing() as connection:
            connection.execute(query)


_JOINED = select(sign_ins, users.c.name, users.c.display_name, users.c.email, users.c.disabled_at).join(
    users, users.c.id == sign_ins.c.user_id
)


def _user(row: Row[Any]) -> User:
    return User(
        id=row.id,
        name=row.name,
        display_name=row.display_name,
        email=row.email,
        created_at=row.created_at,
        disabled_at=row.disabled_at,
    )


def _sign_in(row: Row[Any]) -> SignIn:
    user = User(
        id=row.user_id,
        name=row.name,
        display_name=row.display_name,
        email=row.email,
        disabled_at=row.disabled_at,
    )
    return SignIn(
        id=row.id,
        user=user,
        created_at=row.created_at,
        last_seen_at=row.last_seen_at,
        expires_at=row.expires_at,
        address=row.address,
        user_agent=row.user_agent,
    )


_USER = select(users).where(users.c.id == bindparam("wanted"))
