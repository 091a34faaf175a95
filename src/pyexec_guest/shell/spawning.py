"""Worker processes that start anew find what the session has defined."""

import ast
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from typing import Any

_DEFINITIONS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Spawning:
    """Gives workers of `multiprocessing` a module with the definitions of all cells, and nothing that does something.

    A script is its own such module. A session has none, and its workers would die and be started anew for ever.
    """

    def __init__(self, inputs: "Callable[[], list[str]]") -> None:
        self._inputs = inputs
        self._path: str | None = None
        self._owner = os.getpid()

    def patch(self, spawn: Any) -> None:
        """Have `multiprocessing.spawn` tell workers of the module."""
        plain: Callable[[str], dict[str, Any]] = spawn.get_preparation_data

        def get_preparation_data(name: str) -> "dict[str, Any]":
            data = plain(name)
            if "init_main_from_name" not in data and "init_main_from_path" not in data:
                data["init_main_from_path"] = self._write()
            return data

        spawn.get_preparation_data = get_preparation_data

    def _write(self) -> str:
        if self._path is None:
            fd, self._path = tempfile.mkstemp(prefix="pyexec-cells-", suffix=".py")
            os.close(fd)
        with open(self._path, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(definitions(self._inputs()))
        return self._path

    def remove(self) -> None:
        """Remove the module at the end of the session."""
        if self._path is not None and os.getpid() == self._owner:
            with suppress(OSError):
                os.unlink(self._path)


def definitions(cells: "list[str]") -> str:
    """Return the imports, functions, classes and plain constants of some cells, each on its own: one may fail."""
    first: list[ast.stmt] = []
    kept: list[ast.stmt] = []
    for cell in cells:
        try:
            tree = ast.parse(cell)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                first.append(node)
            elif isinstance(node, _DEFINITIONS) or _is_constant(node):
                handler = ast.ExceptHandler(type=ast.Name("Exception", ast.Load()), name=None, body=[ast.Pass()])
                kept.append(ast.Try(body=[node], handlers=[handler], orelse=[], finalbody=[]))
    return ast.unparse(ast.fix_missing_locations(ast.Module(body=[*first, *kept], type_ignores=[])))


def _is_constant(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
