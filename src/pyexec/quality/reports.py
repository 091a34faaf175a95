"""Reading what the analysers print: JSON, each of its own kind."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pyexec.quality.findings import SYNTAX, Edit, Finding, Fix, Severity
from pyexec.quality.tools import AnalyserName

MESSAGE_CHARACTERS = 1000
MOST_EDITS = 10
EDIT_CHARACTERS = 1000

_BANDIT: Mapping[str, Severity] = {"HIGH": "error", "MEDIUM": "warning", "LOW": "info", "UNDEFINED": "info"}
_PYRIGHT: Mapping[str, Severity] = {"error": "error", "warning": "warning", "information": "info"}

Named = Callable[[str], str | None]
"""Returns a file's name for the reader; None for the source that came with the call."""


def read_report(tool: AnalyserName, text: bytes, named: Named) -> list[Finding]:
    """Return the findings in a report.

    Raises:
        ValueError, KeyError, TypeError, IndexError: It is none.
    """
    values: Any = json.loads(text)
    return list(_READERS[tool](values, named))


def _ruff(values: Any, named: Named) -> Iterator[Finding]:
    for each in values:
        rule: str | None = each["code"]
        is_syntax = rule is None or rule == "invalid-syntax"
        location = each["location"]
        yield Finding(
            tool="ruff",
            rule=SYNTAX if is_syntax or rule is None else rule,
            # ruff calls everything an error; what Python itself would refuse is one.
            severity="error" if is_syntax else "warning",
            message=_short(each["message"]),
            file=named(each["filename"]),
            line=int(location["row"]),
            column=int(location["column"]),
            url=each.get("url"),
            fix=_ruff_fix(each.get("fix")),
        )


def _ruff_fix(values: Any) -> Fix | None:
    if not values:
        return None
    edits = tuple(
        Edit(
            line=int(each["location"]["row"]),
            column=int(each["location"]["column"]),
            end_line=int(each["end_location"]["row"]),
            end_column=int(each["end_location"]["column"]),
            text=str(each["content"])[:EDIT_CHARACTERS],
        )
        for each in values["edits"][:MOST_EDITS]
    )
    return Fix(message=_short(values.get("message") or ""), safe=values["applicability"] == "safe", edits=edits)


def _bandit(values: Any, named: Named) -> Iterator[Finding]:
    for each in values["errors"]:
        is_syntax = "syntax error" in each["reason"]
        yield Finding(
            tool="bandit",
            rule=SYNTAX if is_syntax else "not-analysed",
            severity="error" if is_syntax else "warning",
            message=_short(each["reason"]),
            file=named(each["filename"]),
        )
    for each in values["results"]:
        yield Finding(
            tool="bandit",
            rule=str(each["test_id"]),
            severity=_BANDIT.get(each["issue_severity"], "info"),
            message=_short(each["issue_text"]),
            file=named(each["filename"]),
            line=int(each["line_number"]),
            column=int(each.get("col_offset", 0)) + 1,
            url=each.get("more_info"),
        )


def _basedpyright(values: Any, named: Named) -> Iterator[Finding]:
    for each in values["generalDiagnostics"]:
        start = each.get("range", {}).get("start")
        rule = each.get("rule")
        yield Finding(
            tool="basedpyright",
            rule=str(rule) if rule else SYNTAX,
            severity=_PYRIGHT.get(each["severity"], "info"),
            message=_short(each["message"]),
            file=named(each["file"]),
            line=int(start["line"]) + 1 if start else None,
            column=int(start["character"]) + 1 if start else None,
        )


def _short(text: str) -> str:
    return text if len(text) <= MESSAGE_CHARACTERS else f"{text[:MESSAGE_CHARACTERS]}…"


_READERS: Mapping[AnalyserName, Callable[[Any, Named], Iterator[Finding]]] = {
    "ruff": _ruff,
    "bandit": _bandit,
    "basedpyright": _basedpyright,
}
