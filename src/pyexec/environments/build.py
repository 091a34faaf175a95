"""The program that makes an environment, started by the keeper of the execution that needs it.

It reads a `BuildOrder` from standard input, says on standard error what it does, and leaves its answer in the
execution's folder. It outlives the server that asked for it.
"""

import errno
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pyexec.environments.beside import link_tools, of_the_same_python
from pyexec.environments.building import Builder
from pyexec.environments.credentials import masked, secrets_in
from pyexec.environments.orders import Answer, BuildOrder, write_answer
from pyexec.environments.packages.building import MadeSet, SetBuilder
from pyexec.environments.packages.orders import PackageOrder
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
    orders = [PackageOrder.from_json(line) or BuildOrder.from_json(line) for line in sys.stdin]
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
        environment, packages = _build(orders, say)
    except ToolError as error:
        answer = Answer(failure=hide(error.failure.message), failure_detail=hide(error.failure.detail))
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        answer = Answer(failure=_DISK_FULL if full else f"The environment could not be made: {hide(str(error))}.")
    else:
        if environment is None and packages is None:
            return 0  # What the program runs in was known before.
        answer = _answer(orders, environment, packages, hide)
    if answer.failure is not None:
        sys.stderr.write(f"{answer.failure}\n")
        sys.stderr.flush()
    with suppress(OSError):  # Nothing to be done on a full disk; what was said is in the log.
        write_answer(Path(orders[0].folder), answer)
        return FAILED if answer.failure is not None else 0
    return FAILED


def _answer(
    orders: Sequence[BuildOrder | PackageOrder],
    environment: Environment | None,
    packages: MadeSet | None,
    hide: Callable[[str], str],
) -> Answer:
    """Return what there is now; an environment that was there before is told of with the packages for it."""
    notes = [*(environment.notes if environment else ()), *(packages.notes if packages else ())]
    bases = [order.base for order in orders if isinstance(order, PackageOrder)]
    base = environment or next((one for one in bases if one is not None), None)
    there = base.packages if base else ()
    return Answer(
        digest=base.digest if base else None,
        python=str(environment.python) if environment else None,
        python_version=base.python_version if base else None,
        packages=tuple(sorted((*there, *packages.set.packages))) if packages else there,
        notes=tuple(map(hide, dict.fromkeys(notes))),
        package_set=packages.set.digest if packages else None,
        package_folder=str(packages.set.folder) if packages and packages.set.folder else None,
        package_list=packages.set.packages if packages else None,
    )


def _build(orders: Sequence[BuildOrder | PackageOrder], say: Say) -> tuple[Environment | None, MadeSet | None]:
    """Make what is ordered; return the environment of the program and its packages, where orders are for these."""
    made: Environment | None = None
    packages: MadeSet | None = None
    for order in orders:
        if isinstance(order, PackageOrder):
            packages = SetBuilder(order.on(made), os.environ, say).build()
            continue
        if order.link is None:
            made = Builder(order, os.environ, say).build()
            continue
        try:
            tools = Builder(of_the_same_python(order, made), os.environ, say).build()
        except ToolError as error:
            message = f"{order.lacking} {error.failure.message}".strip()
            raise ToolError(replace(error.failure, message=message)) from error
        link_tools(Path(order.link), tools)
    return made, packages


if __name__ == "__main__":
    sys.exit(main())
