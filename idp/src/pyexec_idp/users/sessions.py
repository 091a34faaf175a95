"""Browsers in which somebody is signed in. The cookie's value is new at each sign-in, and kept as a hash only."""

from dataclasses import replace

from pyexec_idp.domain.secrets import Clock, hash_of, new_id, new_secret, wall_clock
from pyexec_idp.domain.values import Lifetimes, SignIn, User
from pyexec_idp.stores.attempts import Audit
from pyexec_idp.stores.users import SignInStore

_SEEN_EVERY = 60.0
_LONGEST_AGENT = 300


class Sessions:
    """Begins, finds and ends them."""

    def __init__(self, store: SignInStore, audit: Audit, lifetimes: Lifetimes, now: Clock = wall_clock) -> None:
        self._store = store
        self._audit = audit
        self._lifetimes = lifetimes
        self._now = now

    def begin(self, user: User, *, address: str, user_agent: str) -> str:
        """Sign somebody in; return what the cookie is to hold."""
        token, now = new_secret(), self._now()
        sign_in = SignIn(
            id=new_id(),
            user=user,
            created_at=now,
            last_seen_at=now,
            expires_at=now + self._lifetimes.sign_in,
            address=address[:64],
            user_agent=user_agent[:_LONGEST_AGENT],
        )
        self._store.add(hash_of(token), sign_in)
        self._audit.note("signed_in", user_id=user.id, address=address)
        return token

    def find(self, token: str | None) -> SignIn | None:
        """Return who is signed in with a cookie's value."""
        if not token:
            return None
        now = self._now()
        found = self._store.find(hash_of(token), now)
        if found is not None and found.last_seen_at < now - _SEEN_EVERY:
            self._store.seen(found.id, now)
            return replace(found, last_seen_at=now)
        return found

    def of(self, user: User) -> list[SignIn]:
        """Return where a user is signed in."""
        return self._store.of(user.id, self._now())

    def end(self, user: User, sign_in_id: str) -> None:
        """End one of a user's."""
        self._store.end(user.id, sign_in_id)
        self._audit.note("signed_out", user_id=user.id)
