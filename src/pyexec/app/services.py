"""Puts the services together: the only place that names walls and stores."""

from dataclasses import dataclass

from pyexec.app.sandboxing import open_sandboxing
from pyexec.benchmarks.service import BenchmarkService
from pyexec.environments.header_writing import HeaderEditor
from pyexec.environments.interpreters import InterpreterFinder
from pyexec.environments.packages.sets import PackageStore
from pyexec.environments.plan import Planner
from pyexec.environments.service import EnvironmentService, environment_places
from pyexec.executions.afterwards import Afterwards
from pyexec.executions.cleanup import Cleanup
from pyexec.executions.history import ExecutionsOfSessions
from pyexec.executions.inside import InsideExecutions
from pyexec.executions.keeping import Autosaving
from pyexec.executions.observing import ExecutionObserver
from pyexec.executions.recovery import Recovery
from pyexec.executions.retention import Retention
from pyexec.executions.service import ExecutionService
from pyexec.executions.settling import Settler
from pyexec.executions.submission import Submitter
from pyexec.executions.users import UserService
from pyexec.executions.ways import OnThisMachine
from pyexec.processes.launcher import Launcher
from pyexec.processes.probe import python_version
from pyexec.quality.service import QualityService
from pyexec.sandbox.ports import Wall
from pyexec.scripts.autosaved import AutosavedScripts
from pyexec.scripts.library import ScriptLibrary
from pyexec.sessions.cells import SessionHistory
from pyexec.sessions.export import SessionExport
from pyexec.sessions.files import SessionFiles
from pyexec.sessions.kept import KeptWorkspaces
from pyexec.sessions.none import NoSessions
from pyexec.sessions.packages import SessionPackages
from pyexec.sessions.service import SessionService
from pyexec.sessions.workspaces import Workspaces
from pyexec.settings import Settings
from pyexec.storage.database import Database
from pyexec.storage.ended_users import EndedUsers
from pyexec.storage.executions import ExecutionStore
from pyexec.storage.opening import database_of
from pyexec.storage.presence import Presence
from pyexec.storage.state_folder import StateFolder
from pyexec.walls.host.wall import HostWall

_INTERPRETER_NEEDS = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What the edges (MCP, command line) work with."""

    executions: ExecutionService
    sessions: SessionService | None
    session_packages: SessionPackages | None
    settler: Settler
    retention: Retention
    cleanup: Cleanup
    inside: InsideExecutions
    environments: EnvironmentService
    benchmarks: BenchmarkService
    scripts: ScriptLibrary
    autosaved: AutosavedScripts
    quality: QualityService
    files: SessionFiles
    exports: SessionExport
    users: UserService
    launcher: Launcher
    walls: tuple[Wall, ...]
    afterwards: Afterwards
    database: Database
    presence: Presence

    def close(self) -> None:
        """Let go of what this process holds; executions go on."""
        for wall in self.walls:
            wall.close()
        self.afterwards.close()
        self.database.close()
        self.presence.close()


def open_services(settings: Settings, observer: ExecutionObserver | None = None) -> Services:
    """Open the state folder and put the services together. Blocks on the disk, for some 100 ms on the first use.

    `observer` hears what is run here.

    Raises:
        StateUnusableError: The state folder cannot be used.
        StateVersionError: A newer pyexec has migrated it.
        RecordsUnavailableError: The database server of the records does not answer.
    """
    folder = StateFolder(settings.home)
    folder.create()
    database = database_of(folder, settings.database)
    store = ExecutionStore(database)
    launcher = Launcher({name: settings.environ[name] for name in _INTERPRETER_NEEDS if name in settings.environ})
    finder = InterpreterFinder(settings.environ, folder.interpreters_cache, python_version, own=settings.interpreter)
    afterwards = Afterwards()
    presence = Presence(folder.servers)
    recovery = Recovery(folder, store, presence)
    settler = Settler(folder, store, afterwards, recovery, observer)
    environments, names = environment_places(folder.environments)
    autosaved = AutosavedScripts(folder, settings.limits.autosaved, afterwards.catch_up)
    retention = Retention(folder, store, settler, recovery, autosaved, settings.limits)
    try:
        if database.is_new():
            recovery.recover()
    except BaseException:
        database.close()
        raise
    planner = Planner(
        finder=finder,
        store=environments,
        names=names,
        environ=settings.environ,
        own_prefix=settings.prefix,
        own_version=settings.python_version,
        fresh_seconds=settings.environment_limits.fresh,
    )
    host = HostWall(launcher)
    packages = PackageStore(folder.packages)
    sandboxing = open_sandboxing(settings, folder, planner, finder, (environments, packages))
    submitter = Submitter(
        folder=folder,
        store=store,
        settler=settler,
        on_this_machine=OnThisMachine(host, planner),
        in_sandboxes=sandboxing.way if sandboxing else None,
        autosaving=Autosaving(autosaved, afterwards),
        limits=settings.limits,
        environ=settings.environ,
        directory=settings.directory,
        observer=observer,
    )
    workspaces: Workspaces = NoSessions()
    history: SessionHistory = NoSessions()
    if sandboxing is not None:
        workspaces = KeptWorkspaces(sandboxing.directory, sandboxing.wall)
        history = ExecutionsOfSessions(
            folder=folder,
            store=store,
            settler=settler,
            directory=sandboxing.directory,
            environments=environments,
            artifact=settings.limits.artifact,
        )
    files = SessionFiles(workspaces, settings.file_limits, settings.limits.answer_output)
    executions = ExecutionService(
        folder=folder, store=store, settler=settler, submitter=submitter, limits=settings.limits, observer=observer
    )
    presence.show()
    return Services(
        executions=executions,
        sessions=sandboxing.sessions if sandboxing else None,
        session_packages=sandboxing.packages if sandboxing else None,
        settler=settler,
        retention=retention,
        cleanup=Cleanup(folder, retention, autosaved),
        inside=InsideExecutions(
            folder=folder, store=store, settler=settler, limits=settings.limits, directory=settings.directory
        ),
        environments=EnvironmentService(environments, names, settings.environment_limits, packages),
        benchmarks=BenchmarkService(executions, settings.limits.timeout_ceiling),
        scripts=ScriptLibrary(folder, HeaderEditor()),
        autosaved=autosaved,
        quality=QualityService(
            executions=executions,
            retention=retention,
            environ=settings.environ,
            home=settings.home,
            directory=settings.directory,
            source_bytes=settings.limits.source,
            wait_seconds=settings.wait_seconds,
        ),
        files=files,
        exports=SessionExport(history, files),
        users=UserService(executions, sandboxing.sessions if sandboxing else None, EndedUsers(folder.ended_users)),
        launcher=launcher,
        walls=(host, *([sandboxing.wall] if sandboxing else [])),
        afterwards=afterwards,
        database=database,
        presence=presence,
    )
