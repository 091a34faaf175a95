"""Programs of ours that run in the user's Python, in place of a program or around it."""

from pathlib import Path

import pyexec_guest

_GUEST = Path(pyexec_guest.__path__[0])

NOTEBOOK = _GUEST / "notebook.py"
"""Runs a notebook: `python NOTEBOOK PATH [ARGS]...`; needs nbclient and ipykernel."""

PROFILER = _GUEST / "profiler" / "main.py"
"""Measures a program: `python PROFILER MODE FILE [ARGS]...`."""
