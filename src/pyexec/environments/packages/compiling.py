"""Compiling to bytecode: sources are parsed, nothing is imported, and no file that Python reads at its start counts."""

import os
import resource
from collections.abc import Generator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from pyexec.processes.commands import run_tool

INSIDE = "/packages"
"""Where the files lie in a sandbox; tracebacks name them so."""

_PROGRAM = ("-I", "-S", "-B", "-m", "compileall", "-q", "-q", "--invalidation-mode", "unchecked-hash")
# Starting more processes takes as long as compiling so many modules.
_MODULES_FOR_ONE = 200
_MEMORY = 2 * 1024**3
_CPU_SECONDS = 600


def compile_files(python: str, root: Path) -> None:
    """Compile all modules below a folder, as far as that can be done: what cannot be is compiled when it is imported.

    Args:
        python: The interpreter that sandboxes run on, which is what the bytecode is for; it starts without `site`.
        root: The folder; nothing in it may be a link.
    """
    few = sum(1 for _ in islice(root.rglob("*.py"), _MODULES_FOR_ONE)) < _MODULES_FOR_ONE
    with _limited():
        run_tool(
            [python, *_PROGRAM, "-j", "1" if few else "0", "-s", str(root), "-p", INSIDE, str(root)],
            env={"PATH": os.defpath},
            cwd="/",
        )


@contextmanager
def _limited() -> Generator[None]:
    """Limit what a source can make a parser use, which is inherited."""
    before = {kind: resource.getrlimit(kind) for kind in (resource.RLIMIT_AS, resource.RLIMIT_CPU)}
    wanted = {
        resource.RLIMIT_AS: _MEMORY,
        resource.RLIMIT_CPU: int(resource.getrusage(resource.RUSAGE_SELF).ru_utime) + _CPU_SECONDS,
    }
    for kind, most in wanted.items():
        hard = before[kind][1]
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    try:
        yield
    finally:
        for kind, limits in before.items():
            resource.setrlimit(kind, limits)
