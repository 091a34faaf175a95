"""What the commands that work with executions share: services, and the way they are run."""

import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import anyio
import click

from pyexec.app.principal import local_principal
from pyexec.app.services import Services, open_services
from pyexec.domain.executions import Execution
from pyexec.domain.principals import Principal
from pyexec.observability.logs import configure_logging
from pyexec.settings import load_settings
from pyexec.storage.executions import to_values
from pyexec.storage.follow import Piece

T = TypeVar("T")

BROKEN_PIPE_STATUS = 128 + signal.SIGPIPE


def run(work: Callable[[Services, Principal], Awaitable[T]], directory: Path | None = None) -> T:
    """Do something with the services and return what comes of it."""
    settings = load_settings(directory=directory)
    services = open_services(settings)
    configure_logging("warning", None, settings.environ, secrets=settings.secrets.values())
    try:
        return anyio.run(work, services, local_principal())
    finally:
        services.close()


async def pass_interrupts(services: Services, principal: Principal, execution_id: str) -> None:
    """Pass Ctrl-C on to an execution, until this task is cancelled."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _number in signals:
            await services.executions.stop(principal, execution_id, "cancel", "It was interrupted from the terminal.")


def as_json(execution: Execution) -> dict[str, Any]:
    """Return a record for programs to read."""
    values = to_values(execution)
    del values["owner"]
    return values


def write_piece(piece: Piece) -> None:
    """Write raw output to where it belongs; what was dropped is said on stderr."""
    if piece.gap:
        click.echo(f"[... {piece.gap} bytes of {piece.stream} are no longer kept ...]", err=True)
    target = sys.stdout.buffer if piece.stream == "stdout" else sys.stderr.buffer
    target.write(piece.data)
    target.flush()


def leave_broken_pipe() -> NoReturn:
    """End quietly when whoever reads our output has gone, as other programs do."""
    # Python would try to flush stdout once more at exit and complain.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(BROKEN_PIPE_STATUS)
