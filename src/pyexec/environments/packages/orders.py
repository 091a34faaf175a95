"""What the program that makes environments is told about packages for a sandbox."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from pyexec.domain.packages import PackageSettings
from pyexec.environments.fingerprints import fingerprint
from pyexec.environments.keys import uv_influence
from pyexec.environments.local import fingerprint_of, local_path
from pyexec.environments.store import Environment

_START = '{"packages": '
_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """The environment of the sandbox, which packages come on top of.

    Attributes:
        digest: Its name.
        python: The interpreter that it was made with: not its own, which would run what is in its packages.
        python_version: The version of that.
        packages: What is installed in it, each as `name==version` or `name @ url`.
    """

    digest: str
    python: str
    python_version: str
    packages: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageOrder:
    """Packages to put together, and for whom.

    Attributes:
        root: The folder that sets lie in.
        uv: The program.
        base: What they come on top of; None: the environment of the order before.
        requirements: What is asked for, checked.
        into: The folder of a session's packages, to be put into it.
        beside: What lies there already, each as `name==version` or `name @ url`; found out when it is locked.
        settings: What the operator allows.
        owner: Whose set it is; None: everybody's.
        index_url: The package index to use in place of the usual one.
        cache_apart: Whether uv may remember nothing, since it comes from where only this caller looks.
        cwd: The folder that uv works in, which says whose settings count.
        fresh_seconds: How old a resolution may be.
        folder: The folder for the answer.
        holder, holder_lock: Who leases the set, see `EnvironmentStore.lease`.
    """

    root: str
    uv: str
    base: Base | None
    requirements: tuple[str, ...] = field(repr=False)
    into: str | None = None
    beside: tuple[str, ...] = ()
    settings: PackageSettings = field(default_factory=PackageSettings)
    owner: str | None = None
    index_url: str | None = field(default=None, repr=False)
    cache_apart: bool = False
    cwd: str = "/"
    fresh_seconds: float
    folder: str
    holder: str
    holder_lock: str

    def on(self, made: Environment | None) -> "PackageOrder":
        """Return it for the environment that was made just now, where it names none."""
        return replace(self, base=base_of(made)) if self.base is None and made is not None else self

    def key(self, environ: Mapping[str, str]) -> str:
        """Return the same key for orders that resolve to the same, as long as no index changes. Reads some files."""
        base = self.base
        content = [
            _FORMAT,
            asdict(base) if base else None,
            repr(fingerprint(Path(base.python))) if base else None,
            sorted(self.requirements),
            [fingerprint_of(path) for one in self.requirements if (path := local_path(one)) is not None],
            sorted(self.beside),
            asdict(self.settings),
            self.owner,
            self.index_url,
            uv_influence(environ, Path(self.cwd)),
        ]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:32]

    def to_json(self) -> str:
        """Return the order as one line."""
        return f"{_START}{json.dumps(asdict(self))}}}"

    @classmethod
    def from_json(cls, text: str) -> "PackageOrder | None":
        """Read an order; None where the line is another one."""
        if not text.startswith(_START):
            return None
        values: dict[str, Any] = _frozen(json.loads(text)["packages"])
        values["base"] = Base(**values["base"]) if values["base"] else None
        values["settings"] = PackageSettings(**values["settings"])
        return cls(**values)


def base_of(environment: Environment) -> Base:
    """Return an environment as what packages come on top of."""
    return Base(
        digest=environment.digest,
        python=str(environment.python.resolve()),
        python_version=environment.python_version,
        packages=environment.packages,
    )


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _frozen(one) for name, one in cast("dict[str, Any]", value).items()}
    return tuple(cast("list[Any]", value)) if isinstance(value, list) else value
