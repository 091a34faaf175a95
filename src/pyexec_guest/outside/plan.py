"""What the outer wall of a fork server is made of."""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Users:
    """A range of this machine's users that sandboxes are, one each: `first` is the fork server's own."""

    first: int
    count: int


@dataclass(frozen=True)
class Program:
    """Where bubblewrap is: `path` below `root`, and the folders below `root` that it needs beside it."""

    root: str
    path: str
    folders: "tuple[str, ...]" = ()


@dataclass(frozen=True)
class Plan:
    """The outer wall, whole. Paths are absolute.

    Attributes:
        bwrap: The program.
        binds: What of this machine's files can be read inside, as (here, inside).
        devices: Device nodes that are there under their own names.
        files: Small files made up, as (inside, text).
        links: Symbolic links, as (inside, target).
        environment: All environment variables of what is inside.
        command: What is run.
        users: Whom to become; None: this process's own user, which is not root.
        scratch_size: How much the fork server itself may put into its own /tmp, in bytes.
    """

    bwrap: Program
    binds: "tuple[tuple[str, str], ...]"
    devices: "tuple[str, ...]"
    files: "tuple[tuple[str, str], ...]"
    links: "tuple[tuple[str, str], ...]"
    environment: "tuple[tuple[str, str], ...]" = field(repr=False)
    command: "tuple[str, ...]"
    users: "Users | None"
    scratch_size: int

    def to_json(self) -> "dict[str, Any]":
        """Return the plan as what JSON can hold."""
        return asdict(self)

    @staticmethod
    def from_json(data: "dict[str, Any]") -> "Plan":
        """Return the plan that `to_json` has returned this for."""
        users = data["users"]
        bwrap = data["bwrap"]
        return Plan(
            bwrap=Program(bwrap["root"], bwrap["path"], tuple(bwrap["folders"])),
            binds=tuple((here, inside) for here, inside in data["binds"]),
            devices=tuple(data["devices"]),
            files=tuple((inside, text) for inside, text in data["files"]),
            links=tuple((inside, target) for inside, target in data["links"]),
            environment=tuple((name, value) for name, value in data["environment"]),
            command=tuple(data["command"]),
            users=None if users is None else Users(users["first"], users["count"]),
            scratch_size=data["scratch_size"],
        )
