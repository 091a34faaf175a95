"""What cells show, apart from figures: each thing once, in a form that fits."""

import json
from typing import Any

import pytest

from tests.guest.guests import Cell, Guest

pytestmark = pytest.mark.needs_uv


def forms(cell: Cell) -> dict[str, str | None]:
    return {part.media_type: part.text for display in cell.turn.displays for part in display.parts}


def test_each_kind_of_display_has_its_media_type(guest: Guest) -> None:
    cell = guest.run(
        "from IPython.display import HTML, JSON, SVG, Latex, Markdown\n"
        "display(HTML('<b>'), Latex('$x$'), Markdown('*a*'), JSON({'a': float('nan')}), SVG('<svg/>'), 'text')"
    )
    assert cell.kinds == ["html", "latex", "markdown", "json", "svg", "text"]
    assert forms(cell) == {
        "text/html": "<b>",
        "text/latex": "$x$",
        "text/markdown": "*a*",
        "application/json": '{"a": "nan"}',
        "image/svg+xml": "<svg/>",
        "text/plain": "'text'",
    }


def test_a_value_with_richer_forms_is_shown_in_them_and_told_as_text(guest: Guest) -> None:
    cell = guest.run(
        "class Rich:\n    def _repr_html_(self): return '<i>'\n    def __repr__(self): return 'rich'\nRich()"
    )
    assert (cell.value, cell.kinds, forms(cell)) == ("rich", ["html"], {"text/html": "<i>"})


@pytest.mark.parametrize("how", ["for_type(int, ", "for_type_by_name('builtins', 'int', "])
def test_a_plain_value_is_shown_in_a_form_that_the_program_has_taught(guest: Guest, how: str) -> None:
    taught = f"get_ipython().display_formatter.formatters['text/html'].{how}lambda n: f'<b>{{n}}</b>')"
    assert guest.run("6 * 7").kinds == []
    guest.run(taught)
    cell = guest.run("6 * 7")
    assert (cell.value, forms(cell)) == ("42", {"text/html": "<b>42</b>"})
    guest.run("get_ipython().display_formatter.formatters['text/html'].pop(int)")
    assert guest.run("6 * 7").kinds == []


def test_a_form_that_fails_leaves_the_others_and_a_note(guest: Guest) -> None:
    cell = guest.run("class Half:\n    def _repr_html_(self): 1/0\n    def _repr_latex_(self): return '$y$'\nHalf()")
    assert (cell.turn.status, forms(cell)) == ("ok", {"text/latex": "$y$"})
    assert cell.turn.notes == ("Showing a value failed: ZeroDivisionError: division by zero",)


def test_what_is_long_becomes_a_file(guest: Guest) -> None:
    cell = guest.run("display(HTML('x' * 100_000))")
    (part,) = cell.only.parts
    assert (part.file, part.size) == ("display-1.html", 100_000)
    assert (guest.files / "display-1.html").read_text() == "x" * 100_000


def test_too_many_displays_are_counted(guest: Guest) -> None:
    cell = guest.run("for n in range(60): display(n)")
    assert len(cell.turn.displays) == 50
    assert cell.turn.notes == ("10 more displays were left out; at most 50 are shown.",)


def test_pictures_are_scaled_to_a_budget(guest: Guest) -> None:
    cell = guest.run("from PIL import Image\nImage.new('RGB', (2000, 100), 'red')")
    (part,) = cell.only.parts
    assert (cell.only.kind, cell.only.width, cell.only.height) == ("picture", 1000, 50)
    assert (part.media_type, part.file) == ("image/png", "picture-1.png")
    assert cell.value == "<PIL.Image.Image image mode=RGB size=2000x100>"
    noise = guest.run("import os\nImage.frombytes('RGB', (1500, 1200), os.urandom(1500 * 1200 * 3))")
    (part,) = noise.only.parts
    assert part.media_type == "image/jpeg"
    assert part.size <= 300_000
    assert (guest.files / str(part.file)).stat().st_size == part.size


def test_encoded_pictures_and_those_of_other_types_are_shown_too(guest: Guest) -> None:
    cell = guest.run(
        "import io\nfrom IPython.display import Image as Shown\nbuffer = io.BytesIO()\n"
        "Image.new('L', (3000, 30)).save(buffer, 'PNG')\nShown(buffer.getvalue())"
    )
    assert (cell.kinds, cell.only.width) == (["picture"], 1000)


def table_of(cell: Cell) -> dict[str, Any]:
    assert cell.kinds == ["table"]
    assert cell.only.table is not None
    return dict(cell.only.table)


def test_a_pandas_table_is_its_columns_its_beginning_and_a_file(guest: Guest) -> None:
    cell = guest.run(
        "import pandas as pd\ndf = pd.DataFrame({'n': range(100), 'x': [1.5, float('nan')] * 50, 't': ['é'] * 100})\ndf"
    )
    table = table_of(cell)
    assert (table["library"], table["shape"]) == ("pandas", [100, 3])
    assert [column["name"] for column in table["columns"]] == ["n", "x", "t"]
    assert table["columns"][0]["type"] == "int64"
    assert table["rows"][:2] == [[0, 1.5, "é"], [1, "nan", "é"]]
    assert len(table["rows"]) == 20
    (part,) = cell.only.parts
    assert part.file is not None
    assert (guest.files / part.file).read_text("utf-8").splitlines()[:2] == ["n,x,t", "0,1.5,é"]
    assert len((guest.files / part.file).read_text("utf-8").splitlines()) == 101


def test_a_small_table_needs_no_file_and_an_index_is_a_column(guest: Guest) -> None:
    cell = guest.run("pd.DataFrame({'v': [1, 2]}, index=pd.Index(['a', 'b'], name='key'))")
    table = table_of(cell)
    assert cell.only.parts == ()
    assert [column["name"] for column in table["columns"]] == ["key", "v"]
    assert table["rows"] == [["a", 1], ["b", 2]]
    times = table_of(guest.run("pd.Series(pd.to_datetime(['2026-01-02', None]), name='when')"))
    assert times["rows"] == [["2026-01-02 00:00:00"], [None]]
    grouped = table_of(guest.run("df.groupby('t').agg({'n': ['min', 'max']})"))
    assert [column["name"] for column in grouped["columns"]] == ["t", "n / min", "n / max"]


def test_a_polars_table_too(guest: Guest) -> None:
    cell = guest.run("import polars as pl\npl.DataFrame({'a': list(range(30)), 'b': [None] * 30})")
    table = table_of(cell)
    assert (table["library"], table["shape"]) == ("polars", [30, 2])
    assert table["columns"][0] == {"name": "a", "type": "Int64"}
    assert table["rows"][0] == [0, None]
    assert cell.only.parts[0].media_type == "text/csv"


def test_plotly_is_its_spec_and_opens_no_browser(guest: Guest) -> None:
    cell = guest.run("import plotly.graph_objects as go\nf = go.Figure(go.Bar(y=[3, 1]))\nf.show()\nf")
    assert cell.kinds == ["plotly", "plotly"]
    spec = json.loads(forms(cell)["application/vnd.plotly.v1+json"] or "")
    assert spec["data"][0] == {"type": "bar", "y": [3, 1]}


def test_altair_is_its_spec(guest: Guest) -> None:
    cell = guest.run("import altair as alt\nalt.Chart(pd.DataFrame({'a': [1]})).mark_point().encode(x='a')")
    assert cell.kinds == ["altair"]
    ((media_type, text),) = forms(cell).items()
    assert media_type.startswith("application/vnd.vegalite.v")
    assert json.loads(text or "")["mark"] == {"type": "point"}


def test_what_a_session_holds_can_be_asked_for(guest: Guest) -> None:
    guest.run("import numpy as np\narray = np.zeros((3, 4))\ntext = 'abc'\ndef function(): pass")
    guest.run(
        "class Trap:\n    def __len__(self): raise OSError\n    def __sizeof__(self): raise OSError\ntrap = Trap()"
    )
    info = guest.info()
    variables = {one["name"]: one for one in info["variables"]}
    assert variables["array"] == {"name": "array", "type": "numpy.ndarray", "shape": [3, 4], "bytes": 96}
    assert (variables["text"]["type"], variables["text"]["length"]) == ("str", 3)
    assert variables["df"]["shape"] == [100, 3]
    assert variables["trap"] == {"name": "trap", "type": "Trap"}
    assert not {"In", "exit", "np", "_"} & set(variables)
    assert any(one.startswith("numpy==") for one in info["packages"])
    assert info["memory"] > 1_000_000
    assert info["peak_memory"] > 1_000_000
    assert info["turns"] > 1
    assert info["age_seconds"] > 0
    assert info["directory"] == str(guest.work)
