"""What tools there are, and how much of a model's context each takes."""

import json
from dataclasses import dataclass
from typing import Any, NoReturn

from pyexec.domain.principals import Principal
from pyexec.domain.toolsets import TOOLSETS
from pyexec.mcp.server import build_server

BYTES_PER_TOKEN = 4.4
"""Measured on our own tools; schemas are mostly short English words and punctuation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueEntry:
    """One tool. Sizes are bytes of JSON: of what a model must read to call it, and of what it may read besides."""

    name: str
    toolset: str
    description: str
    size: int
    output_size: int

    @property
    def tokens(self) -> int:
        """About how many tokens a model reads for it."""
        return round(self.size / BYTES_PER_TOKEN)


class _NoServices:
    async def get(self) -> NoReturn:
        raise AssertionError("A catalogue calls nothing.")


async def catalogue() -> list[CatalogueEntry]:
    """Return the tools of every toolset, in their order."""
    return [entry for toolset in TOOLSETS for entry in await _entries(toolset)]


async def _entries(toolset: str) -> list[CatalogueEntry]:
    server = build_server(_NoServices(), _nobody, 0, (toolset,))
    return [
        CatalogueEntry(
            name=tool.name,
            toolset=toolset,
            description=(tool.description or "").partition("\n")[0],
            size=_size({"name": tool.name, "description": tool.description, "inputSchema": tool.parameters}),
            output_size=_size(tool.output_schema or {}),
        )
        for tool in await server.list_tools()
    ]


def _nobody() -> Principal:
    raise AssertionError("A catalogue calls nothing.")


def _size(value: dict[str, Any]) -> int:
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())
