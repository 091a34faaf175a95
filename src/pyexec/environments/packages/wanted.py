"""What may be asked for in a sandbox, and what of it does not go with what is there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pyexec.domain.errors import InvalidArgumentError
from pyexec.domain.packages import PackageSettings
from pyexec.environments.credentials import masked
from pyexec.environments.packages.sets import versions
from pyexec.environments.requirements import anchored, combine, editable_of, is_local, unmet

MOST = 100
_WHEEL = ".whl"


@dataclass(frozen=True, slots=True, kw_only=True)
class There:
    """What is there: the packages of the sandbox's environment, and those that a session was given later.

    Both as `name==version` or `name @ url`.
    """

    preloaded: tuple[str, ...]
    beside: tuple[str, ...] = ()
    python_version: str

    @property
    def packages(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.preloaded, *self.beside)

    def whose(self, name: str) -> str:
        """Say who has a package, by its normalised name."""
        return "this session has" if name in versions(self.beside) else "sandboxes have"


def checked(
    asked: Sequence[str], settings: PackageSettings, directory: Path, *, called: str = "dependencies"
) -> tuple[str, ...]:
    """Return what is asked for, each once, with paths as URLs.

    Raises:
        InvalidArgumentError: The operator does not allow it, or it cannot be read, or it is no wheel.
        NotFoundError: There is nothing at a path.
    """
    if len(asked) > MOST:
        raise InvalidArgumentError(f"{called} has {len(asked)} requirements; at most {MOST} are taken at once.")
    found = combine((), asked, argument_is=called)
    for text in found:
        _refuse_source(text, settings)
    found = tuple(anchored(text, directory) for text in found)
    for text in found:
        name = name_of(text)
        why = denial(name, settings) if name else None
        if why:
            raise InvalidArgumentError(f"{text!r} was asked for: {why}", hint=_hint(settings))
    return found


def name_of(requirement: str) -> str | None:
    """Return the normalised name of what a requirement asks for; None where it is a path alone."""
    return None if is_local(requirement) else canonicalize_name(Requirement(requirement).name)


def denial(name: str, settings: PackageSettings) -> str | None:
    """Say why a package may not be had; None where it may."""
    if name in settings.denied:
        return f"the operator has denied {name} (PYEXEC_PACKAGES_DENIED)."
    if settings.allowed is not None and name not in settings.allowed:
        return f"{name} is not among the packages that the operator allows (PYEXEC_PACKAGES_ALLOWED)."
    return None


def refuse_clash(requirements: Sequence[str], there: There) -> None:
    """Refuse what asks for another version of something that is there.

    Raises:
        InvalidArgumentError: The message names both.
    """
    here = versions(there.packages)
    for text in requirements:
        if is_local(text):
            continue
        wanted = Requirement(text)
        name = canonicalize_name(wanted.name)
        if name not in here or not unmet((text,), there.packages, there.python_version):
            continue
        raise InvalidArgumentError(
            f"{masked(text)!r} was asked for, and {there.whose(name)} {name} {here[name]} already, which stays.",
            hint=f"Ask for a version that goes with it, or leave {name} out.",
            package=name,
        )


def is_there(requirements: Sequence[str], there: There) -> bool:
    """Tell whether all that is asked for is there, as far as that can be told without asking the index."""
    return not any(_needs_looking(text) for text in requirements) and not unmet(
        requirements, there.packages, there.python_version
    )


def comes_from_the_caller(requirements: Sequence[str], index_url: str | None) -> bool:
    """Tell whether something comes from where this caller says, and not from where everybody's comes from."""
    return index_url is not None or any(is_local(text) or "://" in text for text in requirements)


def _needs_looking(text: str) -> bool:
    """Tell whether more may be needed than the package itself, or another one of the same name."""
    if is_local(text):
        return True
    wanted = Requirement(text)
    return bool(wanted.extras) or wanted.url is not None


def _refuse_source(text: str, settings: PackageSettings) -> None:
    if editable_of(text) is not None:
        raise InvalidArgumentError(
            f"{text!r} is editable, and a sandbox sees no project of this machine.", hint="Name a package."
        )
    for source, what in _places(text):
        if source is None:
            raise InvalidArgumentError(
                f"{masked(text)!r} is {what}, which would have to be built; packages for sandboxes are wheels.",
                hint="Name a package that the index has a wheel of.",
            )
        if source not in settings.sources:
            raise InvalidArgumentError(
                f"{masked(text)!r} is {what}; packages for sandboxes come from the package index, by their names.",
                hint=f"The operator can allow it (PYEXEC_PACKAGES_SOURCES={','.join((*settings.sources, source))}).",
            )


def _places(text: str) -> "Iterator[tuple[str | None, str]]":
    """Yield where a requirement comes from, if not from the index: the source (None: no wheel), and what it is."""
    url = text if is_local(text) else Requirement(text).url or ""
    if not url:
        return
    scheme, separator, _rest = url.partition("://")
    if not separator or scheme == "file":
        yield "paths", "a path on this machine"
    elif "+" in scheme:
        yield None, "a repository"
        return
    else:
        yield "urls", "an address"
    if not urlsplit(url).path.rstrip("/").partition("[")[0].endswith(_WHEEL):
        yield None, "no wheel"


def _hint(settings: PackageSettings) -> str | None:
    names = settings.allowed
    return f"Allowed are: {', '.join(names[:20])}." if names else None
