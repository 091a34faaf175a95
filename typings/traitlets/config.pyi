from typing import Any

class Config:
    def __getattr__(self, name: str) -> Any: ...
