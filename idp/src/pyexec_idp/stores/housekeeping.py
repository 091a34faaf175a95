"""Removing what nobody needs any more."""

from sqlalchemy import delete, or_, select

from pyexec_idp.domain.values import Bounds, Lifetimes, Origin
from pyexec_idp.stores.database import Database
from pyexec_idp.stores.schema import (
    attempts,
    clients,
    codes,
    devices,
    grants,
    refresh_tokens,
    revoked_tokens,
    sign_ins,
)

_KEPT = 86400.0
"""For how long what has ended is kept all the same: whoever replays it is still recognised."""


def clean(database: Database, now: float, lifetimes: Lifetimes, bounds: Bounds) -> None:
    """Remove what has expired, and clients that registered themselves and never got a token."""
    with database.writing() as connection:
        for table in (sign_ins, devices, revoked_tokens):
            connection.execute(delete(table).where(table.c.expires_at < now))
        for table in (codes, refresh_tokens):
            connection.execute(delete(table).where(table.c.expires_at < now - _KEPT))
        connection.execute(delete(attempts).where(attempts.c.at < now - bounds.window))
        never = select(codes.c.grant_id).union(select(refresh_tokens.c.grant_id))
        connection.execute(
            delete(grants).where(
                grants.c.id.not_in(never),
                grants.c.created_at < now - _KEPT - lifetimes.access_token,
                or_(grants.c.used_at.is_(None), grants.c.used_at < now - _KEPT - lifetimes.access_token),
            )
        )
        connection.execute(
            delete(clients).where(
                clients.c.origin == Origin.DYNAMIC.value,
                clients.c.used_at.is_(None),
                clients.c.created_at < now - lifetimes.unused_client,
            )
        )
