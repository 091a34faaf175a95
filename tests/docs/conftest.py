"""What the tests of the docs share: the pages, and what is in them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from fastmcp.tools import Tool

from pyexec.app.lazy import LazyServices
from pyexec.app.principal import local_principal
from pyexec.domain.toolsets import TOOLSETS
from pyexec.mcp.server import build_server
from pyexec.settings import Settings

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True)
class Page:
    """One page: its text, and what of it is code."""

    path: Path
    text: str

    def blocks(self, language: str) -> list[str]:
        return [match[2] for match in _FENCE.finditer(self.text) if match[1] == language]

    def prose(self) -> str:
        """Return the text without its code blocks."""
        return _FENCE.sub("", self.text)

    def words_of_code(self) -> Iterator[str]:
        for match in _CODE.finditer(self.prose()):
            yield match[1]


def _pages() -> list[Page]:
    files = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "idp" / "README.md"]
    return [Page(path, path.read_text(encoding="utf-8")) for path in sorted(files)]


PAGES = _pages()


@pytest.fixture(params=PAGES, ids=[str(page.path.relative_to(ROOT)) for page in PAGES])
def page(request: pytest.FixtureRequest) -> Page:
    found = request.param
    assert isinstance(found, Page)
    return found


@pytest.fixture(scope="session")
async def tools() -> dict[str, Tool]:
    services = LazyServices(Settings(home=Path("/nonexistent"), directory=Path("/")))  # Never opened.
    return {tool.name: tool for tool in await build_server(services, local_principal, 20, tuple(TOOLSETS)).list_tools()}
