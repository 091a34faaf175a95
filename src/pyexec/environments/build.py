"""The program that makes an environment, started by the keeper of the execution that needs it.

It reads a `BuildOrder` from standard input, says on standard error what it does, and leaves its answer in the
execution's folder. It outlives the server that asked for it.
"""

import errno
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

from pyexec.environments.building import Builder
from pyexec.environments.credentials import masked, secrets_in
from pyexec.environments.orders import Answer, BuildOrder, write_answer
from pyexec.environments.tool import ToolError

FAILED = 1
_INDEXES = ("UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL", "UV_INDEX", "UV_FIND_LINKS")
_DISK_FULL = "The disk is full, so the environment could not be made; free some space and try again."


def main() -> int:
    """Make the environment; return the exit status."""
    # Whoever cancels sends either; both must leave nothing half behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    order = BuildOrder.from_json(sys.stdin.read())
    # Beyond what `masked` finds: a URL that nobody can read may be shown by whoever tries.
    secrets = secrets_in([order.index_url or "", *(value for name, value in os.environ.items() if name in _INDEXES)])
    last = ""

    def hide(text: str) -> str:
        for secret in secrets:
            text = text.replace(secret, "***")
        return masked(text)

    def say(text: str) -> None:
        nonlocal last
        text = hide(text)
        if text != last:
            last = text
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()

    try:
        environment = Builder(order, os.environ, say).build()
    except ToolError as error:
        answer = Answer(failure=hide(error.failure.message), failure_detail=hide(error.failure.detail))
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        answer = Answer(failure=_DISK_FULL if full else f"The environment could not be made: {hide(str(error))}.")
    else:
        answer = Answer(
            digest=environment.digest,
            python=str(environment.python),
            python_version=environment.python_version,
            packages=environment.packages,
            notes=tuple(map(hide, environment.notes)),
        )
    if answer.failure is not None:
        sys.stderr.write(f"{answer.failure}\n")
        sys.stderr.flush()
    with suppress(OSError):  # Nothing to be done on a full disk; what was said is in the log.
        write_answer(Path(order.folder), answer)
        return FAILED if answer.failure is not None else 0
    return FAILED


if __name__ == "__main__":
    sys.exit(main())
