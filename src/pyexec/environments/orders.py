"""What the server tells the program that makes an environment, and what that one answers.

The order goes through a pipe, since it may hold credentials: it is never on disk nor on a command line. The answer is
a file in the execution's folder.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

from pyexec.storage.json_files import read_json, write_text

ANSWER = "environment.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOrder:
    """An environment to make, and for whom.

    Attributes:
        root: The folder that environments lie in.
        uv: The program.
        key: The key of the request; None when it cannot be remembered, since its Python is not here yet.
        python: The path of an interpreter, or a version for uv to fetch.
        python_version: The version of the interpreter, where it is here.
        python_here: The versions that are here instead, where it is not.
        requirements, editables, constraints, options, index_url, paths: As in `EnvironmentRequest`.
        project, project_lock: The folder and the lock of a project whose lock counts before `requirements`.
        cwd: The folder that uv works in, which says whose settings count.
        digest, lock: The environment and what is in it, where both are known; nothing is resolved then.
        fresh_seconds: How old a resolution may be.
        folder: The execution's folder, for the answer.
        holder, holder_lock: Who leases the environment, see `EnvironmentStore.lease`.
        name, owner, asked: The name to give to the environment, who gives it, and what they asked for.
        link: For packages of our tools, a link to make to the folder they lie in; the answer does not tell of them.
            Without a `python` they are for the one of the order before.
        lacking: What to say first when they cannot be had.
    """

    root: str
    uv: str
    key: str | None
    python: str
    python_version: str | None
    python_here: tuple[str, ...] = ()
    requirements: tuple[str, ...] = field(default=(), repr=False)
    editables: tuple[str, ...] = ()
    constraints: tuple[str, ...] = field(default=(), repr=False)
    options: tuple[str, ...] = ()
    index_url: str | None = field(default=None, repr=False)
    paths: tuple[str, ...] = ()
    project: str | None = None
    project_lock: str | None = None
    cwd: str = "/"
    digest: str | None = None
    lock: str | None = None
    fresh_seconds: float
    folder: str
    holder: str
    holder_lock: str
    name: str | None = None
    owner: str = ""
    asked: tuple[str, ...] = ()
    link: str | None = None
    lacking: str = ""

    def to_json(self) -> str:
        """Return the order as one line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "BuildOrder":
        """Read an order."""
        values: dict[str, Any] = json.loads(text)
        return cls(**{name: _frozen(value) for name, value in values.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an execution runs in, or why nothing could be made.

    Attributes:
        digest: The environment; None where the interpreter runs as it is.
        python: The interpreter to run the program with, where that was not known before.
        python_version: The version of Python.
        packages: What is installed; None when nothing was asked for.
        notes: What the reader of the result should know, a sentence each.
        package_set, package_folder, package_list: What was put together for a sandbox besides: its name, where its
            files lie, and what it is.
        failure, failure_detail: Why there is none, in one sentence; and all that was said.
    """

    digest: str | None = None
    python: str | None = None
    python_version: str | None = None
    packages: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()
    package_set: str | None = None
    package_folder: str | None = None
    package_list: tuple[str, ...] | None = None
    failure: str | None = None
    failure_detail: str | None = None


def read_answer(folder: Path) -> Answer:
    """Return what an execution's folder says about its environment; nothing before that is known."""
    values: Mapping[str, Any] = read_json(folder / ANSWER)
    return Answer(
        digest=values.get("digest"),
        python=values.get("python"),
        python_version=values.get("python_version"),
        packages=_frozen(values.get("packages")),
        notes=tuple(values.get("notes", ())),
        package_set=values.get("package_set"),
        package_folder=values.get("package_folder"),
        package_list=_frozen(values.get("package_list")),
        failure=values.get("failure"),
        failure_detail=values.get("failure_detail"),
    )


def write_answer(folder: Path, answer: Answer) -> None:
    """Put the answer into an execution's folder."""
    write_text(folder / ANSWER, answer_text(answer))


def answer_text(answer: Answer) -> str:
    """Return what is put there."""
    return json.dumps({name: value for name, value in asdict(answer).items() if value is not None})


def _frozen(value: Any) -> Any:
    return tuple(cast("list[Any]", value)) if isinstance(value, list) else value
