from collections.abc import Callable
from typing import Any, TypeAlias

Transform: TypeAlias = Callable[[list[str]], list[str]]

class TransformerManager:
    cleanup_transforms: list[Transform]
    token_transformers: list[Any]

def leading_empty_lines(lines: list[str]) -> list[str]: ...
