"""Formatting and analysing code, for a principal."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from anyio.to_thread import run_sync

from pyexec.domain.errors import InvalidArgumentError
from pyexec.domain.principals import Principal
from pyexec.executions.retention import Retention
from pyexec.executions.service import ExecutionService
from pyexec.quality.analysis import Analyser
from pyexec.quality.findings import Analysis
from pyexec.quality.formatting import Formatted, format_target
from pyexec.quality.running import Say, ToolRunner
from pyexec.quality.targets import Target, find_target
from pyexec.quality.tools import ANALYSERS, DEFAULT_ANALYSERS, FORMATTERS, AnalyserName

MOST_FINDINGS = 1000


class QualityService:
    """Looks at code with the tools that are known, each of which is an execution that leaves no trace.

    Args:
        executions: The engine.
        retention: Removes what has been read.
        environ: The server's environment.
        home: The state folder, in which the tools run.
        directory: Where relative paths of callers begin.
        source_bytes: How large a source may be.
        wait_seconds: How long a caller waits while a tool is being installed.
    """

    def __init__(
        self,
        *,
        executions: ExecutionService,
        retention: Retention,
        environ: Mapping[str, str],
        home: Path,
        directory: Path,
        source_bytes: int,
        wait_seconds: float,
    ) -> None:
        self._runner = ToolRunner(executions, retention, home, wait_seconds)
        self._analyser = Analyser(self._runner, environ)
        self._directory = directory
        self._source_bytes = source_bytes

    async def format(
        self,
        principal: Principal,
        *,
        source: str | None = None,
        path: str | None = None,
        directory: str | None = None,
        formatter: str = "ruff",
        line_length: int | None = None,
        write: bool = False,
        say: Say | None = None,
    ) -> Formatted:
        """Format a source or a file; `write` replaces the file where something changed.

        The project's own settings count for a file; a source is formatted with the formatter's defaults.

        Raises:
            InvalidArgumentError: A value is not allowed.
            NotFoundError: The directory or file does not exist.
            ToolFailedError: The formatter could not be installed or run.
        """
        chosen = FORMATTERS.get(formatter)
        if chosen is None:
            raise InvalidArgumentError(f"formatter is {formatter!r}; it must be one of {', '.join(FORMATTERS)}.")
        target = await self._target(source, path, directory)
        return await format_target(
            self._runner, principal, target, formatter=chosen, line_length=line_length, write=write, say=say
        )

    async def analyse(
        self,
        principal: Principal,
        *,
        source: str | None = None,
        path: str | None = None,
        directory: str | None = None,
        tools: Sequence[str] | None = None,
        fix: bool = False,
        limit: int = 100,
        say: Say | None = None,
    ) -> Analysis:
        """Analyse a source, a file or a folder; `fix` has ruff mend it first, a file or folder in place.

        The project's own settings count for a path; a source is analysed with the tools' defaults.

        Raises:
            InvalidArgumentError: A value is not allowed.
            NotFoundError: The directory or path does not exist.
            ToolFailedError: None of the tools could be installed or run.
        """
        names: Sequence[str] = DEFAULT_ANALYSERS if tools is None else tools
        chosen: tuple[AnalyserName, ...] = tuple(tool for name, tool in ANALYSERS.items() if name in names)
        unknown = [name for name in names if name not in ANALYSERS]
        if unknown or not chosen:
            what = ", ".join(map(repr, unknown)) or "nothing"
            raise InvalidArgumentError(f"tools has {what}; they must be among {', '.join(ANALYSERS)}.")
        if not 1 <= limit <= MOST_FINDINGS:
            raise InvalidArgumentError(f"limit is {limit}; it must be between 1 and {MOST_FINDINGS}.")
        target = await self._target(source, path, directory)
        return await self._analyser.analyse(principal, target, chosen, fix=fix, limit=limit, say=say)

    async def _target(self, source: str | None, path: str | None, directory: str | None) -> Target:
        def find() -> Target:
            return find_target(source, path, directory, base=self._directory, most=self._source_bytes)

        return await run_sync(find)
