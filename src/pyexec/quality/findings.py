"""What a tool has found, told in one way whichever tool it was."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from pyexec.quality.tools import AnalyserName

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)

SYNTAX = "syntax-error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Text to put in place of what lies between two places; lines and columns count from 1."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """How a finding can be mended; `safe` says that the meaning of the code stays, and that `fix=true` does it."""

    message: str
    safe: bool
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding; `file` is None for a source that came with the call, `line` where a tool names no place."""

    tool: AnalyserName
    rule: str
    severity: Severity
    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    url: str | None = None
    fix: Fix | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What the tools found: the gravest that fit, by place, and how many there are of all."""

    findings: tuple[Finding, ...]
    total: int
    by_severity: Mapping[Severity, int]
    by_tool: Mapping[AnalyserName, int]
    fixed: int | None = None
    fixed_source: str | None = None
    notes: tuple[str, ...] = ()


def place(finding: Finding) -> tuple[str, int, int, str, str]:
    """Return what findings are sorted by."""
    return (finding.file or "", finding.line or 0, finding.column or 0, finding.tool, finding.rule)


def gravest(findings: Iterable[Finding], limit: int) -> tuple[Finding, ...]:
    """Return the gravest ones, at most so many, in the order of their places."""
    by_weight = sorted(findings, key=lambda finding: (SEVERITIES.index(finding.severity), place(finding)))
    return tuple(sorted(by_weight[:limit], key=place))


def count_severities(findings: Iterable[Finding]) -> dict[Severity, int]:
    """Return how many there are of each severity, those of which there is none too."""
    counted = Counter(finding.severity for finding in findings)
    return {severity: counted[severity] for severity in SEVERITIES}
