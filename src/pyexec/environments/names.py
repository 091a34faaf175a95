"""Environments that somebody has given a name to: kept until the name is taken back."""

import hashlib
import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pyexec.domain.errors import InvalidArgumentError
from pyexec.storage.json_files import read_json, write_json

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedEnvironment:
    """A name and what it stands for; `lock` makes the environment again when its folder is gone."""

    name: str
    digest: str
    python: str
    python_version: str
    dependencies: tuple[str, ...]
    lock: str
    created_at: float
    editables: tuple[str, ...] = ()


class NameRegister:
    """The names that owners have given, one file each. Methods block on the disk."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def all_of(self, owner: str) -> list[NamedEnvironment]:
        """Return an owner's named environments, in order of their names."""
        names = sorted(path.stem for path in self._folder(owner).glob("*.json"))
        return [found for name in names if (found := self.get(owner, name)) is not None]

    def get(self, owner: str, name: str) -> NamedEnvironment | None:
        """Return the environment an owner has given that name to; what cannot be a name leads to none."""
        values = read_json(self._file(owner, name)) if _NAME.fullmatch(name) else {}
        if values.keys() != NamedEnvironment.__dataclass_fields__.keys():
            return None
        lists = {name: values[name] for name in ("dependencies", "editables")}
        if not all(isinstance(one, list) for one in lists.values()):
            return None
        return replace(NamedEnvironment(**values), **{name: tuple(map(str, one)) for name, one in lists.items()})

    def put(self, owner: str, named: NamedEnvironment) -> None:
        """Give an environment a name; one that has the name already loses it."""
        self._folder(owner).mkdir(mode=0o700, parents=True, exist_ok=True)
        write_json(self._file(owner, named.name), asdict(named))

    def remove(self, owner: str, name: str) -> None:
        """Take a name back; the environment is evicted in its time."""
        self._file(owner, name).unlink(missing_ok=True)

    def digests(self) -> set[str]:
        """Return the environments that have a name, whoever gave it."""
        found = {read_json(path).get("digest") for path in self._root.glob("*/*.json")}
        return {digest for digest in found if isinstance(digest, str)}

    def count(self, digest: str) -> int:
        """Return how many names an environment has, whoever gave them."""
        return sum(read_json(path).get("digest") == digest for path in self._root.glob("*/*.json"))

    def _folder(self, owner: str) -> Path:
        return self._root / hashlib.sha256(owner.encode()).hexdigest()[:32]

    def _file(self, owner: str, name: str) -> Path:
        return self._folder(owner) / f"{name}.json"


def check_name(name: str) -> str:
    """Return a name that an environment may have.

    Raises:
        InvalidArgumentError: It is none.
    """
    if not _NAME.fullmatch(name):
        raise InvalidArgumentError(
            f"An environment cannot be called {name[:80]!r}; allowed are up to 64 lower-case letters, digits, '.', '_' "
            "and '-', starting and ending with a letter or digit."
        )
    return name
