"""The script library: plain files in one folder per owner, which a person may edit and put under git."""

import os
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from anyio.to_thread import run_sync

from pyexec.domain.errors import InvalidArgumentError, NotFoundError, StateUnusableError
from pyexec.domain.limits import MEGABYTE
from pyexec.domain.principals import Principal
from pyexec.scripts.docstrings import LARGEST_PARSED, Parsed, parse, with_docstring
from pyexec.scripts.drafts import Draft
from pyexec.scripts.names import SUFFIX, check_script_name, is_of_python, is_script_name
from pyexec.storage.plain_files import read_plain, write_plain
from pyexec.storage.state_folder import StateFolder

LARGEST_SCRIPT = MEGABYTE
LONGEST_DESCRIPTION = 4000
MOST_LISTED = 500
MOST_NAMED = 20
_IGNORED = "__pycache__/\n"


class Needs(Protocol):
    """What a script's header says; no credentials are in it."""

    @property
    def dependencies(self) -> tuple[str, ...]:
        """Its requirements."""
        ...

    @property
    def requires_python(self) -> str | None:
        """The versions of Python it runs on."""
        ...


class Headers(Protocol):
    """Reads and writes the headers of scripts."""

    def read(self, source: bytes) -> Needs:
        """Return what a header says; raises InvalidArgumentError where it cannot be read."""
        ...

    def write(self, source: str, dependencies: Sequence[str], requires_python: str | None) -> str:
        """Return the source with a header that asks for these too; raises InvalidArgumentError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedScript:
    """A script of the library as it lies there; `fault` says what is wrong with one that a person has changed."""

    name: str
    path: Path
    docstring: str | None = None
    dependencies: tuple[str, ...] = ()
    requires_python: str | None = None
    fault: str | None = None


class ScriptLibrary:
    """Saves scripts under names, lists, reads and deletes them. Every owner has a library of their own."""

    def __init__(self, folder: StateFolder, headers: Headers) -> None:
        self._folder = folder
        self._headers = headers

    def folder_of(self, principal: Principal) -> Path:
        """Return where a principal's scripts lie."""
        return self._folder.scripts(principal.key)

    async def save(self, principal: Principal, name: str, draft: Draft, *, overwrite: bool = False) -> SavedScript:
        """Keep a source under a name, with a header that says what it needs and the description as its docstring.

        Raises:
            InvalidArgumentError: A value is not allowed, or the name is taken and `overwrite` is false.
            StateUnusableError: The folder cannot be written.
        """
        name = check_script_name(name)
        if is_of_python(name):
            raise InvalidArgumentError(
                f"{name!r} is a module of Python's own, which every script beside this one would miss.",
                hint="Choose another name.",
            )
        return await run_sync(lambda: self._save(self.folder_of(principal), name, draft, overwrite=overwrite))

    async def entries(self, principal: Principal) -> list[SavedScript]:
        """Return the scripts there are, by name; those that somebody broke by hand too, with their fault."""
        return await run_sync(self._entries, self.folder_of(principal))

    async def get(self, principal: Principal, name: str) -> SavedScript:
        """Return one script.

        Raises:
            InvalidArgumentError: No script can be called so.
            NotFoundError: There is none of that name.
        """
        return await run_sync(self._get, self.folder_of(principal), check_script_name(name))

    async def source(self, principal: Principal, name: str) -> tuple[SavedScript, str]:
        """Return one script and what is in it.

        Raises:
            InvalidArgumentError: No script can be called so, or it is too large to be shown.
            NotFoundError: There is none of that name.
        """
        return await run_sync(self._source, self.folder_of(principal), check_script_name(name))

    async def delete(self, principal: Principal, name: str) -> Path:
        """Delete one script; return where it lay.

        Raises:
            InvalidArgumentError: No script can be called so.
            NotFoundError: There is none of that name.
            StateUnusableError: The folder cannot be written.
        """
        return await run_sync(self._delete, self.folder_of(principal), check_script_name(name))

    def _save(self, folder: Path, name: str, draft: Draft, *, overwrite: bool) -> SavedScript:
        text = _checked("source", draft.source, LARGEST_SCRIPT).removeprefix("\ufeff")
        text = self._headers.write(text, draft.dependencies, draft.requires_python)
        if draft.description is not None and draft.description.strip():
            text = with_docstring(text, _checked("description", draft.description, LONGEST_DESCRIPTION).strip())
        if not text.endswith("\n"):
            text += "\n"
        path = folder / f"{name}{SUFFIX}"
        with _changing(folder):
            _make_folder(folder)
            try:
                write_plain(path, text.encode("utf-8"), mode=0o666, replace=overwrite)
            except FileExistsError:
                raise _taken(name) from None
        return self._described(path)

    def _entries(self, folder: Path) -> list[SavedScript]:
        try:
            names = sorted(name for name in os.listdir(_no_link(folder)) if _counts(name))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StateUnusableError(f"The scripts in {folder} cannot be listed: {error.strerror}.") from error
        return [self._described(folder / name) for name in names[:MOST_LISTED]]

    def _described(self, path: Path) -> SavedScript:
        script = SavedScript(name=path.name.removesuffix(SUFFIX), path=path)
        fault = _fault_of_file(path)
        source = None if fault else read_plain(path.parent, path.name, LARGEST_SCRIPT)
        if source is None:
            return replace(script, fault=fault or "It cannot be opened.")
        parsed = parse(source) if len(source) <= LARGEST_PARSED else Parsed()
        script = replace(script, docstring=parsed.docstring, fault=parsed.fault or _fault_of_name(script.name))
        try:
            needs = self._headers.read(source)
        except InvalidArgumentError as error:
            return replace(script, fault=error.message)
        return replace(script, dependencies=needs.dependencies, requires_python=needs.requires_python)

    def _get(self, folder: Path, name: str) -> SavedScript:
        return self._described(_existing(folder, name))

    def _source(self, folder: Path, name: str) -> tuple[SavedScript, str]:
        path = _existing(folder, name)
        source = read_plain(folder, path.name, LARGEST_SCRIPT)
        if source is None:
            raise InvalidArgumentError(f"The script {name!r} cannot be shown. {_fault_of_file(path) or ''}".rstrip())
        return self._described(path), source.decode("utf-8", "replace")

    def _delete(self, folder: Path, name: str) -> Path:
        path = _no_link(folder) / f"{name}{SUFFIX}"
        with _changing(folder):
            try:
                path.unlink()
            except FileNotFoundError:
                raise _unknown(folder, name) from None
        return path


def _existing(folder: Path, name: str) -> Path:
    """Return the file of a script, which is a regular one."""
    path = _no_link(folder) / f"{name}{SUFFIX}"
    try:
        mode = path.lstat().st_mode
    except OSError:
        raise _unknown(folder, name) from None
    if not stat.S_ISREG(mode):
        raise InvalidArgumentError(f"The script {name!r} cannot be used. {_fault_of_mode(mode)}")
    return path


def _taken(name: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"There is a script {name!r} already.", hint="Pass overwrite=true to replace it.")


def _unknown(folder: Path, name: str) -> NotFoundError:
    names = sorted(path.stem for path in folder.glob(f"*{SUFFIX}") if _counts(path.name))
    known = ", ".join(names[:MOST_NAMED]) or "none"
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return NotFoundError(f"There is no script {name!r}; there are: {known}{more}.", hint="save_script makes one.")


def _counts(file_name: str) -> bool:
    return file_name.endswith(SUFFIX) and not file_name.startswith(".")


def _fault_of_file(path: Path) -> str | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return _fault_of_mode(status.st_mode)
    return f"It is larger than {LARGEST_SCRIPT // MEGABYTE} MiB." if status.st_size > LARGEST_SCRIPT else None


def _fault_of_mode(mode: int) -> str:
    return "It is a link, and links are not followed." if stat.S_ISLNK(mode) else "It is no regular file."


def _fault_of_name(name: str) -> str | None:
    if not is_script_name(name):
        return "Its name cannot be asked for; allowed are up to 64 letters, digits, '_' and '-'."
    return "Scripts beside it import it in place of Python's own module." if is_of_python(name) else None


def _checked(what: str, text: str, most: int) -> str:
    """Return text with plain line ends."""
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError:
        raise InvalidArgumentError(f"{what} holds a lone surrogate, which is no character.") from None
    if size > most:
        raise InvalidArgumentError(f"{what} is {size} bytes long; at most {most} are allowed.")
    if "\0" in text:
        raise InvalidArgumentError(f"{what} holds a NUL character, which Python source cannot have.")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _no_link(folder: Path) -> Path:
    if folder.is_symlink():
        raise StateUnusableError(f"{folder} is a link, and links are not followed.", hint="Put a folder there.")
    return folder


def _make_folder(folder: Path) -> None:
    if not _no_link(folder).exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Scripts import each other, and what Python leaves of that is nothing to commit.
        (folder / ".gitignore").write_text(_IGNORED, "utf-8")


@contextmanager
def _changing(folder: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise StateUnusableError(f"The scripts in {folder} cannot be changed: {error.strerror}.") from error
