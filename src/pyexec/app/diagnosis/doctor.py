"""All checks of this machine, one after another."""

import sys
from functools import partial

from anyio.to_thread import run_sync

from pyexec.app.diagnosis.checks import Check
from pyexec.app.diagnosis.clients import check_clients
from pyexec.app.diagnosis.programs import (
    check_child_processes,
    check_facilities,
    check_index,
    check_interpreters,
    check_uv,
)
from pyexec.app.diagnosis.state import check_engine, check_state_folder
from pyexec.app.diagnosis.wall import check_wall
from pyexec.domain.sandboxes import WallName
from pyexec.environments.interpreters import InterpreterFinder
from pyexec.processes.probe import python_version
from pyexec.settings import Settings


async def examine(settings: Settings, *, online: bool, wall: WallName | None = None) -> tuple[Check, ...]:
    """Look at everything that pyexec needs; what is started for that has ended when this returns.

    Args:
        settings: Of whoever wants to know.
        online: Whether the package index is asked too.
        wall: The wall that is put to the proof; None: it is only said whether there could be one.
    """
    engine = await check_engine(settings)
    return await run_sync(partial(_examine, settings, engine, online=online, wall=wall))


def _examine(settings: Settings, engine: Check, *, online: bool, wall: WallName | None) -> tuple[Check, ...]:
    finder = InterpreterFinder(settings.environ, None, python_version, own=settings.interpreter)
    return (
        *_check_settings(settings),
        check_uv(settings),
        check_interpreters(settings, finder),
        *check_state_folder(settings),
        check_child_processes(settings),
        *check_facilities(settings),
        engine,
        *((check_index(settings),) if online else ()),
        *check_clients(settings.environ, settings.directory, sys.platform),
        *check_wall(settings, finder, wall),
    )


def _check_settings(settings: Settings) -> tuple[Check, ...]:
    names = settings.unknown_variables
    if not names:
        return ()
    message = f"{', '.join(names)}: no such setting."
    return (
        Check(name="settings", status="warn", message=message, hint="Misspelt? `pyexec config show` has them all."),
    )
