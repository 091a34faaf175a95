"""What is to be saved."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What is to be saved: a source, what its header shall ask for besides, and its docstring, if a new one."""

    source: str
    dependencies: tuple[str, ...] = ()
    requires_python: str | None = None
    description: str | None = None
