"""What holds a sandbox as a whole to its limits: the kernel, or a watcher where an operator has said that will do."""

from collections.abc import Collection

from pyexec.domain.errors import WallUnavailableError
from pyexec.domain.sandboxes import WAIVABLE
from pyexec.sandbox.forks import Groups, NoGroupsError, WatchedGroups, find_groups


def groups_for(key: str, budget: int, waived: Collection[str]) -> Groups:
    """Return what holds one owner's sandboxes: control groups, and a watcher where the operator allows their absence.

    This process may be in another control group afterwards.

    Args:
        key: Tells owners on one machine apart.
        budget: The memory of all sandboxes together, in bytes.
        waived: The limits that need not be held hard, of `WAIVABLE`.

    Raises:
        WallUnavailableError: There are no control groups, and a limit that they hold has not been waived.
    """
    try:
        return find_groups(key, budget)
    except NoGroupsError as error:
        missing = [name for name in WAIVABLE if name not in waived]
        if not missing:
            return WatchedGroups(budget)
        named = " and ".join(WAIVABLE[name] for name in missing)
        raise WallUnavailableError(
            f"Sandboxes cannot be held to their limits here ({named}): {error}.",
            hint=f"{error.remedy} Or have memory watched only, and processor time not limited: "
            f"PYEXEC_SANDBOX_WAIVE={','.join(WAIVABLE)}.",
        ) from error
