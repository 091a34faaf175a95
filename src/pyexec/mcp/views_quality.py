"""From what the quality room found to structured results."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, get_args

from pyexec.mcp import results_quality as results

if TYPE_CHECKING:
    # At run time it would bring in storage, and with it SQLAlchemy, before the client has had its first answer.
    from pyexec.quality.findings import Analysis, Finding
    from pyexec.quality.formatting import Formatted

Show = Literal["all", "code", "diff", "check"]
_SHOWN: tuple[Show, ...] = get_args(Show)
SHOWN: Mapping[str, Show] = {name: name for name in _SHOWN}

MOST_CHARACTERS = 200_000


def formatted(done: "Formatted", show: Show) -> results.FormattedCode:
    """Return the result of `format_code`; text that is too long for an answer is left out, never cut."""
    notes: list[str] = []

    def fitting(text: str | None, what: str, *wanted: Show) -> str | None:
        if show not in ("all", *wanted) or done.fault is not None:
            return None
        if text is None or len(text) > MOST_CHARACTERS:
            notes.append(f"{what} is too long for an answer; write=true puts it into the file.")
            return None
        return text

    code = fitting(done.formatted, "The formatted source", "code")
    diff = fitting(done.diff, "The difference", "diff")
    fault = done.fault
    where = f"line {fault.line}, column {fault.column}" if fault else ""
    return results.FormattedCode(
        formatter=done.formatter,
        changed=done.changed,
        written=done.written,
        path=done.path,
        formatted=code,
        diff=diff,
        line=fault.line if fault else None,
        column=fault.column if fault else None,
        notes=notes or None,
        error=f"It cannot be parsed at {where}: {fault.message}" if fault else None,
    )


def analysed(analysis: "Analysis") -> results.AnalysedCode:
    """Return the result of `analyze_code`."""
    fixed_source = analysis.fixed_source
    notes = list(analysis.notes)
    if fixed_source is not None and len(fixed_source) > MOST_CHARACTERS:
        fixed_source = None
        notes.append("The fixed source is too long for an answer; give a path to have the file fixed.")
    return results.AnalysedCode(
        findings=[_finding(finding) for finding in analysis.findings],
        total=analysis.total,
        truncated=analysis.total > len(analysis.findings),
        severities={str(name): count for name, count in analysis.by_severity.items()},
        tools={str(name): count for name, count in analysis.by_tool.items()},
        fixed=analysis.fixed,
        fixed_source=fixed_source,
        notes=notes or None,
    )


def _finding(finding: "Finding") -> results.FindingRow:
    fix = finding.fix
    return results.FindingRow(
        file=finding.file,
        line=finding.line,
        column=finding.column,
        severity=finding.severity,
        tool=finding.tool,
        rule=finding.rule,
        message=finding.message,
        url=finding.url,
        fix=None
        if fix is None
        else results.FindingFix(
            message=fix.message,
            safe=fix.safe,
            edits=[
                results.FixEdit(
                    line=edit.line,
                    column=edit.column,
                    end_line=edit.end_line,
                    end_column=edit.end_column,
                    text=edit.text,
                )
                for edit in fix.edits
            ],
        ),
    )
