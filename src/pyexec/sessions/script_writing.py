"""A session as a script: its cells behind `# %%`, its packages in a header."""

import ast
import json
import warnings
from collections.abc import Sequence

from pyexec.environments.locked import read_lock
from pyexec.sessions.cells import Cell, SessionEnvironment
from pyexec.sessions.magics import as_python

LONGEST_READ = 200_000
"""A cell of more characters is not looked into."""

_NEEDS_IPYTHON = "# It uses what only IPython understands: run it with `ipython`, under a name that ends with .ipy."
_UNREAD = (SyntaxError, ValueError, RecursionError, MemoryError)


def script_of(cells: Sequence[Cell], environment: SessionEnvironment, session_id: str) -> str:
    """Return cells as the source of a script that any Python can read.

    Cells that did not end well are there as comments, and so are those that are no Python even with IPython's syntax
    written out.
    """
    written = [_Written(cell) for cell in cells]
    head = [*_header(environment), f"# The cells of session {session_id}, in the order in which they ran."]
    if any(one.needs_ipython for one in written):
        head.append(_NEEDS_IPYTHON)
    return "\n\n".join(["\n".join(head), *(one.text for one in written)]) + "\n"


def lock_of(environment: SessionEnvironment, session_id: str) -> str:
    """Return the packages of a session as a requirements file with hashes."""
    return (
        f"# The packages of session {session_id}, for Python {environment.python_version}.\n"
        f"# `uv pip install --require-hashes -r` this file puts exactly these into an environment.\n"
        f"{environment.lock.rstrip()}\n"
    )


class _Written:
    """A cell as text of a script."""

    def __init__(self, cell: Cell) -> None:
        count = "" if cell.execution_count is None else f" [{cell.execution_count}]"
        self.needs_ipython = False
        self.text = f"# %%{count}\n{self._body(cell)}".rstrip()

    def _body(self, cell: Cell) -> str:
        if cell.went_wrong is not None:
            return _commented(f"This cell {cell.went_wrong}:", cell.code)
        python = as_python(cell.code)
        if len(python) > LONGEST_READ or (needs := _await_in(python)) is None:
            return _commented("This cell cannot be written as Python:", cell.code)
        self.needs_ipython = needs or "get_ipython()" in python
        return python.strip("\n")


def _await_in(source: str) -> bool | None:
    """Tell whether Python awaits at its top level; None where it is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(source)
        except _UNREAD:
            return None
        try:
            compile(tree, "cell", "exec", dont_inherit=True)
        except _UNREAD:
            flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        else:
            return False
        try:
            compile(tree, "cell", "exec", flags=flags, dont_inherit=True)
        except _UNREAD:
            return None
    return True


def _commented(sentence: str, code: str) -> str:
    # Not only the line ends of Python, whose tokenizer knows a form feed as a blank.
    lines = code.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\\0").strip("\n").split("\n")
    return "\n".join([f"# {sentence}", *(f"#     {line}".rstrip() for line in lines)])


def _header(environment: SessionEnvironment) -> list[str]:
    """Return the lines of a PEP 723 header, by which `uv run` and we ourselves give a script its packages."""
    pinned = [line.text for line in read_lock(environment.lock) if line.distribution is not None]
    version = ".".join(environment.python_version.split(".")[:2])
    lines = ["# /// script", f'# requires-python = "=={version}.*"', "# dependencies = ["]
    return [*lines, *(f"#   {json.dumps(one)}," for one in pinned if "://" not in one), "# ]", "# ///"]
