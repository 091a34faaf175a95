"""Whom the operator has ended, and when: a small file each, in a folder that servers look at again and again."""

import hashlib
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from pyexec.domain.principals import Principal
from pyexec.storage.json_files import read_json, write_json

LOOK_SECONDS = 1.0


@dataclass(slots=True)
class EndedUsers:
    """Methods block on the disk, for some microseconds where nothing has changed."""

    folder: Path
    _ended: dict[Principal, float] = field(default_factory=dict[Principal, float])
    _seen: int = 0
    _looked_at: float = 0.0

    def end(self, principal: Principal) -> float:
        """Note that what has been issued to somebody up to now counts no more; return when that was."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        now = time.time()
        values = {"issuer": principal.issuer, "subject": principal.subject, "ended_at": now}
        write_json(self.folder / f"{hashlib.sha256(principal.key.encode()).hexdigest()[:32]}.json", values)
        return now

    def all(self) -> list[tuple[Principal, float]]:
        """Return whom there is a note about, and when they were ended, the latest first."""
        self.look()
        return sorted(self._ended.items(), key=lambda one: -one[1])

    @property
    def is_stale(self) -> bool:
        """Whether it is time to `look` again."""
        return time.monotonic() - self._looked_at > LOOK_SECONDS

    def look(self) -> None:
        """Read what has changed since it was last looked at."""
        self._looked_at = time.monotonic()
        try:
            seen = os.stat(self.folder).st_mtime_ns
        except FileNotFoundError:
            self._ended, self._seen = {}, 0
            return
        if seen != self._seen:
            found = [read_json(self.folder / name) for name in os.listdir(self.folder) if name.endswith(".json")]
            readable = [one for one in found if {"issuer", "subject", "ended_at"} <= one.keys()]
            now = {
                Principal(issuer=str(one["issuer"]), subject=str(one["subject"])): float(one["ended_at"])
                for one in readable
            }
            # One that cannot be read is no reason to let somebody in again who was known to have been ended.
            self._ended = now if len(readable) == len(found) else {**self._ended, **now}
            self._seen = seen if len(readable) == len(found) else 0

    def ended_at(self, principal: Principal) -> float | None:
        """Return when somebody was ended, in seconds since the epoch, as far as was seen at the last look."""
        return self._ended.get(principal)
