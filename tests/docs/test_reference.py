"""The reference is what the code says."""

from pathlib import Path

import pytest

from docs.generate import FOLDER, pages
from pyexec.domain.executions import OUTCOME_KINDS, STATES, Outcome
from pyexec.settings import VARIABLES
from tests.docs.conftest import ROOT


@pytest.fixture(scope="module")
def generated() -> dict[Path, str]:
    return pages()


def test_the_reference_pages_are_up_to_date(generated: dict[Path, str]) -> None:
    stale = [path.name for path, text in generated.items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run `make docs`"


def test_no_page_of_the_reference_is_written_by_hand(generated: dict[Path, str]) -> None:
    assert sorted(FOLDER.iterdir()) == sorted(generated)


def test_every_setting_is_in_the_reference(generated: dict[Path, str]) -> None:
    page = generated[FOLDER / "settings.md"]
    assert [variable.name for variable in VARIABLES if f"| `{variable.name}` |" not in page] == []


def test_the_table_of_outcomes_says_what_the_code_does() -> None:
    text = (ROOT / "docs" / "concepts" / "states-and-outcomes.md").read_text(encoding="utf-8")
    table = text.partition("## Which outcome is which state")[2].partition("\n\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| `")]
    told = {(cells[0].strip("`"), cells[1].strip("`")) for cells in rows}
    assert told == {
        (kind, Outcome(kind=kind, exit_code=code, ended_at=0).state) for kind in OUTCOME_KINDS for code in (0, 1)
    }
    assert {state for _kind, state in told} | {"pending", "running"} == set(STATES)


def test_every_decision_is_listed_once_and_has_its_number_and_title() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = (folder / "README.md").read_text(encoding="utf-8").partition("## The entries")[2].split("\n")
    entries = sorted(folder.glob("[0-9]*.md"))
    titles = [path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ") for path in entries]
    assert [line for line in listed if line] == [
        f"- [{title}]({path.name})" for title, path in zip(titles, entries, strict=True)
    ]
    assert [path.name[:4] for path in entries] == [title[:4] for title in titles]
