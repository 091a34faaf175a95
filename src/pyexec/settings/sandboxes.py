"""The variables by which an operator sets what sandboxes are like."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from pyexec.domain.errors import InvalidArgumentError
from pyexec.domain.limits import MEGABYTE, SandboxLimits
from pyexec.domain.sandboxes import (
    DEFAULT,
    MOST_DATA,
    PYTHON,
    WAIVABLE,
    WALLS,
    SandboxSettings,
    parse_data,
    parse_packages,
    parse_preloaded,
    parse_python,
    parse_waived,
    parse_wall,
)
from pyexec.settings.reading import Variable, number, whole

SMALLEST_MB = 128
"""Less is not enough for what is imported ahead, and a little work."""

SANDBOX_VARIABLES: tuple[Variable, ...] = (
    Variable(
        name="PYEXEC_WALL",
        meaning="What stands between the code of `execute_python` and this machine; `host` is nothing.",
        default="bubblewrap",
        allowed=" or ".join(WALLS),
        read=parse_wall,
        limit="wall",
    ),
    Variable(
        name="PYEXEC_SANDBOX_MEMORY",
        meaning="Memory of one sandbox, its files included, in MB.",
        default="512",
        allowed=f"a whole number between {SMALLEST_MB} and 1000000",
        read=whole(SMALLEST_MB, 1_000_000, MEGABYTE),
        limit="memory",
    ),
    Variable(
        name="PYEXEC_SANDBOX_CPU",
        meaning="Processors' worth of time of one sandbox.",
        default="0.5",
        allowed="a number between 0.05 and 1024",
        read=number(0.05, 1024),
        limit="cpu",
    ),
    Variable(
        name="PYEXEC_SANDBOX_PROCESSES",
        meaning="Processes, threads included, of one sandbox.",
        default="64",
        allowed="a whole number between 8 and 30000",
        read=whole(8, 30_000),
        limit="processes",
    ),
    Variable(
        name="PYEXEC_SANDBOX_OPEN_FILES",
        meaning="Open files of one process in a sandbox.",
        default="256",
        allowed="a whole number between 64 and 1000000",
        read=whole(64, 1_000_000),
        limit="open_files",
    ),
    Variable(
        name="PYEXEC_SANDBOX_WORKSPACE",
        meaning="What the folder of a sandbox, `/work`, holds, in MB.",
        default="256",
        allowed="a whole number between 1 and 1000000",
        read=whole(1, 1_000_000, MEGABYTE),
        limit="workspace",
    ),
    Variable(
        name="PYEXEC_SANDBOX_TMP",
        meaning="What `/tmp` of a sandbox holds, and `/dev/shm` likewise, in MB.",
        default="64",
        allowed="a whole number between 1 and 1000000",
        read=whole(1, 1_000_000, MEGABYTE),
        limit="temporary",
    ),
    Variable(
        name="PYEXEC_SANDBOXES_MEMORY",
        meaning="Memory of all sandboxes together, in MB; at least that of one.",
        default="three quarters of what the machine, or the control group of pyexec, has",
        allowed="a whole number between 256 and 1000000000",
        read=whole(SMALLEST_MB, 10**9, MEGABYTE),
        limit="together",
    ),
    Variable(
        name="PYEXEC_SANDBOX_READY",
        meaning="How many sandboxes are kept ready, so that code need not wait for one.",
        default="2",
        allowed="a whole number between 0 and 64",
        read=whole(0, 64),
        limit="ready",
    ),
    Variable(
        name="PYEXEC_SANDBOXES_WAITING",
        meaning="How many executions may wait while there is no room for one more sandbox; more are refused.",
        default="1000",
        allowed="a whole number between 0 and 100000",
        read=whole(0, 100_000),
        limit="waiting_for_room",
    ),
    Variable(
        name="PYEXEC_SANDBOXES_WAIT_SECONDS",
        meaning="How long one of them waits at most.",
        default="600",
        allowed="a number between 1 and 86400",
        read=number(1, 86_400),
        limit="patience",
    ),
    Variable(
        name="PYEXEC_SANDBOX_PACKAGES",
        meaning="What sandboxes can import, as requirements; `default` stands for the usual list, to which others add.",
        default=DEFAULT,
        allowed="requirements with spaces between them, each in quotes if it has spaces itself, or default",
        read=parse_packages,
        limit="packages",
    ),
    Variable(
        name="PYEXEC_SANDBOX_PRELOAD",
        meaning="What sandboxes have imported already when they start; nothing that starts threads.",
        default=DEFAULT,
        allowed="names of modules with commas between them, default, or none",
        read=parse_preloaded,
        limit="preloaded",
    ),
    Variable(
        name="PYEXEC_SANDBOX_PYTHON",
        meaning="The Python of sandboxes.",
        default=PYTHON,
        allowed="a version from 3.12 on, a range such as '>=3.12,<3.14', or an absolute path to an interpreter",
        read=parse_python,
        limit="python",
    ),
    Variable(
        name="PYEXEC_SANDBOX_DATA",
        meaning="Folders of this machine that sandboxes can read, as `/data/<name>`.",
        default="none",
        allowed=f"name=/path with commas between them, {MOST_DATA} at most, each followed by ;user for those it is for",
        read=parse_data,
        limit="data",
    ),
    Variable(
        name="PYEXEC_SANDBOX_WAIVE",
        meaning="Limits that sandboxes may lack where they cannot be had; every result then says so.",
        default="none",
        allowed=f"names with commas between them, of {', '.join(WAIVABLE)}; or none",
        read=parse_waived,
        limit="waived",
    ),
)


def sandbox_settings(given: Mapping[str, Any]) -> SandboxSettings:
    """Return the settings of sandboxes with what is given, by the names of their values.

    Raises:
        InvalidArgumentError: Two values contradict each other.
    """
    limits = {field.name for field in fields(SandboxLimits)}
    own = {field.name for field in fields(SandboxSettings)} - {"limits"}
    found = SandboxSettings(
        limits=replace(SandboxLimits(), **{name: value for name, value in given.items() if name in limits}),
        **{name: value for name, value in given.items() if name in own},
    )
    if found.together is not None and found.together < found.limits.memory:
        raise InvalidArgumentError(
            f"PYEXEC_SANDBOXES_MEMORY is {found.together // MEGABYTE}; it must be at least what one sandbox may have, "
            f"{found.limits.memory // MEGABYTE} (PYEXEC_SANDBOX_MEMORY).",
            hint=next(one.meaning for one in SANDBOX_VARIABLES if one.limit == "together"),
        )
    return found
