"""Structured logs: JSON lines to a file in the state folder, short lines to stderr; secrets masked in both."""

import json
import logging
import logging.handlers
import os
import re
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import unquote

from pyexec.observability.requests import context_of_logs

MAX_LOG_BYTES = 5 * 1024 * 1024
LOG_FILES = 3

_SECRET_NAME = re.compile(r"(?i)(TOKEN|SECRET|PASSW|API_?KEY|CREDENTIAL|PRIVATE_KEY|AUTH)")
_URL_CREDENTIALS = re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^\s/]+@", re.IGNORECASE)
_PASSWORD_IN_URL = re.compile(r"://[^\s/:@]*:([^\s/]+)@")
_OWN_OPEN = "PYEXEC_AUTH_"
_MASK = "****"
_SHORTEST_SECRET = 6


def is_secret_name(name: str) -> bool:
    """Tell whether a variable's name says that its value is secret."""
    return _SECRET_NAME.search(name) is not None


def _holds_secret(name: str) -> bool:
    """Tell whether a value must not be shown; whom we trust, and where we are, is no secret."""
    return is_secret_name(name) and (not name.startswith(_OWN_OPEN) or "SECRET" in name)


class Masker:
    """Takes secrets out of text: credentials in URLs, values of variables whose names say so, and what it is given."""

    def __init__(self, environ: Mapping[str, str], secrets: Iterable[str] = ()) -> None:
        values = {value for name, value in environ.items() if _holds_secret(name)} | set(secrets)
        # Whoever refuses a password may name it without the URL around it.
        passwords = [found for value in (*environ.values(), *values) for found in _PASSWORD_IN_URL.findall(value)]
        values.update(passwords, map(unquote, passwords))
        ordered = sorted((value for value in values if len(value) >= _SHORTEST_SECRET), key=len, reverse=True)
        self._values = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def mask(self, text: str) -> str:
        """Return the text without secrets."""
        if "@" in text:  # Looked for first: most lines have none, and the pattern is slow.
            text = _URL_CREDENTIALS.sub(rf"\1{_MASK}@", text)
        return self._values.sub(_MASK, text) if self._values else text


class _JsonFormatter(logging.Formatter):
    def __init__(self, masker: Masker) -> None:
        super().__init__()
        self._masker = masker

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "pid": record.process,
            **context_of_logs(),
            # Masked before it becomes JSON, which writes quotes and line ends of a secret differently.
            "message": self._masker.mask(record.getMessage()),
        }
        if record.exc_info:
            entry["exception"] = self._masker.mask(self.formatException(record.exc_info))
        return json.dumps(entry, ensure_ascii=False)


class _ShortFormatter(logging.Formatter):
    def __init__(self, masker: Masker) -> None:
        super().__init__("%(levelname)s %(name)s: %(message)s")
        self._masker = masker

    def format(self, record: logging.LogRecord) -> str:
        return self._masker.mask(super().format(record))


def configure_logging(
    level: str,
    folder: Path | None,
    environ: Mapping[str, str],
    *,
    secrets: Iterable[str] = (),
    as_json: bool = False,
) -> None:
    """Send the logs of this process to stderr and, given a folder, to `pyexec.log` in it.

    What goes to stderr is short lines, or JSON like the file's for whoever collects it there. The file is 0600, rotated
    at 5 MB; a folder that cannot be written is said once and done without.
    """
    masker = Masker(environ, secrets)
    root = logging.getLogger()
    # Libraries stay at warnings even when we say more: at debug they write down whole calls, secrets and all.
    root.setLevel(logging.WARNING)
    logging.getLogger("pyexec").setLevel(level.upper())
    shown = logging.StreamHandler(sys.stderr)
    shown.setFormatter(_JsonFormatter(masker) if as_json else _ShortFormatter(masker))
    root.handlers[:] = [shown]
    if folder is None:
        return
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / "pyexec.log"
        path.touch(mode=0o600)
        # Several servers share the file: each line is one append, and rotation by any of them is seen by all.
        handler = _SharedFileHandler(
            path, maxBytes=MAX_LOG_BYTES, backupCount=LOG_FILES, encoding="utf-8", errors="backslashreplace", delay=True
        )
    except OSError as error:
        root.warning("no log file in %s: %s", folder, error.strerror)
        return
    handler.setFormatter(_JsonFormatter(masker))
    root.addHandler(handler)


class _SharedFileHandler(logging.handlers.RotatingFileHandler):
    """Reopens the file when another process has rotated it away.

    Writes each line once it is made: the library's own makes it twice, and looks at the file four times.
    """

    _inode = -1

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record) + self.terminator
            found = self._look()
            if found is None or found.st_ino != self._inode:
                if self.stream:
                    self.stream.close()
                self.stream = self._open()
                found = os.fstat(self.stream.fileno())
                self._inode = found.st_ino
            if found.st_size + len(line) >= self.maxBytes:
                self.doRollover()
            stream = self.stream
            if stream is None:
                stream = self.stream = self._open()
                self._inode = os.fstat(stream.fileno()).st_ino
            stream.write(line)
            self.flush()
        except Exception:  # noqa: BLE001 - as every handler of logging: what cannot be written down stops nobody
            self.handleError(record)

    def _look(self) -> os.stat_result | None:
        try:
            return os.stat(self.baseFilename)
        except OSError:
            return None


def take_over(*names: str) -> None:
    """Have libraries that print their logs themselves log the way we do."""
    for name in names:
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        logger.setLevel(logging.NOTSET)
