"""Where the guest's program lies."""

from pathlib import Path

from pyexec_guest import protocol

GUEST_MAIN = Path(protocol.__file__).with_name("main.py")
"""What an interpreter is given to become a guest."""
