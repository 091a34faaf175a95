from collections.abc import Callable
from typing import Any

def as_hook(page_func: Callable[..., None]) -> Any: ...
