"""Which versions of Python somebody asks for."""

import re
from dataclasses import dataclass

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from pyexec.domain.errors import InvalidArgumentError

Version = tuple[int, int, int]

OLDEST: Version = (3, 8, 0)
"""What we look for when nobody asks for anything."""

ALLOWED_FORMS = (
    "'3.13', '3.13.2', a range such as '>=3.11', '>=3.11,<3.14' or '==3.12.*', or an absolute path to an interpreter"
)

_EXACT = re.compile(r"\d+\.\d+(\.\d+)?")
_OPERATOR = re.compile(r"[<>=!~]")
# Every version there may ever be, near enough to see whether two ranges meet.
_IMAGINABLE: tuple[Version, ...] = tuple((3, minor, patch) for minor in range(50) for patch in range(40))


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRequest:
    """A set of versions that would do.

    Attributes:
        text: As it was written; uv understands it too.
        specifiers: The set.
        newest: Whether the newest that fits is wanted (a range), or the first one found (a version).
    """

    text: str
    specifiers: SpecifierSet
    newest: bool

    def accepts(self, version: Version) -> bool:
        """Tell whether a version is in the set."""
        return self.specifiers.contains(show(version), prereleases=True)

    def narrowed(self, other: "VersionRequest") -> "VersionRequest":
        """Return what is in both sets."""
        both = self.specifiers & other.specifiers
        return VersionRequest(text=str(both), specifiers=both, newest=True)

    def possible(self) -> bool:
        """Tell whether any version at all could be in the set."""
        return any(self.accepts(version) for version in _IMAGINABLE)


def show(version: Version) -> str:
    """Return a version as people write it: `3.13.2`."""
    return ".".join(str(part) for part in version)


def accepts(text: str, version: str) -> bool:
    """Tell whether a version such as `3.13.2` is one of those that are asked for; a path asks for none.

    Raises:
        InvalidArgumentError: It has none of the allowed forms.
    """
    if text.strip().startswith("/"):
        return False
    major, minor, patch = (int(part) for part in version.split("."))
    return parse_request(text).accepts((major, minor, patch))


def parse_request(text: str, *, what: str = "python_version") -> VersionRequest:
    """Read a request for a version; a path is none.

    Args:
        text: The request.
        what: How to call it in a message.

    Raises:
        InvalidArgumentError: It has none of the allowed forms.
    """
    wanted = text.strip()
    if _EXACT.fullmatch(wanted):
        specifier = f"=={wanted}" if wanted.count(".") > 1 else f"=={wanted}.*"
        return VersionRequest(text=wanted, specifiers=SpecifierSet(specifier), newest=False)
    if _OPERATOR.match(wanted):
        try:
            return VersionRequest(text=wanted, specifiers=SpecifierSet(wanted), newest=True)
        except InvalidSpecifier:
            pass
    raise InvalidArgumentError(f"{what} is {text!r}; allowed are {ALLOWED_FORMS}.")
