"""Finding the interpreter somebody asks for among those that are here."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from pyexec.domain.errors import InterpreterNotFoundError, InvalidArgumentError, NotFoundError
from pyexec.environments.fingerprints import fingerprint
from pyexec.environments.python_versions import OLDEST, Version, VersionRequest, parse_request, show
from pyexec.environments.search import all_interpreters, first_interpreters, is_program
from pyexec.environments.version_cache import VersionCache

MOST_STARTED_AT_ONCE = 8

Probe = Callable[[Path], Version | None]
"""Starts an interpreter and returns its version; None when it does not work. Blocks, within a bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """A Python on this machine that works."""

    path: Path
    version: Version


class InterpreterFinder:
    """Finds interpreters, never downloading any; what `probe` says of one is remembered in `cache_file`.

    Methods block: they look at the disk, and start interpreters that are not known yet.

    Args:
        environ: The server's environment; read for PATH, HOME, and what pyenv and uv are set to.
        cache_file: Where versions are remembered between servers; None forgets them with this object.
        probe: See `Probe`; called from several threads at once.
        own: The server's own interpreter, the last resort.
    """

    def __init__(
        self, environ: Mapping[str, str], cache_file: Path | None, probe: Probe, *, own: Path | None = None
    ) -> None:
        self._environ = environ
        self._cache = VersionCache(cache_file)
        self._probe = probe
        self._own = own

    def find(self, request: str | None) -> Interpreter:
        """Return an interpreter that fits.

        Args:
            request: A version ('3.13': the first one found, PATH before all else), a range ('>=3.11,<3.14':
                the newest that fits), an absolute path, or None for the first one that is not too old.

        Raises:
            InvalidArgumentError: The request has none of these forms.
            NotFoundError: There is no program at that path.
            InterpreterNotFoundError: None fits; the message lists what is here, the hint says how to get
                another.
        """
        if request is None:
            found = self._first(all_interpreters(self._environ, self._own))
            if found is None:
                raise self._none_fits(f">={OLDEST[0]}.{OLDEST[1]}")
            return found
        if request.strip().startswith("/"):
            return self._at(Path(request.strip()))
        wanted = parse_request(request)
        known = None if wanted.newest else self._first_remembered(wanted)
        if known is not None:
            return known
        fitting = [one for one in self.available() if wanted.accepts(one.version)]
        if not fitting:
            raise self._none_fits(wanted.text, wanted)
        # max() keeps the first of several with the same version.
        return max(fitting, key=lambda one: one.version) if wanted.newest else fitting[0]

    def first_on_path(self) -> Interpreter:
        """Return what `python3` or `python` on PATH is, else the server's own interpreter.

        Raises:
            InterpreterNotFoundError: Neither works.
        """
        own = [self._own] if self._own is not None else []
        candidates = chain(first_interpreters(self._environ), own)
        found = self._first(candidates)
        if found is None:
            raise self._none_fits(f">={OLDEST[0]}.{OLDEST[1]}")
        return found

    def available(self) -> list[Interpreter]:
        """Return every interpreter that works, in the order they are preferred; broken ones are left out."""
        found = self._remembered()
        unknown = [path for path, interpreter in found.items() if interpreter is None]
        if unknown:
            with ThreadPoolExecutor(MOST_STARTED_AT_ONCE) as pool:
                found.update(zip(unknown, pool.map(self._look, unknown), strict=True))
        return [interpreter for interpreter in found.values() if interpreter is not None]

    def versions(self) -> tuple[str, ...]:
        """Return the versions there are, each once, the oldest first."""
        return tuple(show(version) for version in sorted({one.version for one in self.available()}))

    def _first_remembered(self, wanted: VersionRequest) -> Interpreter | None:
        """Return the first that fits, unless one before it would have to be started; looks no further than that."""
        for path in all_interpreters(self._environ, self._own):
            mark = fingerprint(path)
            version = self._cache.get(path, mark) if mark is not None else None
            if version is None:
                return None
            if wanted.accepts(version):
                return Interpreter(path=path, version=version)
        return None

    def _remembered(self) -> dict[Path, Interpreter | None]:
        """Return every interpreter in order, with None for those that have to be started."""
        found: dict[Path, Interpreter | None] = {}
        for path in all_interpreters(self._environ, self._own):
            mark = fingerprint(path)
            version = self._cache.get(path, mark) if mark is not None else None
            found[path] = Interpreter(path=path, version=version) if version is not None else None
        return found

    def _first(self, candidates: Iterator[Path]) -> Interpreter | None:
        looked_at = (self._look(path) for path in candidates)
        return next((one for one in looked_at if one is not None and one.version >= OLDEST), None)

    def _at(self, path: Path) -> Interpreter:
        if not is_program(path):
            raise NotFoundError(f"There is no interpreter at {path}.", path=str(path))
        found = self._look(path)
        if found is None:
            raise InvalidArgumentError(f"{path} is not a Python that works.", path=str(path))
        return found

    def _look(self, path: Path) -> Interpreter | None:
        mark = fingerprint(path)
        if mark is None:
            return None
        version = self._cache.get(path, mark)
        if version is None:
            version = self._probe(path)
            if version is None:
                return None
            self._cache.put(path, mark, version)
        return Interpreter(path=path, version=version)

    def _none_fits(self, wanted: str, request: VersionRequest | None = None) -> InterpreterNotFoundError:
        here = self.versions()
        listed = f"here are {', '.join(here)}" if here else "there is none that works"
        possible = request is None or request.possible()
        return InterpreterNotFoundError(
            f"No Python on this machine fits {wanted!r}; {listed}.",
            hint=f"Install one with `uv python install {_quoted(wanted)}`." if possible else None,
            requested=wanted,
            available=list(here),
        )


def _quoted(wanted: str) -> str:
    return wanted if wanted.replace(".", "").isdigit() else f"'{wanted}'"
