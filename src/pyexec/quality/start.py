"""A program of its own that starts a tool as `python -m` would: `start.py [--in-a-file SETTINGS] MODULE ARGS…`.

It runs isolated, so that what lies in the current folder is never imported in the tool's place. With `--in-a-file`
what stands on standard input is put into `source.py` in the execution's own folder, and the settings beside it.
"""

import os
import runpy
import sys
from pathlib import Path

IN_A_FILE = "--in-a-file"


def main() -> None:
    """Start it."""
    del sys.argv[0]
    if sys.argv[0] == IN_A_FILE:
        folder = Path(os.environ["PYEXEC_ARTIFACTS"])
        (folder / "source.py").write_bytes(sys.stdin.buffer.read())
        (folder / "pyrightconfig.json").write_text(sys.argv[1], encoding="utf-8")
        os.chdir(folder)
        del sys.argv[:2]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
