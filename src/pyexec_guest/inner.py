"""The guest inside a sandbox: made ready once in the fork server, it has only to begin in each fork."""

import atexit
import os
import sys
import threading
from typing import Any

from pyexec_guest.loop import Prepared, prepare, serve_prepared
from pyexec_guest.streams import flush_standard
from pyexec_guest.warming import warm

_HERE = os.path.dirname(os.path.abspath(__file__))
_OWN = (os.path.dirname(_HERE), os.path.join(_HERE, "instead"))


class InnerGuest:
    """What a fork server runs in its forks."""

    def __init__(self) -> None:
        self._prepared: Prepared | None = None

    def prepare(self) -> None:
        """Make what all forks can share; before the first fork, and without starting a thread."""
        self._prepared = prepare()
        warm(self._prepared.shell)

    def __call__(self, fd: int) -> int:
        """Be the guest; return the exit code of this process."""
        sys.path[:] = [entry for entry in sys.path if entry not in _OWN]
        # As at a prompt: modules that lie in the working directory are found.
        sys.path.insert(0, "")
        sys.argv = [""]
        return serve_prepared(fd, self._prepared or prepare(), _finish)


def _finish() -> None:
    """Do what the interpreter does at its end, which a fork of another program never comes to."""
    threads: Any = threading
    exits: Any = atexit
    threads._shutdown()  # noqa: SLF001 - waits for threads that are no daemons
    exits._run_exitfuncs()  # noqa: SLF001 - there is no other way to it
    flush_standard()


run = InnerGuest()
