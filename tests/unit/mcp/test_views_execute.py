"""What was shown, in an answer that a model can afford."""

import json

from pyexec.domain.turns import Display, Part
from pyexec.mcp.rendering_execute import render_python
from pyexec.mcp.results_execute import PythonResult
from pyexec.mcp.views_execute import TABLE_CHARACTERS, is_picture, shown

CHART = {"axes": [{"title": "sales", "series": [{"kind": "bar", "x": ["a", "b"], "y": [3, 1]}]}]}
TABLE = {"shape": [1000, 1], "columns": [{"name": "n", "type": "int64"}], "rows": [[1], [2]]}
PNG = b"\x89PNG\r\n\x1a\n"


def test_a_figure_is_told_by_its_numbers_and_its_file() -> None:
    part = Part(media_type="image/png", file="figure-1.png", size=9)
    told = shown("ab", Display(number=1, kind="figure", parts=(part,), width=640, height=480, chart=CHART))
    assert (told.uri, told.width, told.chart) == ("job-file://ab/figure-1.png", 640, CHART)
    text = render_python(PythonResult(job_id="ab", status="completed", success=True, displays=[told]))
    for word in ("figure 640x480", "job-file://ab/figure-1.png", "- sales: bar"):
        assert word in text


def test_a_table_is_told_by_its_first_rows() -> None:
    told = shown("ab", Display(number=1, kind="table", parts=(), table=TABLE))
    text = render_python(
        PythonResult(job_id="ab", status="completed", success=True, result="its text", displays=[told])
    )
    assert "| n (int64) |" in text
    assert "| 2 |" in text
    assert "1000 x 1" in text
    assert "its text" not in text


def test_wide_tables_and_large_charts_are_cut_to_what_an_answer_carries() -> None:
    wide = {**TABLE, "rows": [["x" * 200] * 50] * 20}
    told = shown("ab", Display(number=1, kind="table", parts=(), table=wide))
    assert told.table is not None
    assert len(json.dumps(told.table)) <= TABLE_CHARACTERS
    large = {"axes": [{"series": [{"y": list(range(100_000))}]}]}
    assert shown("ab", Display(number=1, kind="figure", parts=(), chart=large)).chart is None


def test_only_what_is_a_picture_goes_out_as_one() -> None:
    assert is_picture("image/png", PNG + b"...")
    assert not is_picture("image/png", b"#!/bin/sh")
    assert not is_picture("image/jpeg", PNG)
    assert not is_picture("text/html", b"<p>")
    assert not is_picture("image/png", PNG + b"." * 2_000_000)


def test_whatever_a_table_or_chart_is_made_of_it_is_rendered() -> None:
    for value in ({}, {"columns": 5, "rows": "x", "shape": None}, {"axes": [1, {"series": [2]}], "columns": [3]}):
        told = shown("ab", Display(number=1, kind="table", parts=(), table=value, chart=value))
        render_python(PythonResult(job_id="ab", status="completed", success=True, displays=[told]))
