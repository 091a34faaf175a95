"""The program that makes an environment, started by the keeper of the execution that needs it.

It reads a `BuildOrder` from standard input, says on standard error what it does, and leaves its answer in the
execution's folder. It outlives the server that asked for it.
"""

import errno
import os
import signal
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pyexec.environments.beside import link_tools, of_the_same_python
from pyexec.environments.building import Builder
from pyexec.environments.credentials import masked, secrets_in
from pyexec.environments.orders import Answer, BuildOrder, write_answer
from pyexec.environments.store import Environment
from pyexec.environments.tool import Say, ToolError

FAILED = 1
_UMASK = 0o022
_INDEXES = ("UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL", "UV_INDEX", "UV_FIND_LINKS")
_DISK_FULL = "The disk is full, so the environment could not be made; free some space and try again."


def main() -> int:
    """Make the environment; return the exit status."""
    # Whoever cancels sends either; both must leave nothing half behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # The users that sandboxes are must read it; nobody else gets into the folder that environments lie in.
    os.umask(_UMASK)
    orders = [BuildOrder.from_json(line) for line in sys.stdin]
    indexes = [order.index_url or "" for order in orders]
    # Beyond what `masked` finds: a URL that nobody can read may be shown by whoever tries.
    secrets = secrets_in([*indexes, *(value for name, value in os.environ.items() if name in _INDEXES)])
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
        environment = _build(orders, say)
    except ToolError as error:
        answer = Answer(failure=hide(error.failure.message), failure_detail=hide(error.failure.detail))
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        answer = Answer(failure=_DISK_FULL if full else f"The environment could not be made: {hide(str(error))}.")
    else:
        if environment is None:
            return 0  # What the program runs in was known before.
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
        write_answer(Path(orders[0].folder), answer)
        return FAILED if answer.failure is not None else 0
    return FAILED


def _build(orders: list[BuildOrder], say: Say) -> Environment | None:
    """Make what is ordered; return the environment of the program, where one of the orders is for it."""
    made: Environment | None = None
    for order in orders:
        if order.link is None:
            made = Builder(order, os.environ, say).build()
            continue
        try:
            tools = Builder(of_the_same_python(order, made), os.environ, say).build()
        except ToolError as error:
            message = f"{order.lacking} {error.failure.message}".strip()
            raise ToolError(replace(error.failure, message=message)) from error
        link_tools(Path(order.link), tools)
    return made


if __name__ == "__main__":
    sys.exit(main())
