"""Packages for sessions that live."""

from collections.abc import Callable
from pathlib import Path

from anyio.to_thread import run_sync

from pyexec.domain.errors import InvalidArgumentError, PackagesUnavailableError
from pyexec.domain.principals import Principal
from pyexec.environments.packages.service import PackagesAsked, PackageSets
from pyexec.environments.packages.sets import PackageSet
from pyexec.environments.store import Environment
from pyexec.sessions.directory import SessionDirectory

Say = Callable[[str], None]


class SessionPackages:
    """Gives sessions packages, which their interpreters find without being started anew.

    Args:
        directory: The sessions there are.
        sets: Puts packages together.
        environment_at: Finds the environment in a folder.
    """

    def __init__(
        self, directory: SessionDirectory, sets: PackageSets, environment_at: Callable[[Path], Environment | None]
    ) -> None:
        self._directory = directory
        self._sets = sets
        self._environment_at = environment_at

    async def install(
        self, principal: Principal, session_id: str, packages: tuple[str, ...], say: Say | None = None
    ) -> PackageSet:
        """Give a session packages; return what was added, with what it needs. `say` hears what is going on.

        Raises:
            NotFoundError: This principal has no such session.
            InvalidArgumentError: They are not allowed, or do not go with what is there; the message names both.
            PackagesUnavailableError: They cannot be had, or the session does not live.
            UvNotFoundError: There is no uv.
        """
        return await run_sync(self._install, principal.key, session_id, packages, say)

    def _install(self, owner: str, session_id: str, packages: tuple[str, ...], say: Say | None) -> PackageSet:
        if not packages:
            raise InvalidArgumentError("packages is empty.", hint="Name at least one.")
        found = self._directory.find(owner, session_id)
        prefix = found.session.prefix
        base = self._environment_at(Path(prefix)) if prefix is not None else None
        if base is None:
            raise PackagesUnavailableError(
                f"Session {session_id!r} does not live.",
                hint="Name them in dependencies of the execute_python that starts it.",
            )
        asked = PackagesAsked(requirements=packages, owner=owner, into=found.folder.packages, called="packages")
        try:
            return self._sets.add(asked, base, say)
        except FileNotFoundError as error:
            raise PackagesUnavailableError(f"Session {session_id!r} was closed meanwhile.") from error
