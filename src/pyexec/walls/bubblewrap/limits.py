"""The control groups that hold a sandbox as a whole to its limits, or the operator's word that they may be missing."""

from collections.abc import Collection

from pyexec.domain.errors import WallUnavailableError
from pyexec.domain.sandboxes import WAIVABLE
from pyexec.sandbox.forks import Groups, NoGroupsError


def groups_for(key: str, budget: int, waived: Collection[str]) -> Groups | None:
    """Return the control groups of one owner's sandboxes; None where they cannot be had and the operator allows it.

    Args:
        key: Tells owners on one machine apart.
        budget: The memory of all sandboxes together, in bytes.
        waived: The limits that may be missing, of `WAIVABLE`.

    Raises:
        WallUnavailableError: They cannot be had, and a limit that they hold has not been waived.
    """
    try:
        return Groups(key, budget)
    except NoGroupsError as error:
        missing = [name for name in WAIVABLE if name not in waived]
        if not missing:
            return None
        named = " and ".join(WAIVABLE[name] for name in missing)
        raise WallUnavailableError(
            f"Sandboxes cannot be held to their limits here ({named}): {error}.",
            hint="Run pyexec as root where control groups of version 1 are mounted; or do without these limits: "
            f"PYEXEC_SANDBOX_WAIVE={','.join(WAIVABLE)}.",
        ) from error
