"""Who may sign in: added, changed and disabled by the operator; checked at the sign-in."""

import re

from pyexec_idp.domain.errors import InvalidValueError, TooManyError, UnknownUserError
from pyexec_idp.domain.secrets import Clock, new_id, wall_clock
from pyexec_idp.domain.values import Bounds, User
from pyexec_idp.stores.attempts import AttemptStore, Audit
from pyexec_idp.stores.grants import GrantStore
from pyexec_idp.stores.users import SignInStore, UserStore
from pyexec_idp.users.passwords import Passwords

_NAME = re.compile(r"[a-z0-9][a-z0-9._@+-]{0,99}")


class People:
    """The users, with their passwords."""

    def __init__(
        self,
        *,
        store: UserStore,
        sign_ins: SignInStore,
        grants: GrantStore,
        attempts: AttemptStore,
        audit: Audit,
        passwords: Passwords,
        bounds: Bounds,
        now: Clock = wall_clock,
    ) -> None:
        self._store = store
        self._sign_ins = sign_ins
        self._grants = grants
        self._attempts = attempts
        self._audit = audit
        self._passwords = passwords
        self._bounds = bounds
        self._now = now

    def add(
        self,
        name: str,
        password: str | None = None,
        *,
        display_name: str | None = None,
        email: str | None = None,
        password_hash: str | None = None,
    ) -> User:
        """Add somebody, with a password or a hash that came from elsewhere (argon2id or bcrypt).

        Raises:
            InvalidValueError: The name or the password is not allowed.
            UserExistsError: The name is taken.
        """
        wanted = name.lower()
        if _NAME.fullmatch(wanted) is None:
            raise InvalidValueError(
                f"{name[:100]!r} cannot be a user's name.", hint="Letters, digits and . _ @ + -, at most 100."
            )
        user = User(id=new_id(), name=wanted, display_name=display_name, email=email, created_at=self._now())
        self._store.add(user, password_hash if password is None else self._passwords.hash(password))
        self._audit.note("user_added", user_id=user.id, name=wanted)
        return user

    def sign_up(self, name: str, password: str, address: str, *, display_name: str | None = None) -> User:
        """Add somebody who asks for it themselves.

        Raises:
            TooManyError: There were too many attempts from that address lately.
            InvalidValueError: The name or the password is not allowed.
            UserExistsError: The name is taken.
        """
        now, place = self._now(), f"sign-up:{address}"
        if self._attempts.count(place, now - self._bounds.window) >= self._bounds.sign_ups_per_address:
            self._audit.note("sign_up_throttled", address=address)
            raise TooManyError("Too many attempts. Wait a quarter of an hour, then try again.")
        self._attempts.add((place,), now)
        user = self.add(name, password, display_name=display_name)
        self._audit.note("signed_up", user_id=user.id, address=address)
        return user

    def all(self) -> list[User]:
        """Return everybody, by name."""
        return self._store.all()

    def named(self, name: str) -> User:
        """Return the user of a name.

        Raises:
            UnknownUserError: There is none.
        """
        found = self._store.named(name)
        if found is None:
            raise UnknownUserError(f"There is no user {name[:100]!r}.")
        return found[0]

    def active(self, user_id: str) -> User | None:
        """Return the user of an id, None where there is none or it is disabled."""
        user = self._store.get(user_id)
        return None if user is None or user.disabled_at is not None else user

    def disable(self, name: str) -> None:
        """Refuse somebody from now on: every sign-in and everything allowed to clients ends.

        Raises:
            UnknownUserError: There is no user of that name.
        """
        user = self.named(name)
        now = self._now()
        self._store.change(user.id, {"disabled_at": now})
        self._sign_ins.end(user.id)
        self._grants.revoke_all(user.id, now)
        self._audit.note("user_disabled", user_id=user.id)

    def enable(self, name: str) -> None:
        """Let somebody in again.

        Raises:
            UnknownUserError: There is no user of that name.
        """
        user = self.named(name)
        self._store.change(user.id, {"disabled_at": None})
        self._audit.note("user_enabled", user_id=user.id)

    def reset(self, name: str, password: str) -> None:
        """Give somebody a new password: every sign-in and everything allowed to clients ends.

        Raises:
            InvalidValueError: The password is not allowed.
            UnknownUserError: There is no user of that name.
        """
        user = self.named(name)
        self._store.change(user.id, {"password_hash": self._passwords.hash(password)})
        self._sign_ins.end(user.id)
        self._grants.revoke_all(user.id, self._now())
        self._attempts.forget(_account(user.name))
        self._audit.note("password_reset", user_id=user.id)

    def check(self, name: str, password: str, address: str) -> User | None:
        """Return who that is, None for every reason there may be; it takes the same time whatever is wrong.

        Raises:
            TooManyError: Too many were wrong lately, for that name or from that address.
        """
        now = self._now()
        account, place = _account(name), f"address:{address}"
        since = now - self._bounds.window
        by_name, by_address = self._attempts.counts((account, place), since)
        if by_name >= self._bounds.failures_per_account or by_address >= self._bounds.failures_per_address:
            self._audit.note("sign_in_throttled", address=address)
            raise TooManyError("Too many attempts. Wait a quarter of an hour, then try again.")
        found = self._store.named(name)
        user, kept = (None, None) if found is None else found
        fits, better = self._passwords.check(password, kept)
        if user is None or not fits or user.disabled_at is not None:
            self._attempts.add((account, place), now)
            self._audit.note("sign_in_refused", user_id=None if user is None else user.id, address=address)
            return None
        if by_name:
            self._attempts.forget(account)
        if better is not None:
            self._store.change(user.id, {"password_hash": better})
        return user


def _account(name: str) -> str:
    return f"account:{name.lower()}"
