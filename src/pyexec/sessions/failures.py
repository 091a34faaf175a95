"""What the system says about a file of a workspace, as a refusal."""

import errno
from collections.abc import Generator
from contextlib import contextmanager

from pyexec.domain.errors import DiskFullError, InvalidArgumentError, NotFoundError, PyexecError, StateUnusableError
from pyexec.sessions.paths import Place
from pyexec.storage.beneath import NotPlainError

_MISSING = (errno.ENOENT, errno.EXDEV, errno.ESTALE)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN = "cannot be reached: its mode, or that of a folder it lies in, forbids it"
_SAID = {
    errno.ELOOP: "is a symbolic link, or lies behind one; links are not followed",
    errno.ENOTDIR: "is no folder, or lies in none; links are not followed",
    errno.EISDIR: "is a folder",
    errno.ENAMETOOLONG: "is too long a path",
    errno.EACCES: _FORBIDDEN,
    errno.EPERM: _FORBIDDEN,
}


@contextmanager
def refusing(place: Place) -> Generator[None]:
    """Turn what the system refuses into a sentence about a place.

    Raises:
        NotFoundError: There is nothing there.
        InvalidArgumentError: What is there is not what it must be.
        DiskFullError: The workspace is full.
        StateUnusableError: The disk fails.
    """
    try:
        yield
    except OSError as error:
        raise _refusal(error, place) from error


def full(place: Place) -> DiskFullError:
    """Return the refusal of what has no room."""
    return DiskFullError(
        f"The workspace is too full to write {place.shown}; nothing of that name was changed.",
        hint="delete_file makes room.",
    )


def _refusal(error: OSError, place: Place) -> PyexecError:
    if isinstance(error, NotPlainError):
        hint = "list_files shows what is in it." if error.kind == "a folder" else None
        return InvalidArgumentError(f"{place.shown} is {error.kind}; it must be a regular file.", hint=hint)
    if error.errno in _MISSING:
        return NotFoundError(f"There is no {place.shown} in the workspace.", hint="list_files shows what there is.")
    if error.errno in _FULL:
        return full(place)
    said = _SAID.get(error.errno or 0)
    if said is not None:
        return InvalidArgumentError(f"{place.shown} {said}.")
    return StateUnusableError(f"{place.shown} could not be reached: {error.strerror}.")
