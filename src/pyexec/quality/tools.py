"""The tools that are run on somebody's code: what is installed for each, and how each is asked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

FormatterName = Literal["ruff", "black"]
AnalyserName = Literal["ruff", "bandit", "basedpyright"]

_FORMATTERS: tuple[FormatterName, ...] = get_args(FormatterName)
_ANALYSERS: tuple[AnalyserName, ...] = get_args(AnalyserName)

FORMATTERS: Mapping[str, FormatterName] = {name: name for name in _FORMATTERS}
ANALYSERS: Mapping[str, AnalyserName] = {name: name for name in _ANALYSERS}

DEFAULT_ANALYSERS: tuple[AnalyserName, ...] = ("ruff", "bandit")

REQUIREMENTS: Mapping[FormatterName | AnalyserName, str] = {
    "ruff": "ruff>=0.17,<0.18",
    "black": "black>=26.1,<27",
    "bandit": "bandit>=1.9,<2",
    "basedpyright": "basedpyright>=1.40,<2",
}
"""What uv installs for each, into an environment of its own: within these, what a tool prints keeps its form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One run of a tool.

    Attributes:
        tool: Which.
        args: Its arguments; paths in them are absolute.
        stdin: The source to look at, byte for byte as the file system would encode it.
        settings: Where the tool reads files only: what is put into `pyrightconfig.json`, beside `source.py` with the
            source, in the folder that it then runs in.
    """

    tool: FormatterName | AnalyserName
    args: tuple[str, ...]
    stdin: str = ""
    settings: str | None = None
