"""Packages that a sandbox is given besides those of its environment: found after all others, and when they come."""

import importlib
import os
import sys

FOLDER = "/packages"


class AddedPackages:
    """The folder of such packages, which the outside may put more into while this process lives.

    Nothing in it counts but what is imported: no path file in it is read.
    """

    def __init__(self, folder: str = FOLDER) -> None:
        self._folder = folder
        self._seen: int | None = None

    def begin(self) -> None:
        """Have its modules be found, here and in the processes that the program starts; if there is such a folder."""
        self._seen = self._changed()
        if self._seen is None or self._folder in sys.path:
            return
        sys.path.append(self._folder)
        paths = [os.environ.get("PYTHONPATH"), self._folder]  # noqa: TID251 - what the program's own children get
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))  # noqa: TID251 - as above

    def look(self) -> None:
        """See whether packages have come, which is told by the folder: they are told of in it last."""
        changed = self._changed()
        if changed != self._seen:
            self._seen = changed
            importlib.invalidate_caches()

    def _changed(self) -> "int | None":
        try:
            return os.stat(self._folder).st_mtime_ns
        except OSError:
            return None
