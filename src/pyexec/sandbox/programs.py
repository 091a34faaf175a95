"""Programs of ours that run inside an environment, in place of the user's script or around it."""

from pathlib import Path

import pyexec_guest

NOTEBOOK = Path(pyexec_guest.__path__[0]) / "notebook.py"
"""Runs a notebook: `python NOTEBOOK PATH [ARGS]...`; needs nbclient and ipykernel."""
