"""The program that makes an environment, started by the keeper of the execution that needs it.

It reads a `BuildOrder` from standard input, says on standard error what it does, and leaves its answer in the
execution's folder. It outlives the server that asked for it.
"""

import errno
import os
import signal
import sys
from pathlib import Path

from pyexec.environments.building import Builder
from pyexec.environments.credentials import masked
from pyexec.environments.orders import Answer, BuildOrder, write_answer
from pyexec.environments.tool import ToolError

FAILED = 1
_DISK_FULL = "The disk is full, so the environment could not be made; free some space and try again."


def main() -> int:
    """Make the environment; return the exit status."""
    # Whoever cancels sends either; both must leave nothing half behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    order = BuildOrder.from_json(sys.stdin.read())
    last = ""

    def say(text: str) -> None:
        nonlocal last
        if text != last:
            last = text
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()

    try:
        environment = Builder(order, os.environ, say).build()
    except ToolError as error:
        answer = Answer(failure=error.failure.message, failure_detail=error.failure.detail)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        answer = Answer(failure=_DISK_FULL if full else f"The environment could not be made: {masked(str(error))}.")
    else:
        answer = Answer(
            digest=environment.digest,
            python=str(environment.python),
            python_version=environment.python_version,
            packages=environment.packages,
            notes=environment.notes,
        )
    write_answer(Path(order.folder), answer)
    if answer.failure is not None:
        sys.stderr.write(f"{answer.failure}\n")
        return FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
