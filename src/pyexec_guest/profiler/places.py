"""Files by the shortest name that still says which."""

import os
import sys


class Places:
    """Knows the folders that need not be said: where the program runs, where it lies, where packages lie."""

    def __init__(self, script: str) -> None:
        packages = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
        folders = [os.getcwd(), os.path.dirname(os.path.abspath(script)), *packages, os.path.dirname(os.__file__)]
        # The longest first: packages lie below the standard library.
        self._folders = sorted({folder.rstrip(os.sep) + os.sep for folder in folders if folder}, key=len, reverse=True)
        self._known: dict[str, str] = {}

    def name(self, file: str) -> str:
        """Return a file's name without the folder it lies in, where that is known."""
        known = self._known.get(file)
        if known is None:
            known = next((file[len(folder) :] for folder in self._folders if file.startswith(folder)), file)
            self._known[file] = known
        return known
