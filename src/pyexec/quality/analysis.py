"""Having several tools look at the same code, side by side, and bringing what they find together."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
from anyio.to_thread import run_sync

from pyexec.domain.errors import InvalidArgumentError, ToolFailedError
from pyexec.domain.principals import Principal
from pyexec.environments.projects import find_virtual_environment
from pyexec.quality.configurations import bandit_settings, type_check_root
from pyexec.quality.files import replace_source
from pyexec.quality.findings import SYNTAX, Analysis, Finding, count_severities, gravest
from pyexec.quality.reports import read_report
from pyexec.quality.running import Answered, Say, ToolRunner, failed
from pyexec.quality.targets import BOM, Target
from pyexec.quality.tools import AnalyserName, Order

NOTEBOOK = ".ipynb"
NOT_ANALYSED = ("/.git/", "/.venv/", "/venv/", "/.tox/", "/.nox/", "/.eggs/", "/node_modules/", "/site-packages/")
# basedpyright ends with 1 when it found errors; the others are told not to.
_GOOD = frozenset({0, 1})
_STANDARD = {"typeCheckingMode": "standard"}
_NOT_CHECKED = ("**/node_modules", "**/__pycache__", "**/site-packages", "**/.*")
_NO_IMPORTS = {"reportMissingImports": "none", "reportMissingModuleSource": "none"}


@dataclass(slots=True)
class _Gathered:
    """What has come in so far."""

    findings: list[Finding] = field(default_factory=list[Finding])
    notes: list[str] = field(default_factory=list[str])
    failures: list[ToolFailedError] = field(default_factory=list[ToolFailedError])


class Analyser:
    """Analyses one target after another.

    Args:
        runner: Runs the tools.
        environ: The server's environment, for finding the environment of a project.
    """

    def __init__(self, runner: ToolRunner, environ: Mapping[str, str]) -> None:
        self._runner = runner
        self._environ = environ

    async def analyse(
        self,
        principal: Principal,
        target: Target,
        tools: tuple[AnalyserName, ...],
        *,
        fix: bool,
        limit: int,
        say: Say | None,
    ) -> Analysis:
        """Have the tools look at a target; with `fix`, have ruff mend first what can be mended safely.

        Raises:
            InvalidArgumentError: `fix` is asked for without ruff.
            ToolFailedError: None of the tools could do its part.
        """
        if fix and "ruff" not in tools:
            raise InvalidArgumentError("fix=true needs ruff among the tools: the others fix nothing.")
        before = 0
        fixed: int | None = None
        fixed_source: str | None = None
        if fix:
            before = len(await self._look(principal, target, "ruff", say))
            mended = await self._mend(principal, target, say)
            if target.path is None and mended.content != target.content:
                fixed_source = (mended.content or b"").decode("utf-8", "replace")
            target = mended
        gathered = await self._gather(principal, target, tools, say)
        if fix:
            after = sum(finding.tool == "ruff" for finding in gathered.findings)
            fixed = max(0, before - after)
        found = _without_repetition(gathered.findings)
        return Analysis(
            findings=gravest(found, limit),
            total=len(found),
            by_severity=count_severities(found),
            by_tool={tool: sum(finding.tool == tool for finding in found) for tool in tools},
            fixed=fixed,
            fixed_source=fixed_source,
            notes=tuple(gathered.notes),
        )

    async def _gather(
        self, principal: Principal, target: Target, tools: tuple[AnalyserName, ...], say: Say | None
    ) -> _Gathered:
        gathered = _Gathered()
        if target.path is not None and target.path.suffix == NOTEBOOK:
            gathered.notes += [f"{tool} does not read notebooks." for tool in tools if tool != "ruff"]
            tools = tuple(tool for tool in tools if tool == "ruff")

        async def look(tool: AnalyserName) -> None:
            try:
                gathered.findings += await self._look(principal, target, tool, say)
            except ToolFailedError as error:
                gathered.failures.append(error)

        async with anyio.create_task_group() as tasks:
            for tool in tools:
                tasks.start_soon(look, tool)
        if gathered.failures and len(gathered.failures) == len(tools):
            raise gathered.failures[0]
        gathered.notes += [error.sentence() for error in gathered.failures]
        return gathered

    async def _look(self, principal: Principal, target: Target, tool: AnalyserName, say: Say | None) -> list[Finding]:
        order = await run_sync(self._order, target, tool)
        answered = await self._runner.run(principal, order, say)
        if answered.exit_code not in _GOOD:
            raise failed(order, answered)
        return await run_sync(_findings, tool, order, answered, target)

    async def _mend(self, principal: Principal, target: Target, say: Say | None) -> Target:
        """Have ruff mend a target; return it as it is then."""
        order = _ruff(target, "--fix", "--quiet")
        answered = await self._runner.run(principal, order, say)
        if answered.exit_code != 0:
            raise failed(order, answered)
        if target.content is None:
            return target
        after = (BOM if target.content.startswith(BOM) else b"") + answered.stdout
        if target.path is not None and after != target.content:
            await run_sync(replace_source, target.path, target.content, after)
        return replace(target, content=after)

    def _order(self, target: Target, tool: AnalyserName) -> Order:
        match tool:
            case "ruff":
                return _ruff(target, "--output-format=json", "--quiet")
            case "bandit":
                return _bandit(target)
            case "basedpyright":
                return self._basedpyright(target)

    def _basedpyright(self, target: Target) -> Order:
        if target.path is None:
            settings = json.dumps({**_STANDARD, **_NO_IMPORTS, "include": ["source.py"]})
            return Order(tool="basedpyright", args=("--outputjson",), stdin=target.stdin, settings=settings)
        python = find_virtual_environment(target.home, self._environ)
        with_python = ("--pythonpath", str(python)) if python is not None else ()
        root = type_check_root(target.home)
        if root is not None:
            # Its settings say what is left out, as long as no path is given.
            what = () if target.path == root else (str(target.path),)
            return Order(tool="basedpyright", args=("--outputjson", "--project", str(root), *with_python, *what))
        settings = json.dumps(
            {
                **_STANDARD,
                **({} if python is not None else _NO_IMPORTS),
                "include": [str(target.path)],
                "exclude": [f"{target.home}/{pattern}" for pattern in _NOT_CHECKED],
                "executionEnvironments": [{"root": str(target.home)}],
            }
        )
        return Order(tool="basedpyright", args=("--outputjson", *with_python), settings=settings)


def _ruff(target: Target, *options: str) -> Order:
    if target.path is None:
        what = ("--isolated", "-")
    elif target.content is None:
        what = ("--", str(target.path))
    else:
        what = ("--stdin-filename", str(target.path), "-")
    args = ("check", "--no-cache", "--exit-zero", *options, *what)
    return Order(tool="ruff", args=args, stdin=target.stdin)


def _bandit(target: Target) -> Order:
    settings = bandit_settings(target.home) if target.path is not None else None
    with_settings = ("-c", str(settings)) if settings is not None else ()
    what = ("-",) if target.content is not None else ("-x", ",".join(NOT_ANALYSED), "-r", str(target.path))
    args = ("-f", "json", "-q", "--exit-zero", *with_settings, *what)
    return Order(tool="bandit", args=args, stdin=target.stdin)


def _findings(tool: AnalyserName, order: Order, answered: Answered, target: Target) -> list[Finding]:
    def named(name: str) -> str | None:
        if target.path is None:
            return None
        if target.content is not None:
            return target.shown(target.path)
        return target.shown(Path(os.path.normpath(target.home / name)))

    try:
        return read_report(tool, answered.stdout, named)
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        raise failed(order, answered) from None


def _without_repetition(findings: list[Finding]) -> list[Finding]:
    """Drop what names no place where another tool says of the same file, with a place, that it cannot be parsed."""
    placed = {finding.file for finding in findings if finding.rule == SYNTAX and finding.line is not None}
    return [one for one in findings if not (one.rule == SYNTAX and one.line is None and one.file in placed)]
