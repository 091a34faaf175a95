"""Where this process's own control groups are."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field

_UNIFIED = ""
_OWN = "/proc/self"


@dataclass(frozen=True)
class OwnGroups:
    """The folders of this process's own groups.

    Attributes:
        version1: By controller.
        version2: Of the unified tree; None where it is not mounted, or not as far as this process is in it.
        version2_top: Where that tree is mounted: nothing above it can be seen.
    """

    version1: "dict[str, str]" = field(default_factory=dict)
    version2: "str | None" = None
    version2_top: str = ""


def own_groups(process: str = _OWN) -> OwnGroups:
    """Return where the groups of a process are.

    Args:
        process: Its folder in /proc.
    """
    with open(os.path.join(process, "cgroup"), encoding="utf-8") as file:
        own = dict(_memberships(file.read()))
    version1: dict[str, str] = {}
    version2: str | None = None
    top = ""
    with open(os.path.join(process, "mountinfo"), encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            fields = line.split()
            dash = fields.index("-")
            kind, options = fields[dash + 1], fields[dash + 3]
            if kind == "cgroup":
                for controller in options.split(","):
                    folder = _below(own.get(controller), fields[3], fields[4])
                    if folder is not None:
                        version1[controller] = folder
            elif kind == "cgroup2":
                folder = _below(own.get(_UNIFIED), fields[3], fields[4])
                if folder is not None:
                    version2, top = folder, _place(fields[4])
    return OwnGroups(version1, version2, top)


def _memberships(text: str) -> "Iterator[tuple[str, str]]":
    for line in text.splitlines():
        _, kinds, path = line.split(":", 2)
        for kind in kinds.split(","):
            yield kind, path


def _below(path: "str | None", root: str, place: str) -> "str | None":
    """Return where a group is, of a tree of which the part from `root` on is mounted."""
    # The tree begins above what this process can name: a machine's, in a container with a namespace of its own.
    if path is None or root.startswith("/.."):
        return None
    inside = os.path.relpath(path, _place(root))
    return None if inside.startswith("..") else os.path.normpath(os.path.join(_place(place), inside))


def _place(escaped: str) -> str:
    return escaped.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
