"""Sessions handed out: as a notebook, as a script, or as the lock of their packages; put among their files."""

import importlib
from dataclasses import dataclass
from typing import Literal

from anyio.to_thread import run_sync

from pyexec.domain.principals import Principal
from pyexec.sessions.cells import SessionHistory
from pyexec.sessions.files import SessionFiles
from pyexec.sessions.script_writing import lock_of, script_of

Format = Literal["ipynb", "script", "lock"]
FOLDER = "exports"
_SUFFIXES = {"ipynb": ".ipynb", "script": ".py", "lock": ".lock.txt"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """A file that was written among those of the session; `cells` is how many there are in it."""

    path: str
    size: int
    cells: int
    text: str


class SessionExport:
    """Exports sessions, for whom they belong to."""

    def __init__(self, history: SessionHistory, files: SessionFiles) -> None:
        self._history = history
        self._files = files

    async def export(self, principal: Principal, session_id: str, form: Format) -> Exported:
        """Write a session into a file of its own; an earlier one of the kind is replaced.

        Raises:
            NotFoundError: There is no such session.
            DiskFullError: The workspace is full.
        """
        text, cells = await run_sync(self._text, principal, session_id, form)
        path = f"{FOLDER}/{session_id}{_SUFFIXES[form]}"
        data = text.encode("utf-8", "backslashreplace")
        file = await self._files.write_bytes(principal, session_id, path, data, manner="replace")
        return Exported(path=file.path, size=file.size, cells=cells, text=text)

    def _text(self, principal: Principal, session_id: str, form: Format) -> tuple[str, int]:
        environment = self._history.environment(principal, session_id)
        if form == "lock":
            return lock_of(environment, session_id), 0
        cells = self._history.cells(principal, session_id)
        if form == "script":
            return script_of(cells, environment, session_id), len(cells)
        # It brings nbformat along, which nobody needs who exports nothing.
        writing = importlib.import_module("pyexec.sessions.notebook_writing")
        return writing.notebook_of(cells, environment), len(cells)
