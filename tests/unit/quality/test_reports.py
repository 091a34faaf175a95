"""Reports of the analysers: read where they are as known, refused where they are not."""

import json
from typing import Any

import pytest

from pyexec.quality.findings import Finding, Severity, gravest
from pyexec.quality.reports import EDIT_CHARACTERS, MESSAGE_CHARACTERS, MOST_EDITS, read_report
from pyexec.quality.tools import ANALYSERS

PLACE = {"row": 1, "column": 2}


def named(name: str) -> str:
    return name


@pytest.mark.parametrize("tool", list(ANALYSERS.values()))
@pytest.mark.parametrize("text", [b"", b"{", b"null", b"[1]", b'"text"', b'{"results": 3, "errors": 4}', b"\xff"])
def test_what_is_no_report_is_refused_and_never_taken_for_no_findings(tool: Any, text: bytes) -> None:
    with pytest.raises((ValueError, KeyError, TypeError, IndexError)):
        read_report(tool, text, named)


def test_what_is_very_long_is_cut() -> None:
    edit = {"content": "y" * 5000, "location": PLACE, "end_location": PLACE}
    fix = {"message": "m" * 5000, "applicability": "unsafe", "edits": [edit] * 50}
    entry = {"code": "F1", "message": "x" * 5000, "filename": "a.py", "location": PLACE, "fix": fix, "url": None}
    (found,) = read_report("ruff", json.dumps([entry]).encode(), named)
    assert len(found.message) == MESSAGE_CHARACTERS + 1
    assert found.fix is not None
    assert len(found.fix.message) == MESSAGE_CHARACTERS + 1
    assert [len(edit.text) for edit in found.fix.edits] == [EDIT_CHARACTERS] * MOST_EDITS


def test_a_diagnosis_without_a_place_or_rule_is_told_all_the_same() -> None:
    report = {"generalDiagnostics": [{"file": "a.py", "severity": "error", "message": "no such file"}]}
    (found,) = read_report("basedpyright", json.dumps(report).encode(), named)
    assert (found.rule, found.line, found.column, found.file) == ("syntax-error", None, None, "a.py")


def test_the_gravest_are_shown_and_stand_in_the_order_of_their_places() -> None:
    severities: list[Severity] = ["info", "warning", "error", "info", "warning"]
    found = [
        Finding(tool="ruff", rule="R", severity=severity, message="", file="a.py", line=line)
        for line, severity in enumerate(severities)
    ]
    assert [one.line for one in gravest(reversed(found), 3)] == [1, 2, 4]
    assert [one.line for one in gravest(found, 99)] == [0, 1, 2, 3, 4]
