"""What can be measured of a program, by which tool, and what measuring costs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from pyexec.domain.executions import Harness
from pyexec.sandbox.programs import PROFILER

Mode = Literal["time", "calls", "memory"]
Unit = Literal["seconds", "bytes"]
MODES: tuple[Mode, ...] = get_args(Mode)
KIND = "profile"

_LACKING = "{tool} could not be installed beside the program; {where}, and mode='calls' needs no package."


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """The tool of a mode.

    Attributes:
        package: Its requirement; None where Python brings it along.
        unit: What it measures in.
        overhead: What measuring costs and what it does not see, in a sentence.
        where: Where it is to be had.
    """

    package: str | None
    unit: Unit
    overhead: str
    where: str = ""


TOOLS: Mapping[Mode, Tool] = {
    "time": Tool(
        package="pyinstrument>=5,<6",
        unit="seconds",
        overhead="pyinstrument looks at the stack of the main thread each millisecond, and makes loops hardly "
        "slower, many small calls up to 8 times; other threads and child processes are not seen.",
        where="pyinstrument has wheels for CPython from 3.8 on",
    ),
    "calls": Tool(
        package=None,
        unit="seconds",
        overhead="cProfile counts every call and makes many small calls up to 6 times slower, so small functions look "
        "dearer than they are; other threads (mostly) and child processes are not seen.",
    ),
    "memory": Tool(
        package="memray>=1.19,<2",
        unit="bytes",
        overhead="memray records the allocations of all threads and makes programs 2 to 5 times slower; rows say what "
        "held memory when most was held, objects below 512 bytes by the arena of Python they lie in; child processes "
        "are not seen.",
        where="memray has wheels for CPython from 3.8 on, on Linux and macOS",
    ),
}


def harness_for(mode: Mode) -> Harness:
    """Return what goes around a program so that it is measured."""
    tool = TOOLS[mode]
    if tool.package is None:
        return Harness(options=(str(PROFILER), mode))
    lacking = _LACKING.format(tool=tool.package.partition(">")[0], where=tool.where)
    return Harness(options=(str(PROFILER), mode), packages=(tool.package,), lacking=lacking)
