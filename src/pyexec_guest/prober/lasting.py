"""Attempts to live on when the end has been ordered."""

import os
import signal
import time
from contextlib import suppress


def turn_deaf() -> None:
    """Ignore every signal that can be ignored."""
    for number in range(1, signal.NSIG):
        with suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)


def spin() -> None:
    """Never answer, and never stop."""
    while True:
        pass


def leave_survivors(count: int) -> int:
    """Leave processes behind that have lost their parent, are in sessions of their own and ignore signals.

    Returns: How many processes there are in this sandbox then. All of them hold its standard output.
    """
    for _ in range(count):
        child = os.fork()
        if child == 0:
            turn_deaf()
            os.setsid()
            if os.fork():
                os._exit(0)
            os.setpgid(0, 0)
            while True:
                time.sleep(3600)
        os.waitpid(child, 0)
    return sum(name.isdecimal() for name in os.listdir("/proc"))
