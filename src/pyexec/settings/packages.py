"""The variables by which an operator sets which packages callers may have in sandboxes."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from pyexec.domain.limits import MEGABYTE
from pyexec.domain.packages import SOURCES, PackageSettings, parse_allowed, parse_names, parse_sources
from pyexec.settings.reading import Variable, whole

_PREFIX = "packages_"

PACKAGE_VARIABLES: tuple[Variable, ...] = (
    Variable(
        name="PYEXEC_PACKAGES_ALLOWED",
        meaning="Packages that callers may have in sandboxes besides those there, what these need included.",
        default="all",
        allowed="names with commas between them; all, or none",
        read=parse_allowed,
        limit=f"{_PREFIX}allowed",
    ),
    Variable(
        name="PYEXEC_PACKAGES_DENIED",
        meaning="Packages that callers may not have in sandboxes; these win.",
        default="none",
        allowed="names with commas between them; or none",
        read=parse_names,
        limit=f"{_PREFIX}denied",
    ),
    Variable(
        name="PYEXEC_PACKAGES_SOURCES",
        meaning="Where packages for sandboxes may come from, wheels in any case: the index that uv is set to, "
        "`urls` or `paths` of wheels that callers name, `other-indexes` that they name.",
        default="index",
        allowed=f"names with commas between them, of {', '.join(SOURCES)}",
        read=parse_sources,
        limit=f"{_PREFIX}sources",
    ),
    Variable(
        name="PYEXEC_PACKAGES_MB",
        meaning="The most that the packages one call adds to a sandbox may take on disk.",
        default="2048",
        allowed="a whole number between 1 and 1000000",
        read=whole(1, 1_000_000, MEGABYTE),
        limit=f"{_PREFIX}size",
    ),
    Variable(
        name="PYEXEC_PACKAGES_FILES",
        meaning="The most files that the packages one call adds to a sandbox may have.",
        default="100000",
        allowed="a whole number between 1 and 10000000",
        read=whole(1, 10_000_000),
        limit=f"{_PREFIX}files",
    ),
)


def package_settings(given: Mapping[str, Any]) -> PackageSettings:
    """Return the settings of packages with what is given, by the names of their values."""
    own = {field.name for field in fields(PackageSettings)}
    values = {name.removeprefix(_PREFIX): value for name, value in given.items() if name.startswith(_PREFIX)}
    return PackageSettings(**{name: value for name, value in values.items() if name in own})
