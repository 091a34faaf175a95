"""The environments there are: listed, named, locked, removed, evicted."""

import logging
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
from anyio.to_thread import run_sync

from pyexec.domain.errors import EnvironmentInUseError, NotFoundError
from pyexec.domain.limits import EnvironmentLimits
from pyexec.domain.principals import Principal, is_local
from pyexec.environments.names import NameRegister
from pyexec.environments.store import Environment, EnvironmentStore, is_digest
from pyexec.environments.sweeping import sweep

_log = logging.getLogger(__name__)

FIRST_SWEEP_SECONDS = 60.0
SWEEP_SECONDS = 3600.0
SHORTEST_ID = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentEntry:
    """An environment as it is listed; `environment` is None when the folder of a named one is gone.

    Times are seconds since the epoch; `in_use_by` are ids of executions.
    """

    id: str
    names: tuple[str, ...]
    python_version: str
    environment: Environment | None
    last_used_at: float
    in_use_by: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentLock:
    """The exact packages of an environment, as a requirements file with hashes, and what they were resolved for."""

    id: str
    python_version: str
    text: str


class EnvironmentService:
    """Looks after environments. Names belong to a principal; what is installed is shared."""

    def __init__(
        self,
        store: EnvironmentStore,
        names: NameRegister,
        limits: EnvironmentLimits,
        packages: EnvironmentStore | None = None,
    ) -> None:
        self._store = store
        self._packages = packages
        self._names = names
        self._limits = limits

    async def entries(self, principal: Principal) -> list[EnvironmentEntry]:
        """Return the environments: named ones first, then the most recently used.

        Where there are several users, each sees those with a name of their own only.
        """
        return await run_sync(self._list, principal.key)

    async def require(self, principal: Principal, text: str) -> EnvironmentEntry:
        """Return the environment that a name, an id or a unique beginning of one means.

        Raises:
            NotFoundError: None, or more than one, is called so.
        """
        entries = await self.entries(principal)
        found = [entry for entry in entries if text in entry.names or text == entry.id]
        if not found and len(text) >= SHORTEST_ID:
            found = [entry for entry in entries if entry.id.startswith(text)]
        if len(found) != 1:
            which = f"{len(found)} environments begin with" if found else "There is no environment"
            raise NotFoundError(f"{which} {text[:80]!r}.", hint="list_environments shows those there are.")
        return found[0]

    async def lock(self, principal: Principal, text: str) -> EnvironmentLock:
        """Return the lock of an environment.

        Raises:
            NotFoundError: There is no such environment.
        """
        entry = await self.require(principal, text)
        return await run_sync(self._lock, principal.key, entry)

    async def remove(self, principal: Principal, text: str) -> EnvironmentEntry:
        """Remove an environment by its id with all its names, or a name; return what it was.

        While anybody has a name for the environment, it stays.

        Raises:
            NotFoundError: There is no such environment.
            EnvironmentInUseError: Something runs in it.
        """
        entry = await self.require(principal, text)
        if text in entry.names:  # The others stay, and the environment with them.
            entry = replace(entry, names=(text,))
        await run_sync(self._remove, principal.key, entry)
        return entry

    async def sweep_forever(self) -> None:
        """Sweep again and again; whoever starts this owns the task."""
        await anyio.sleep(FIRST_SWEEP_SECONDS)
        while True:
            try:
                await run_sync(self.sweep)
            except OSError as error:  # The folder was removed, or the disk is full: no reason to end the server.
                _log.warning("environments could not be swept: %s", error)
            await anyio.sleep(SWEEP_SECONDS)

    def sweep(self) -> int:
        """Remove what nobody has used for long, what is too much, and what was left half made; return how many.

        One server at a time does; what is in use or has a name stays. The same goes for packages put together for
        sandboxes, which have no names.
        """
        removed = sweep(self._store, self._limits, self._names.digests)
        return removed + (sweep(self._packages, self._limits) if self._packages is not None else 0)

    def _list(self, owner: str) -> list[EnvironmentEntry]:
        named = self._names.all_of(owner)
        digests = {one.digest for one in named if is_digest(one.digest)}
        local = is_local(owner)
        if local:  # The machine is that user's; others know of what they have named, and of nobody's doings.
            digests.update(self._store.digests())
        entries: list[EnvironmentEntry] = []
        for digest in digests:
            environment = self._store.get(digest)
            own = [one for one in named if one.digest == digest]
            if environment is None and not own:
                continue  # It is just being made, or was left half made.
            entries.append(
                EnvironmentEntry(
                    id=digest,
                    names=tuple(one.name for one in own),
                    python_version=environment.python_version if environment else own[0].python_version,
                    environment=environment,
                    last_used_at=self._store.last_used(digest),
                    in_use_by=tuple(self._store.holders(digest)) if local else (),
                )
            )
        return sorted(entries, key=lambda entry: (not entry.names, entry.names, -entry.last_used_at))

    def _lock(self, owner: str, entry: EnvironmentEntry) -> EnvironmentLock:
        text = self._store.lock_text(entry.id)
        if text is None:
            found = (named.lock for named in self._names.all_of(owner) if named.digest == entry.id)
            text = next(found, "")
        return EnvironmentLock(id=entry.id, python_version=entry.python_version, text=text)

    def _remove(self, owner: str, entry: EnvironmentEntry) -> None:
        # What nobody has a name for is swept in time; a refusal would tell others that something runs in it.
        if is_local(owner) and self._names.count(entry.id) == len(entry.names):
            self._evict(entry)
        for name in entry.names:
            self._names.remove(owner, name)

    def _evict(self, entry: EnvironmentEntry) -> None:
        called = entry.names[0] if entry.names else entry.id
        if entry.in_use_by:
            raise EnvironmentInUseError(
                f"The environment {called} is in use by {len(entry.in_use_by)} "
                f"execution{'s' if len(entry.in_use_by) > 1 else ''}: {', '.join(entry.in_use_by[:3])}.",
                hint="Wait for them to end, or cancel them.",
            )
        if not self._store.evict(entry.id, at_once=True):
            raise EnvironmentInUseError(
                f"The environment {called} is being made, or was taken into use just now.",
                hint="Try again in a moment.",
            )


def environment_places(root: Path) -> tuple[EnvironmentStore, NameRegister]:
    """Return the store and the names in a state folder's `environments`, which is made if need be."""
    store = EnvironmentStore(root)
    store.create()
    return store, NameRegister(root / "named")
