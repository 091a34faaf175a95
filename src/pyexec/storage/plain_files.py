"""Files that somebody else may have put there: regular files count, and links lead nowhere."""

import os
import stat
import threading
from pathlib import Path


def read_plain(folder: Path, name: str, most: int) -> bytes | None:
    """Return the content of a regular file; None where there is none, or it has more than `most` bytes.

    `name` must be one part of a path, and `folder` no link.
    """
    try:
        directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        # A pipe in its place must not make us wait for a writer.
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        return None
    finally:
        os.close(directory)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        return None
    with open(file, "rb") as opened:
        content = opened.read(most + 1)
    return content if len(content) <= most else None


def write_plain(path: Path, content: bytes, *, mode: int = 0o600, replace: bool = True) -> None:
    """Put content into a file in one step: whoever reads sees the old content or the new one.

    Raises:
        FileExistsError: There is something of that name, and it is not to be replaced.
        OSError: It cannot be written.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}")
    part.unlink(missing_ok=True)
    try:
        fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with open(fd, "wb") as file:
            file.write(content)
        if replace:
            part.replace(path)
        else:
            os.link(part, path)
    finally:
        part.unlink(missing_ok=True)
