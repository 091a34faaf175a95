"""Links lead somewhere."""

import re
from pathlib import Path

from tests.docs.conftest import ROOT, Page

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def _anchors(path: Path) -> set[str]:
    """Return the anchors of a page's headings, as code hosts make them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_inside_the_repository_lead_to_a_page_and_a_heading_of_it(page: Page) -> None:
    broken: list[str] = []
    for target in LINK.findall(page.prose()):
        name, _, anchor = target.partition("#")
        if "://" in name:
            continue
        path = (page.path.parent / name).resolve() if name else page.path
        if not path.exists() or not path.is_relative_to(ROOT) or (anchor and anchor not in _anchors(path)):
            broken.append(target)
    assert broken == []


def test_every_page_of_the_docs_can_be_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    frontier = {ROOT / "README.md"}
    while frontier:
        path = frontier.pop()
        reached.add(path)
        targets = {name.partition("#")[0] for name in LINK.findall(path.read_text(encoding="utf-8"))}
        linked = {(path.parent / name).resolve() for name in targets if name.endswith(".md") and "://" not in name}
        frontier |= linked - reached
    assert set((ROOT / "docs").rglob("*.md")) - reached == set()
