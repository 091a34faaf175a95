"""Measure a guest alone, by an interpreter that has IPython: `guest.py <folder of pyexec_guest> <rounds>`; prints JSON.

`cells` is from a request to the last word on it, `ipython` the same code run by IPython with nothing around it; both
in seconds, taken in turns.
"""

import contextlib
import io
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

WARM_UPS = 50
PAUSE = 0.002
"""Between two cells, in seconds: nobody sends them one after the other without a pause."""

_LENGTH = struct.Struct(">I")


class Guest:
    """A guest in a process of its own."""

    def __init__(self, package: Path, folder: str) -> None:
        self._socket, theirs = socket.socketpair()
        environ = {**os.environ, "PYEXEC_CHANNEL": str(theirs.fileno())}
        command = [sys.executable, str(package / "main.py")]
        self.process = subprocess.Popen(
            command, env=environ, cwd=folder, pass_fds=[theirs.fileno()], stdout=subprocess.DEVNULL
        )
        theirs.close()
        self._reader = self._socket.makefile("rb")
        self._frame()

    def run(self, code: str) -> None:
        """Run a cell."""
        body = json.dumps({"op": "run", "turn": "a" * 32, "code": code}).encode()
        self._socket.sendall(_LENGTH.pack(len(body)) + body)
        frame = self._frame()
        assert frame["status"] == "ok", frame

    def _frame(self) -> dict[str, object]:
        (size,) = _LENGTH.unpack(self._reader.read(_LENGTH.size))
        return json.loads(self._reader.read(size))


def main(package: Path, rounds: int) -> dict[str, list[float]]:
    config = Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell.instance(config=config)
    found: dict[str, list[float]] = {"cells": [], "ipython": []}
    with tempfile.TemporaryDirectory() as folder:
        guest = Guest(package, folder)
        try:
            _measure(guest, shell, rounds, found)
        finally:
            guest.process.kill()
            guest.process.wait()
    return found


def _measure(guest: Guest, shell: InteractiveShell, rounds: int, found: dict[str, list[float]]) -> None:
    for number in range(rounds + WARM_UPS):
        code = f"1 + {number}"
        started = time.perf_counter()
        guest.run(code)
        taken = time.perf_counter() - started
        time.sleep(PAUSE)
        started = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()):
            shell.run_cell(code, store_history=True)
        if number >= WARM_UPS:
            found["ipython"].append(time.perf_counter() - started)
            found["cells"].append(taken)
        time.sleep(PAUSE)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]))))
