"""Programs of the guest's package that run around a user's program."""

from pathlib import Path

import pyexec_guest.profiler

PROFILER = Path(pyexec_guest.profiler.__file__).parent / "main.py"
"""Measures a program: `python PROFILER MODE FILE [ARGS]`."""
