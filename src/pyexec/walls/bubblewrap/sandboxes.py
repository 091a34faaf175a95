"""The bubblewrap wall: fork servers, one generation after the other, and the sandboxes they fork."""

import os
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

from pyexec.domain.errors import PyexecError, SandboxesFullError, WallUnavailableError
from pyexec.domain.limits import MEGABYTE, SandboxLimits
from pyexec.processes.mounting import Mounter
from pyexec.processes.outerwalls import put_up
from pyexec.sandbox.forks import ForkServer, ForkServerGoneError, Group, GroupLimits, Groups, NoRoomError, Plan
from pyexec.walls.bubblewrap.boxes import Box, fork_box
from pyexec.walls.bubblewrap.folders import Folder, opened, taken, writable_of
from pyexec.walls.bubblewrap.users import SandboxUsers, given

START_SECONDS = 60.0
END_SECONDS = 10.0
CHECK_SECONDS = 1.0
FORKED_AT_ONCE = 2
"""How many that shall be ready are on their way at once: while one comes up, the fork server forks the next."""

SERVER_MEMORY = 1024 * MEGABYTE
SERVER_PROCESSES = 128
SERVER_CPU = 2.0


class Sandboxes:
    """Makes sandboxes. Nothing is started before it is asked for. May be used from several threads.

    Args:
        plan: The outer wall of its fork servers.
        groups: What holds its sandboxes to their memory and processor time (`tiers.limits_for`).
        environ: What our own interpreter needs to start.
        limits: The limits of a sandbox that asks for no others, which is what is kept ready.
        ready: How many such sandboxes are kept ready.
        on_server: Hears the pid of the first process behind each outer wall, with which everything there ends.
        users: Whom they are, where the plan has users.
        usual: The folders of this machine that those that are kept ready have.
        crowded: Tells whether others want all the room there is; then none are made ready.
    """

    def __init__(
        self,
        plan: Plan,
        groups: Groups,
        environ: Mapping[str, str],
        *,
        limits: SandboxLimits | None = None,
        ready: int = 2,
        on_server: Callable[[int], None] | None = None,
        users: SandboxUsers | None = None,
        usual: Sequence[Folder] = (),
        crowded: Callable[[], bool] = lambda: False,
    ) -> None:
        self._plan = plan
        self._groups = groups
        self._environ = dict(environ)
        self._limits = limits or SandboxLimits()
        self._wanted = ready
        self._on_server = on_server
        self._lock = threading.Lock()
        self._server: tuple[ForkServer, Group] | None = None
        self._retired: list[tuple[ForkServer, Group]] = []
        self._ready: deque[Box] = deque()
        self._out: list[Box] = []
        self._users = users or (SandboxUsers(plan.users.count) if plan.users is not None else None)
        self._usual = tuple(usual)
        self._crowded = crowded
        self._mounter = Mounter(environ)
        self._few = threading.Event()
        self._closing = threading.Event()
        self._filler: threading.Thread | None = None

    @property
    def waived(self) -> tuple[str, ...]:
        """What its sandboxes are not held to hard, because the operator has said so; every result has to tell."""
        return self._groups.waived

    def warm(self) -> None:
        """Have a fork server up, and sandboxes made ready from now on. Blocks for seconds.

        Raises:
            WallUnavailableError: The wall cannot be had.
        """
        self._current()
        if self._wanted and self._filler is None:
            self._filler = threading.Thread(target=self._fill, name="sandboxes", daemon=True)
            self._filler.start()
            self._few.set()

    def sandbox(
        self,
        limits: SandboxLimits | None = None,
        folders: Sequence[Folder] = (),
        had: Callable[[], None] | None = None,
    ) -> Box:
        """Return a sandbox that nobody has used: a ready one where its limits are the usual ones, else a new one.

        One with other folders is never a ready one: these have given up already what it takes to attach them. As root a
        sandbox is the user that the folder belongs to which it may write to, so that all sandboxes that have had the
        folder one after the other are the same user; a folder that belongs to none of theirs is given to one. `had`
        hears that there is room for it, while it is still being made.

        Raises:
            WallUnavailableError: The wall, or one of the limits, cannot be had.
            SandboxesFullError: There is not enough memory for one more.
            SandboxNotMadeError: It went wrong this time, or one of the folders is not there.
            InvalidArgumentError: Two of the folders are writable, or have one place.
        """
        asked = limits or self._limits
        box = self._take() if asked == self._limits and tuple(folders) == self._usual else None
        if box is None:
            box = self._fork(asked, folders, had)
        elif had is not None:
            had()
        return self._handed_out(box)

    def sandbox_at_once(self, folders: Sequence[Folder] = ()) -> Box | None:
        """Return a sandbox with the usual limits that is ready, if there is one with these folders.

        Raises:
            WallUnavailableError: One of the limits cannot be had.
        """
        box = self._take() if tuple(folders) == self._usual else None
        return None if box is None else self._handed_out(box)

    def _handed_out(self, box: Box) -> Box:
        """Hold a sandbox to its processor time from now on, and remember it.

        Raises:
            WallUnavailableError: It cannot be held to it.
        """
        try:
            box.begin()
        except OSError as error:
            box.close()
            raise WallUnavailableError(f"A sandbox cannot be held to its processor time: {error.strerror}.") from error
        with self._lock:
            self._out = [one for one in self._out if not one.closed]
            self._out.append(box)
        return box

    def give_way(self) -> bool:
        """Give up one of those that are kept ready; tell whether there was one. Blocks for some milliseconds."""
        with self._lock:
            box = self._ready.pop() if self._ready else None
        if box is None:
            return False
        box.close()
        return True

    def is_in_use(self) -> bool:
        """Tell whether somebody has a sandbox of it."""
        with self._lock:
            self._out = [one for one in self._out if not one.closed]
            return bool(self._out)

    def retire(self) -> None:
        """Make no more of them; those that are out live on, each as long as whoever holds it wants. Blocks."""
        self._stop_filling()
        self.renew()
        self._mounter.close()

    def is_inhabited(self) -> bool:
        """Tell whether anything is left of it, once it has been retired; what has gone is let go of."""
        with self._lock:
            self._forget_ended()
            return bool(self._retired)

    def renew(self) -> None:
        """Let the fork server go when its sandboxes have; the next sandbox comes from a new one."""
        with self._lock:
            self._retire()
            stale = list(self._ready)
            self._ready.clear()
        for box in stale:
            box.close()

    def close(self) -> None:
        """End everything, all sandboxes too, and remove what they had. Blocks."""
        self._stop_filling()
        self.renew()
        with self._lock:
            retired, self._retired = self._retired, []
            out, self._out = self._out, []
        self._mounter.close()
        for box in out:
            box.close()
        for server, group in retired:
            server.destroy(END_SECONDS)
            server.close()
            group.remove()

    # -- fork servers ----------------------------------------------------------------------------------------------

    def _current(self) -> ForkServer:
        with self._lock:
            if self._server is not None and not self._server[0].is_alive():
                self._retire()
            self._forget_ended()
            if self._server is None:
                self._server = self._start()
                if self._on_server is not None:
                    self._on_server(self._server[0].pid())
            return self._server[0]

    def _start(self) -> tuple[ForkServer, Group]:
        group = self._group(GroupLimits(memory=SERVER_MEMORY, processes=SERVER_PROCESSES, cpu=SERVER_CPU))
        entrances = group.open_entrances()
        try:
            return put_up(self._plan, entrances, self._environ, START_SECONDS), group
        except BaseException:
            group.kill()
            group.remove()
            raise
        finally:
            for fd in entrances:
                os.close(fd)

    def _retire(self) -> None:
        if self._server is not None:
            self._server[0].retire()
            self._retired.append(self._server)
            self._server = None

    def _forget_ended(self) -> None:
        """Let go of the retired fork servers whose last sandbox has ended."""
        ended = [one for one in self._retired if not one[0].is_inhabited()]
        for server, group in ended:
            server.close()
            group.remove()
        self._retired = [one for one in self._retired if one not in ended]

    # -- sandboxes -------------------------------------------------------------------------------------------------

    def _fork(
        self, limits: SandboxLimits, folders: Sequence[Folder] = (), had: Callable[[], None] | None = None
    ) -> Box:
        with opened(folders) as found:
            user = self._user_for(found)
            for _ in range(2):
                server = self._current()
                with taken(found, self._mounter) as mounts:
                    group = self._group(GroupLimits(memory=limits.memory, processes=limits.processes, cpu=limits.cpu))
                    if had is not None:
                        had()
                    try:
                        return fork_box(server, limits, user, group, mounts)
                    except ForkServerGoneError:
                        server.retire()  # It was killed: another one takes the order.
        raise WallUnavailableError(
            "The fork server behind the bubblewrap wall went away twice.", hint="`pyexec doctor` may tell why."
        )

    def _group(self, limits: GroupLimits) -> Group:
        try:
            return self._groups.create(limits)
        except NoRoomError as error:
            raise SandboxesFullError(
                f"There is no room for one more sandbox: {error.used // MEGABYTE} MB of {error.budget // MEGABYTE} MB "
                f"are promised, and it would need {error.asked // MEGABYTE} MB.",
                hint="Wait until one has ended, or give less memory to each.",
            ) from error
        except OSError as error:
            raise WallUnavailableError(f"A sandbox's limits cannot be had: {error.strerror}.") from error

    def _user_for(self, folders: Sequence[tuple[Folder, int]]) -> int:
        writable, users = writable_of(folders), self._plan.users
        if writable is None or users is None or self._users is None:
            return self._next_user()
        return given(writable, users.first, self._users, users.count)

    def _next_user(self) -> int:
        return self._users.passing() if self._users is not None else 0

    # -- what is kept ready ----------------------------------------------------------------------------------------

    def _stop_filling(self) -> None:
        self._closing.set()
        self._few.set()
        if self._filler is not None:
            self._filler.join()

    def _take(self) -> Box | None:
        while True:
            with self._lock:
                box = self._ready.popleft() if self._ready else None
            self._few.set()
            if box is None or box.sandbox.is_alive():
                return box
            box.close()

    def _fill(self) -> None:
        patience: float | None = None
        with ThreadPoolExecutor(FORKED_AT_ONCE, "sandboxes") as forks:
            while True:
                self._few.wait(patience)
                self._few.clear()
                if self._closing.is_set():
                    return
                # What goes wrong here goes wrong again for who asks for a sandbox, and is told there.
                patience = None
                with suppress(PyexecError, ForkServerGoneError):
                    self._current()  # One that has been killed is replaced before anybody needs it.
                    while (lacking := self._wanted - len(self._ready)) > 0 and not self._closing.is_set():
                        if self._crowded():
                            break
                        self._make_ready(
                            [
                                forks.submit(self._fork, self._limits, self._usual)
                                for _ in range(min(lacking, FORKED_AT_ONCE))
                            ]
                        )
                    patience = CHECK_SECONDS

    def _make_ready(self, coming: list[Future[Box]]) -> None:
        """Keep those that have been made.

        Raises:
            PyexecError, ForkServerGoneError: One could not be.
        """
        failed: BaseException | None = None
        for one in coming:
            failed = one.exception() or failed
            if one.exception() is not None:
                continue
            with self._lock:
                wanted = not self._closing.is_set()
                if wanted:
                    self._ready.append(one.result())
            if not wanted:
                one.result().close()
        if failed is not None:
            raise failed
