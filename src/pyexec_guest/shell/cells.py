"""Cells keep their lines: an error is reported where the user wrote it."""

from collections.abc import Callable
from typing import Any

from IPython.core import inputtransformer2
from IPython.core.compilerop import CachingCompiler

PREFIX = "<cell "

Lines = "list[str]"


class CellCompiler(CachingCompiler):
    """Calls the code of a cell `<cell 3>`."""

    def get_code_name(self, raw_code: str, transformed_code: str, number: int) -> str:
        """Return what stands for a file name in tracebacks."""
        return f"{PREFIX}{number}>"


def keep_lines(manager: "inputtransformer2.TransformerManager") -> None:
    """Have a shell's transformers of magics and commands leave as many lines as there were."""
    manager.cleanup_transforms = [
        _leading_empty_lines if transform is inputtransformer2.leading_empty_lines else transform
        for transform in manager.cleanup_transforms
    ]
    manager.token_transformers = [_padded(transformer) for transformer in manager.token_transformers]


def _leading_empty_lines(lines: "list[str]") -> "list[str]":
    """Leave empty lines where they are, but for those before a magic that must stand first."""
    stripped = inputtransformer2.leading_empty_lines(lines)
    return stripped if stripped and stripped[0].startswith("%%") else lines


def _padded(transformer: Any) -> Any:
    """Make up for the lines that a transformer joins."""
    plain: Callable[[Any, list[str]], list[str]] = transformer.transform

    def transform(self: Any, lines: "list[str]") -> "list[str]":
        changed = plain(self, lines)
        missing = len(lines) - len(changed)
        if missing <= 0:
            return changed
        at = self.start_line + 1
        return [*changed[:at], *(["\n"] * missing), *changed[at:]]

    return type(transformer.__name__, (transformer,), {"transform": transform})
