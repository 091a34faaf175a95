"""How the interpreter of an execution is chosen; by itself, since the program that makes environments needs no more."""

from typing import Literal

Strategy = Literal["uv-run", "system-python"]
