"""What a session holds: its variables, its packages. Nothing of the user's code is called for it."""

import importlib.metadata
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import ModuleType
from typing import Any, cast

VARIABLES = 300
PACKAGES = 1000
NAME_CHARACTERS = 100

_ARRAYS = frozenset({"cupy", "geopandas", "jax", "numpy", "pandas", "polars", "scipy", "tensorflow", "torch", "xarray"})
_SIZED = (str, bytes, bytearray, list, tuple, dict, set, frozenset, range)
_HIDDEN = frozenset({"In", "Out", "exit", "get_ipython", "open", "quit"})


def variables(namespace: "Mapping[str, Any]", hidden: "Mapping[str, Any]") -> "list[dict[str, Any]]":
    """Describe the variables of a namespace: name, type, length or shape, and bytes where that is known cheaply."""
    told: list[dict[str, Any]] = []
    for name, value in list(namespace.items()):
        if name.startswith("_") or name in _HIDDEN or isinstance(value, ModuleType):
            continue
        if name in hidden and hidden[name] is value:
            continue
        if len(told) == VARIABLES:
            break
        told.append(
            {"name": name[:NAME_CHARACTERS], "type": _type_name(cast("type[Any]", type(value))), **_measures(value)}
        )
    return told


def packages() -> "list[str]":
    """Return the distributions that this interpreter finds, each with its version."""
    found: dict[str, str] = {}
    for name, version in _distributions():
        found.setdefault(name, version)
        if len(found) == PACKAGES:
            break
    return [f"{name}=={version}" for name, version in sorted(found.items(), key=lambda one: one[0].lower())]


def version_of(name: str) -> "str | None":
    """Return the version of a distribution; None where there is none."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def directory() -> str:
    """Return the working directory; empty where it is gone."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def _distributions() -> "Iterator[tuple[str, str]]":
    for one in importlib.metadata.distributions():
        with suppress(Exception):  # A folder that is half removed.
            name, version = cast("Any", one.metadata["Name"]), cast("Any", one.version)
            if name and version:
                yield str(name), str(version)


def _type_name(kind: type) -> str:
    module = kind.__module__
    name = kind.__qualname__
    shown = name if module in ("builtins", "__main__") else f"{module.partition('.')[0]}.{name}"
    return shown[:NAME_CHARACTERS]


def _measures(value: Any) -> "dict[str, Any]":
    kind = cast("type[Any]", type(value))
    measures: dict[str, Any] = {}
    if kind in _SIZED:
        measures["length"] = len(value)
        measures["bytes"] = sys.getsizeof(value)
    elif kind in (bool, int, float, complex, type(None)):
        measures["bytes"] = sys.getsizeof(value)
    elif kind.__module__.partition(".")[0] in _ARRAYS:
        with suppress(Exception):
            measures["shape"] = [int(side) for side in value.shape]
        with suppress(Exception):
            measures["bytes"] = _array_bytes(value)
    return measures


def _array_bytes(value: Any) -> int:
    if hasattr(value, "estimated_size"):
        return int(value.estimated_size())
    if hasattr(value, "memory_usage"):
        usage = value.memory_usage()
        return int(usage.sum() if hasattr(usage, "sum") else usage)
    return int(value.nbytes)
