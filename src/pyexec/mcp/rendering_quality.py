"""Formatted code and findings as markdown."""

from pyexec.mcp.rendering import fenced
from pyexec.mcp.results_quality import AnalysedCode, FindingRow, FormattedCode


def render_formatted(result: FormattedCode) -> str:
    """Return `format_code` as markdown: the difference, and the source where it has no file of its own."""
    what = result.path or "The source"
    if result.error:
        return f"**{what} was not formatted.** {result.error}"
    if not result.changed:
        parts = [f"{what} is formatted as {result.formatter} would."]
    else:
        done = "was formatted and written" if result.written else "would be formatted differently"
        parts = [f"{what} {done} by {result.formatter}."]
        if result.diff is not None and (result.path or result.formatted is None):
            parts.append(fenced(result.diff, "diff"))
        elif result.formatted is not None:
            parts.append(fenced(result.formatted, "python"))
    return "\n\n".join([*parts, *(result.notes or [])])


def render_analysed(result: AnalysedCode) -> str:
    """Return `analyze_code` as markdown."""
    counts = ", ".join(f"{count} {name}" for name, count in result.severities.items() if count)
    asked = ", ".join(result.tools)
    parts = [f"{result.total} findings ({counts}) by {asked}" if result.total else f"Nothing found by {asked}."]
    if result.fixed is not None:
        parts.append(f"Fixed: {result.fixed}.")
    if result.findings:
        parts.append("\n".join(_line(finding) for finding in result.findings))
    if result.truncated:
        parts.append(f"The gravest {len(result.findings)} are shown; limit raises that.")
    if result.fixed_source is not None:
        parts.append(fenced(result.fixed_source, "python"))
    return "\n\n".join([*parts, *(result.notes or [])])


def _line(finding: FindingRow) -> str:
    place = ":".join(str(part) for part in (finding.file, finding.line, finding.column) if part is not None)
    message = " ".join(finding.message.split())
    fix = ""
    if finding.fix is not None:
        fix = f" [{'fix' if finding.fix.safe else 'unsafe fix'}: {finding.fix.message}]"
    return f"- {place or '-'} {finding.severity} {finding.rule} ({finding.tool}): {message}{fix}"
