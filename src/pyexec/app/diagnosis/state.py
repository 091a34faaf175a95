"""The state folder: whether it can be used, and what is in it; and one program run from end to end."""

import os
import shutil
import stat
import tempfile
from dataclasses import replace
from pathlib import Path

from pyexec.app.diagnosis.checks import Check
from pyexec.app.principal import local_principal
from pyexec.app.services import open_services
from pyexec.domain.databases import DatabaseAddress
from pyexec.domain.errors import PyexecError
from pyexec.domain.executions import ExecutionRequest
from pyexec.domain.limits import MEGABYTE
from pyexec.environments.store import EnvironmentStore
from pyexec.executions.advice import error_of
from pyexec.settings import Settings
from pyexec.storage.opening import look_at
from pyexec.storage.output import log_bytes
from pyexec.storage.schema import SCHEMA_VERSION
from pyexec.storage.sqlite import stored_version
from pyexec.storage.state_folder import StateFolder

LITTLE_DISK = 1024 * MEGABYTE
RUN_SECONDS = 30.0


def check_state_folder(settings: Settings) -> tuple[Check, ...]:
    """Look at the state folder, without making it."""
    root = settings.home
    if not root.exists():
        above = next(folder for folder in root.parents if folder.exists())
        if os.access(above, os.W_OK | os.X_OK) and above.is_dir():
            return (Check(name="state folder", status="ok", message=f"{root} is made when it is first used."),)
        return (_unusable(f"{root} is not there, and {above} cannot be written."),)
    if not root.is_dir() or not os.access(root, os.R_OK | os.W_OK | os.X_OK):
        return (_unusable(f"{root} cannot be written."),)
    mode = stat.S_IMODE(root.stat().st_mode)
    if mode & 0o077:
        folder = Check(
            name="state folder",
            status="warn",
            message=f"{root} may be looked into by others (mode {mode:04o}).",
            hint=f"chmod 700 {root}",
        )
    else:
        folder = Check(name="state folder", status="ok", message=f"{root} (mode {mode:04o})")
    return folder, _check_disk(settings), _check_sizes(StateFolder(root)), _check_database(settings)


async def check_engine(settings: Settings) -> Check:
    """Run a program from end to end, in a state folder of its own that is gone afterwards."""
    home = Path(tempfile.mkdtemp(prefix="pyexec-doctor-"))
    try:
        services = open_services(replace(settings, home=home, database=None))
        try:
            who = local_principal()
            request = ExecutionRequest(script_content="print('here')", directory=str(home), use_uv=False)
            execution = await services.executions.submit(who, request)
            execution = await services.executions.wait(who, execution.id, RUN_SECONDS)
            output = (await services.executions.read(who, execution.id)).output
        finally:
            services.close()
    except PyexecError as error:
        return Check(name="a program", status="fail", message=error.message, hint=error.hint)
    except OSError as error:
        return Check(name="a program", status="fail", message=f"It could not be tried: {error}.")
    finally:
        shutil.rmtree(home, ignore_errors=True)
    if execution.state == "completed" and output.stdout.text == "here\n":
        return Check(name="a program", status="ok", message="It ran under a keeper, and its output was read.")
    why = error_of(execution, output.stderr.text) or f"after {RUN_SECONDS:g} s it is {execution.state}"
    return Check(name="a program", status="fail", message=f"It did not run: {why}")


def _unusable(message: str) -> Check:
    return Check(
        name="state folder", status="fail", message=message, hint="Set PYEXEC_HOME to a folder that you can write."
    )


def _check_disk(settings: Settings) -> Check:
    free, needed = shutil.disk_usage(settings.home).free, settings.limits.free_disk
    message = f"{_megabytes(free)} free"
    hint = "Free some space; `pyexec jobs cleanup` and `pyexec env remove` help."
    if free < needed:
        message = f"{message}; new work is refused below {_megabytes(needed)}"
        return Check(name="disk", status="fail", message=message, hint=hint)
    if free < LITTLE_DISK:
        return Check(name="disk", status="warn", message=message, hint=hint)
    return Check(name="disk", status="ok", message=message)


def _check_sizes(folder: StateFolder) -> Check:
    store = EnvironmentStore(folder.environments)
    environments = [made for digest in store.digests() if (made := store.get(digest)) is not None]
    known = {"executions": log_bytes(folder.executions), "logs": log_bytes(folder.logs)}
    known["environments"] = sum(one.size_bytes for one in environments)
    for name in ("scripts", "autosaved_scripts"):
        if (folder.root / name).is_dir():
            known[name] = log_bytes(folder.root / name)
    return Check(
        name="what it holds",
        status="ok",
        message=_megabytes(sum(known.values())),
        details=tuple(f"{name}: {_megabytes(size)}" for name, size in known.items()),
    )


def _check_database(settings: Settings) -> Check:
    if settings.database is not None:
        return _check_server(StateFolder(settings.home), settings.database)
    return _check_file(StateFolder(settings.home))


def _check_server(folder: StateFolder, address: DatabaseAddress) -> Check:
    try:
        seen = look_at(folder, address)
    except PyexecError as error:
        return Check(name="database", status="fail", message=error.message, hint=error.hint)
    if seen.trouble is not None:
        return Check(
            name="database",
            status="fail",
            message=f"{address} cannot be opened: {seen.trouble}",
            hint="See that the server runs, that it is reached from here, and that user and password are right.",
        )
    server = f"PostgreSQL {seen.server} at {address}"
    if seen.schema is None:
        return Check(name="database", status="ok", message=f"{server}; the tables are made when it is first used.")
    if seen.foreign:
        return Check(
            name="database",
            status="fail",
            message=f"{server} has the records of another state folder.",
            hint="Give each state folder a database, or a schema, of its own; see docs/guides/postgresql.md.",
        )
    return _check_schema(seen.schema, f"{server}. ")


def _check_file(folder: StateFolder) -> Check:
    version = stored_version(folder.database)
    if version is None:
        hint = "Move it away to start afresh: what has run is found again in the folders beside it."
        if folder.database.exists():
            return Check(name="database", status="fail", message=f"{folder.database} cannot be read.", hint=hint)
        return Check(name="database", status="ok", message="It is made when it is first used.")
    return _check_schema(version)


def _check_schema(version: int, where: str = "") -> Check:
    if version > SCHEMA_VERSION:
        return Check(
            name="database",
            status="fail",
            message=f"{where}Schema {version}; this pyexec knows {SCHEMA_VERSION}.",
            hint="Upgrade this pyexec, or give it a PYEXEC_HOME of its own.",
        )
    migrated = "" if version == SCHEMA_VERSION else f", migrated to {SCHEMA_VERSION} at the next use"
    return Check(name="database", status="ok", message=f"{where}Schema {version}{migrated}.")


def _megabytes(size: int) -> str:
    return f"{size / MEGABYTE:,.1f} MB"
