"""Asking an interpreter what it is."""

import subprocess
from pathlib import Path

PROBE_SECONDS = 10.0
_QUESTION = "import sys; print(*sys.version_info[:3])"


def python_version(interpreter: Path) -> tuple[int, int, int] | None:
    """Start an interpreter and return its version; None when it does not start or does not answer like one."""
    try:
        answer = subprocess.run(
            [interpreter, "-I", "-S", "-c", _QUESTION],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=PROBE_SECONDS,
            check=True,
        ).stdout
        major, minor, micro = (int(part) for part in answer.split())
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return major, minor, micro
