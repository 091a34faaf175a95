"""What the keeper of sandboxes is told when it is started."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pyexec.domain.limits import SandboxLimits
from pyexec.domain.sessions import SessionLimits

UP = "up"
"""What the keeper says on standard output once it can be reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeeperOrders:
    """How sandboxes are made. Keepers with other orders live in other folders and know nothing of each other.

    Attributes:
        folder: The keeper's own folder: its lock, its socket, its log.
        key: Tells control groups of one state folder from those of another.
        budget: What the memory limits of all sandboxes may come to together, in bytes.
        limits: Of each sandbox.
        ready: How many sandboxes of each environment are kept ready.
        preloaded: What is imported ahead; None: as much of what usually is as the environment has.
        waived: The limits that need not be held.
        shared: Folders of this machine that every sandbox may read, as (place inside, path).
        sessions: Limits of sessions.
        waiting: How many executions may wait for a sandbox.
        patience: How long one waits at most, in seconds.
        environ: What our own interpreter and the package installer need to start.
        version: Of pyexec.
    """

    folder: Path
    key: str
    budget: int
    limits: SandboxLimits = field(default_factory=SandboxLimits)
    ready: int = 2
    preloaded: tuple[str, ...] | None = None
    waived: tuple[str, ...] = ()
    shared: tuple[tuple[str, str], ...] = ()
    sessions: SessionLimits = field(default_factory=SessionLimits)
    waiting: int = 1000
    patience: float = 600.0
    environ: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    version: str

    def to_json(self) -> str:
        """Return them as text."""
        return json.dumps(asdict(self) | {"folder": str(self.folder), "environ": dict(self.environ)}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "KeeperOrders":
        """Return the orders that a text holds."""
        values = json.loads(text)
        return cls(
            **values
            | {
                "folder": Path(values["folder"]),
                "limits": SandboxLimits(**values["limits"]),
                "preloaded": None if values["preloaded"] is None else tuple(values["preloaded"]),
                "waived": tuple(values["waived"]),
                "shared": tuple((place, path) for place, path in values["shared"]),
                "sessions": SessionLimits(**values["sessions"]),
            }
        )
