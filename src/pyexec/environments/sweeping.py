"""Removing what lies in a store and nobody needs."""

import time
from collections.abc import Callable, Collection

from pyexec.domain.limits import EnvironmentLimits
from pyexec.environments.store import Environment, EnvironmentStore
from pyexec.storage.locks import try_hold

RESOLUTIONS_KEPT_SECONDS = 30 * 24 * 3600.0


def sweep(
    store: EnvironmentStore, limits: EnvironmentLimits, named: Callable[[], Collection[str]] = frozenset[str]
) -> int:
    """Remove what nobody has used for long, what is too much, and what was left half made; return how many.

    One process at a time does; what is in use stays, and what is `named`.
    """
    store.create()
    with try_hold(store.root / "sweep.lock") as alone:
        return _sweep(store, limits, named()) if alone else 0


def _sweep(store: EnvironmentStore, limits: EnvironmentLimits, named: Collection[str]) -> int:
    now = time.time()
    store.forget_old_resolutions(now - RESOLUTIONS_KEPT_SECONDS)
    kept: list[tuple[float, Environment]] = []
    removed = 0
    for digest in store.digests():
        store.forget_dead_leases(digest)
        environment = store.get(digest)
        used = max(store.last_used(digest), environment.created_at if environment else 0.0)
        too_old = digest not in named and now - used > limits.environments_age
        if environment is None or too_old:
            removed += store.evict(digest)
        else:
            kept.append((used, environment))
    excess = sum(environment.size_bytes for _used, environment in kept) - limits.environments_size
    for _used, environment in sorted(kept, key=lambda one: one[0]):
        if excess <= 0:
            break
        if environment.digest not in named and store.evict(environment.digest):
            excess -= environment.size_bytes
            removed += 1
    return removed
