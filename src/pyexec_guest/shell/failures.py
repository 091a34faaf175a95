"""What went wrong in a cell, told by the user's own lines."""

import os
import sys
import traceback
from types import TracebackType
from typing import Any

from pyexec_guest.shell.cells import PREFIX
from pyexec_guest.text import clip, describe

TRACEBACK_CHARACTERS = 20_000
MESSAGE_CHARACTERS = 4_000
_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def failure_of(error: BaseException) -> "dict[str, Any]":
    """Return an exception as data: its type, its message, its traceback, the line of the cell it points to."""
    described = describe(error, MESSAGE_CHARACTERS)
    name = type(error).__name__
    return {
        "type": name,
        "message": described.removeprefix(name).removeprefix(": "),
        "traceback": clip(_traceback(error), TRACEBACK_CHARACTERS),
        "line": _line(error),
    }


def _traceback(error: BaseException) -> str:
    if type(error).__name__ == "UsageError":  # A magic that was called wrong; where that is checked helps nobody.
        return describe(error) + "\n"
    try:
        told = traceback.TracebackException.from_exception(error)
        seen: set[int] = set()
        _trim(told, seen)
        return "".join(told.format())
    except Exception as failure:  # noqa: BLE001 - exceptions may be anything
        return f"{describe(error)}\n(its traceback cannot be shown: {describe(failure)})\n"


def _trim(told: "traceback.TracebackException", seen: "set[int]") -> None:
    """Drop the frames above the user's code: those of IPython and ours. Chained exceptions too."""
    if id(told) in seen:
        return
    seen.add(id(told))
    frames = told.stack
    first = next((at for at, frame in enumerate(frames) if frame.filename.startswith(PREFIX)), None)
    if first is None:
        # Nothing of the user's: a SyntaxError, or an error of a magic, of which the end says most.
        first = len(frames) if isinstance_of_syntax(told) else _first_foreign(frames)
    told.stack = traceback.StackSummary.from_list([one for one in frames[first:] if not one.filename.startswith(_OWN)])
    for other in (told.__cause__, told.__context__, *(getattr(told, "exceptions", None) or ())):
        if other is not None:
            _trim(other, seen)


def isinstance_of_syntax(told: "traceback.TracebackException") -> bool:
    """Tell whether it is a SyntaxError, which has its position in itself."""
    return getattr(told, "text", None) is not None or getattr(told, "msg", None) is not None


def _first_foreign(frames: "traceback.StackSummary") -> int:
    ours = (_OWN, os.path.dirname(os.path.abspath(sys.modules["IPython"].__file__ or "")))
    return next((at for at, frame in enumerate(frames) if not frame.filename.startswith(ours)), len(frames))


def _line(error: BaseException) -> "int | None":
    if isinstance(error, SyntaxError) and str(error.filename).startswith(PREFIX):
        return error.lineno
    line = None
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.startswith(PREFIX):
            line = trace.tb_lineno
            break
        trace = trace.tb_next
    return line
