"""What an operator may set about sandboxes, and what is in them when nobody says otherwise."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pyexec.domain.limits import SandboxLimits
from pyexec.domain.principals import is_called

WallName = Literal["host", "bubblewrap"]

WALLS: tuple[WallName, ...] = ("host", "bubblewrap")
"""What may stand between code and this machine; `host` is none."""

GUEST_NEEDS = ("ipython>=8.18",)
"""What the guest is made of; an environment for it has this, whatever else is wanted."""

FONTS = ("noto-cjk-sans-jp-regular==0.0.1", "noto-cjk-sans-jp-bold==0.0.1")
"""One font in two weights, under the Open Font License: all of Chinese, Japanese and Korean. Nothing of it is code."""

PACKAGES = (
    "numpy>=2.1",
    "pandas>=2.2.3",
    "polars>=1.9",
    "scipy>=1.14.1",
    "scikit-learn>=1.5.2",
    "statsmodels>=0.14.4",
    "matplotlib>=3.9.2",
    "seaborn>=0.13.2",
    "plotly>=5.24",
    "altair>=5.4",
    "pillow>=11",
    "duckdb>=1.1.1",
    "openpyxl>=3.1.5",
    "lxml>=5.3",
    "sympy>=1.13",
    "networkx>=3.3",
    *GUEST_NEEDS,
    *FONTS,
)
"""What sandboxes can import by default; each of these lower bounds has wheels for Python 3.12 and 3.13."""

PRELOADED = ("IPython", "numpy", "pandas", "matplotlib.pyplot")
"""The modules that sandboxes have imported already, where they are installed. They start no threads."""

OLDEST_PYTHON = (3, 12)
PYTHON = ">=3.12"
"""What sandboxes can run on."""

WAIVABLE: Mapping[str, str] = {"memory": "memory of a sandbox as a whole", "cpu": "processor time"}
"""The limits that an operator may do without where they cannot be had, and what each holds."""

DEFAULT = "default"
NONE = "none"
MOST_DATA = 32
_DATA_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_REQUIREMENT = re.compile(r"[A-Za-z0-9]|\.{0,2}/")
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFolder:
    """A folder of this machine that sandboxes can read, as `/data/<name>`; `owners` says whose (none: everybody's)."""

    name: str
    path: str
    owners: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Where it is in a sandbox."""
        return f"/data/{self.name}"

    def is_for(self, owner: str) -> bool:
        """Tell whether the sandboxes of an owner, as stored in records, have it."""
        return not self.owners or any(is_called(owner, name) for name in self.owners)


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSettings:
    """What an operator has set about sandboxes.

    Attributes:
        wall: What `execute_python` runs code behind; `host` only where that is said by name.
        limits: The limits of one sandbox, which nobody who uses it can raise.
        together: The memory of all together, in bytes; None: three quarters of what there is.
        ready: How many are kept ready.
        waiting_for_room: How many executions may wait until there is room for one more sandbox.
        patience: How long one waits for that at most, in seconds.
        packages: What can be imported, as requirements.
        preloaded: What is imported ahead; None: as much of `PRELOADED` as is installed.
        python: The interpreter: a version, a range or a path.
        waived: Limits that may be missing, of `WAIVABLE`.
        data: Folders of this machine that they can read.
    """

    wall: WallName = "bubblewrap"
    limits: SandboxLimits = field(default_factory=SandboxLimits)
    together: int | None = None
    ready: int = 2
    waiting_for_room: int = 1000
    patience: float = 600.0
    packages: tuple[str, ...] = PACKAGES
    preloaded: tuple[str, ...] | None = None
    python: str = PYTHON
    waived: tuple[str, ...] = ()
    data: tuple[DataFolder, ...] = ()


def parse_wall(text: str) -> WallName:
    """Read the name of a wall.

    Raises:
        ValueError: There is no such wall.
    """
    for name in WALLS:
        if text.strip().lower() == name:
            return name
    raise ValueError(f"no wall: {text!r}")


def parse_data(text: str) -> tuple[DataFolder, ...]:
    """Read `name=/path` with commas between them; behind a path, after `;` each, whom it is for. `none` is none.

    Raises:
        ValueError: A name or a path is none, or a name comes twice.
    """
    if text.strip().lower() == NONE:
        return ()
    found: dict[str, DataFolder] = {}
    for part in text.split(","):
        given, *owners = (piece.strip() for piece in part.split(";"))
        name, _, path = given.partition("=")
        if not _DATA_NAME.fullmatch(name) or not path.startswith("/") or "\0" in path or not all(owners):
            raise ValueError(f"no folder: {part!r}")
        if name in found:
            raise ValueError(f"twice: {name!r}")
        found[name] = DataFolder(name=name, path=path, owners=tuple(owners))
    if len(found) > MOST_DATA:
        raise ValueError("too many folders")
    return tuple(found.values())


def parse_packages(text: str) -> tuple[str, ...]:
    """Read requirements with spaces between them, in quotes where they have spaces; `default` stands for `PACKAGES`.

    Raises:
        ValueError: There is none, or one cannot be a requirement.
    """
    found: dict[str, None] = {}
    for part in shlex.split(text):
        if part.lower() == DEFAULT:
            found.update(dict.fromkeys(PACKAGES))
        elif _REQUIREMENT.match(part) and not part.endswith(","):
            found[part] = None
        else:
            raise ValueError(f"no requirement: {part!r}")
    if not found:
        raise ValueError("no requirement")
    found.update(dict.fromkeys(GUEST_NEEDS))
    return tuple(found)


def parse_preloaded(text: str) -> tuple[str, ...] | None:
    """Read names of modules with commas between them; `default` stands for `PRELOADED`, `none` for none.

    Returns: None for `default` alone: what of it is not installed is left out.

    Raises:
        ValueError: A name is none, or there is none at all.
    """
    names = [name for part in text.split(",") if (name := part.strip())]
    if [name.lower() for name in names] == [DEFAULT]:
        return None
    if [name.lower() for name in names] == [NONE]:
        return ()
    found: dict[str, None] = {}
    for name in names:
        if name.lower() == DEFAULT:
            found.update(dict.fromkeys(PRELOADED))
        elif _MODULE.fullmatch(name) and name.lower() != NONE:
            found[name] = None
        else:
            raise ValueError(f"no module: {name!r}")
    if not found:
        raise ValueError("no module")
    return tuple(found)


def parse_waived(text: str) -> tuple[str, ...]:
    """Read names of limits with commas between them; `none` stands for none.

    Raises:
        ValueError: There is no such limit.
    """
    names = {name for part in text.split(",") if (name := part.strip().lower())}
    if names == {NONE}:
        return ()
    if not names or names - WAIVABLE.keys():
        raise ValueError(f"no limit: {text!r}")
    return tuple(name for name in WAIVABLE if name in names)


def parse_python(text: str) -> str:
    """Read a version, a range or the path of an interpreter.

    Raises:
        ValueError: It is none of these, or a version that is too old.
    """
    wanted = text.strip()
    if wanted.startswith("/") or wanted[:1] in ("<", ">", "=", "!", "~"):
        return wanted
    if not re.fullmatch(r"\d+\.\d+(\.\d+)?", wanted):
        raise ValueError(f"no version: {text!r}")
    if tuple(int(part) for part in wanted.split(".")[:2]) < OLDEST_PYTHON:
        raise ValueError(f"too old: {text!r}")
    return wanted
