"""The first process of a sandbox: it hands on interrupts, reaps what is left behind and tells how the guest ended."""

import os
import signal

from pyexec_guest.confine.seccomp import Filter
from pyexec_guest.orders import News, Report, pack_report

_WAITED_FOR = frozenset({signal.SIGCHLD, signal.SIGINT})


def block_signals() -> None:
    """Keep signals until `reap` asks for them; none is lost that arrives before."""
    signal.pthread_sigmask(signal.SIG_SETMASK, _WAITED_FOR)


def unblock_signals() -> None:
    """Take signals as they come, in a child."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def reap(guest: int, status_fd: int, system_calls: Filter) -> None:
    """Be the first process until the guest ends; with this process ends all that runs in the sandbox.

    SIGINT goes to the guest and its process group. Does not return.
    """
    system_calls.put_on()
    while True:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                os._exit(0)
            if pid == 0:
                break
            if pid == guest:
                os.write(status_fd, pack_report(Report(News.ENDED, status)))
                os._exit(0)
        if signal.sigwaitinfo(_WAITED_FOR).si_signo == signal.SIGINT:
            _interrupt(guest)


def _interrupt(guest: int) -> None:
    for target in (-guest, guest):
        try:
            os.kill(target, signal.SIGINT)
        except OSError:
            continue  # It has not made its own group yet.
        return
