"""Devices that wait to be allowed."""

from typing import Any

from sqlalchemy import Row, delete, insert, select, update

from pyexec_idp.domain.values import Device
from pyexec_idp.stores.database import Database
from pyexec_idp.stores.schema import devices


class DeviceStore:
    """The devices, by what they hold and by what people type."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, device: Device) -> None:
        """Add one."""
        with self._database.writing() as connection:
            connection.execute(
                insert(devices).values(
                    code_hash=device.code_hash,
                    user_code=device.user_code,
                    client_id=device.client_id,
                    scopes=list(device.scopes),
                    resource=device.resource,
                    expires_at=device.expires_at,
                    interval=device.interval,
                )
            )

    def held(self, code_hash: str) -> Device | None:
        """Return the one that holds a code."""
        with self._database.reading() as connection:
            row = connection.execute(select(devices).where(devices.c.code_hash == code_hash)).one_or_none()
        return None if row is None else _device(row)

    def typed(self, user_code: str, now: float) -> Device | None:
        """Return the one that shows a code and still waits."""
        query = select(devices).where(
            devices.c.user_code == user_code,
            devices.c.expires_at > now,
            devices.c.grant_id.is_(None),
            devices.c.denied_at.is_(None),
        )
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else _device(row)

    def polled(self, device: Device, now: float, interval: float) -> None:
        """Note that it asked."""
        self._set(device, polled_at=now, interval=interval)

    def allow(self, device: Device, grant_id: str) -> None:
        """Note that somebody allowed it."""
        self._set(device, grant_id=grant_id)

    def deny(self, device: Device, now: float) -> None:
        """Note that somebody refused it."""
        self._set(device, denied_at=now)

    def take(self, device: Device) -> bool:
        """Remove it, for its tokens are about to be given; tell whether it was there."""
        with self._database.writing() as connection:
            return connection.execute(delete(devices).where(devices.c.code_hash == device.code_hash)).rowcount > 0

    def _set(self, device: Device, **values: Any) -> None:
        with self._database.writing() as connection:
            connection.execute(update(devices).where(devices.c.code_hash == device.code_hash).values(values))


def _device(row: Row[Any]) -> Device:
    return Device(
        code_hash=row.code_hash,
        user_code=row.user_code,
        client_id=row.client_id,
        scopes=tuple(row.scopes),
        resource=row.resource,
        expires_at=row.expires_at,
        interval=row.interval,
        polled_at=row.polled_at,
        grant_id=row.grant_id,
        denied_at=row.denied_at,
    )
