"""A program that a sandbox runs as `python` would: a script or a module in a folder that can only be read."""

import os
import runpy
import sys
from contextlib import suppress
from typing import Any, cast

MOST_LINKS = 2000


class Program:
    """What a request names besides code or instead of it: `script` (a path) or `module`, `args`, and their `folder`."""

    def __init__(self, asked: "dict[str, Any]") -> None:
        self.folder = str(asked.get("folder") or "")
        self.script = str(asked.get("script") or "")
        self.module = str(asked.get("module") or "")
        given = asked.get("args")
        self.args = [str(one) for one in cast("list[object]", given)] if isinstance(given, list) else []

    @property
    def runs(self) -> bool:
        """Whether there is a program; else the code of the request is run in its folder."""
        return bool(self.script or self.module)

    def settle_in(self) -> None:
        """Have what is in the folder be in the working directory too, so that the program finds it by its name."""
        sys.argv = [self.script or self.module or "-c", *self.args]
        if not self.folder:
            return
        with suppress(OSError):
            names = sorted(os.listdir(self.folder))
            for name in names[:MOST_LINKS]:
                with suppress(OSError):
                    os.symlink(os.path.join(self.folder, name), name)
        sys.path[:0] = [os.path.dirname(self.script) if self.script else self.folder]

    def run(self, namespace: "dict[str, Any]") -> None:
        """Run it, as the main program."""
        if self.module:
            runpy.run_module(self.module, run_name="__main__", alter_sys=True)
        elif os.path.isfile(self.script) and self.script.endswith((".py", ".pyw")):
            with open(self.script, "rb") as file:
                code = compile(file.read(), self.script, "exec")
            namespace["__file__"] = self.script
            exec(code, namespace)  # noqa: S102 - its purpose
        else:
            runpy.run_path(self.script, run_name="__main__")
