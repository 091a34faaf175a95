"""What the keeper of sandboxes is told when it is started."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pyexec.domain.limits import SandboxLimits
from pyexec.domain.sandboxes import SandboxSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class KeeperOrders:
    """How sandboxes are made. Keepers with other orders live in other folders and know nothing of each other.

    Attributes:
        folder: The keeper's own folder: its lock, its socket, its log.
        key: Tells control groups of one keeper from those of another.
        together: What the memory limits of all sandboxes may come to together, in bytes.
        settings: What the operator has set.
        environ: What our own interpreter and those of sandboxes need to start.
        version: Of pyexec.
    """

    folder: Path
    key: str
    together: int
    settings: SandboxSettings
    environ: Mapping[str, str] = field(repr=False)
    version: str

    def to_json(self) -> str:
        """Return them as text."""
        return json.dumps(asdict(self) | {"folder": str(self.folder), "environ": dict(self.environ)}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "KeeperOrders":
        """Return the orders that a text holds."""
        values: dict[str, Any] = json.loads(text)
        given: dict[str, Any] = values["settings"]
        tuples = {name: tuple(given[name]) for name in ("packages", "preloaded", "waived") if given[name] is not None}
        given = {**given, **tuples, "limits": SandboxLimits(**given["limits"])}
        values = {**values, "folder": Path(values["folder"]), "settings": SandboxSettings(**given)}
        return cls(**values)
