"""What a call asks for, and the way it is to be run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyexec.domain.strategies import Strategy
from pyexec.environments.store import Environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a call asks for, as far as it matters for the way it is run.

    Attributes:
        script: The script; a relative path starts at `directory`. None where a module is run.
        module: The module to run, as `python -m` does.
        header_source: What may have a header: the script's content; empty for a module.
        tools: Packages that it is run with besides its own; only with uv.
        args: Its arguments.
        use_uv: Whether there may be packages; else it runs on `python3` or `python` on PATH, as that is.
        python_version: A version, a range or a path; only with uv.
        dependencies: Requirements besides those of the header; only with uv.
        constraints: Versions that must not be left; only with uv.
        index_url: The package index to use in place of the usual one; only with uv.
        environment: The name of an environment to run in; only with uv.
        keep_as: A name to give to the environment.
        directory: The folder the script is run in; local paths among `dependencies` start there.
        project: Whether a project at `directory` or above counts; false for inline code, which belongs to none.
        owner: Whose named environments count.
        environ: The variables the script gets: uv's settings among them count.
        folder: A folder for the answer of what prepares it.
        holder_lock: The lock, in the execution's own folder, that says it lives.
        beside: Packages of a tool of ours that run beside the program, which does not see them.
        beside_lacking: What to say when they cannot be had.
    """

    script: Path | None
    module: str | None = None
    header_source: bytes = field(repr=False)
    tools: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    use_uv: bool = True
    python_version: str | None = None
    dependencies: tuple[str, ...] = field(default=(), repr=False)
    constraints: tuple[str, ...] = field(default=(), repr=False)
    index_url: str | None = field(default=None, repr=False)
    environment: str | None = None
    keep_as: str | None = None
    directory: Path
    project: bool = True
    owner: str
    environ: Mapping[str, str] = field(repr=False)
    folder: Path
    holder_lock: Path
    beside: tuple[str, ...] = ()
    beside_lacking: str = ""

    @property
    def holder(self) -> str:
        """Who leases the environment: the execution, by its id. A companion of it has another `folder`."""
        return self.holder_lock.parent.name

    @property
    def arguments(self) -> tuple[str, ...]:
        """What comes after `python`."""
        if self.script is None:
            return ("-m", self.module or "", *self.args)
        path = str(self.script)
        # A script called `-c` must not be taken for an option.
        return (f"./{path}" if path.startswith("-") else path, *self.args)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """A program that makes the environment first; it reads `stdin`, which may hold credentials.

    `only_tools` says that the program's own environment is known already, and what is made is for our tools.
    """

    argv: tuple[str, ...]
    stdin: str = field(repr=False)
    only_tools: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """How one script is run, in the call's directory and with its environment variables.

    Attributes:
        prepare: What to run first; when it fails, the script is not run. Its answer names the interpreter.
        argv: The command that runs the script; after preparing, with the interpreter from the answer in first place.
        strategy: How that is done.
        python: What runs it: the path of an interpreter, or a version that uv fetches while preparing.
        python_version: The version of that, where it is known.
        environment: The environment it runs in, where it is ready.
        packages: What was installed for it; None where that is not known yet, or it sees what somebody else installed.
        package_folder: Further packages, which a sandbox sees besides those of the environment.
        first_on_path: A folder to put before all others on the PATH of the script, so that `python` there is the one
            it runs on; None leaves PATH as it is.
        usual: Whether it is what sandboxes run on where nobody says otherwise.
        notes: What the reader of the result should know, a sentence each.
    """

    prepare: Preparation | None = None
    argv: tuple[str, ...]
    strategy: Strategy
    python: str
    python_version: str | None
    environment: Environment | None = None
    packages: tuple[str, ...] | None = None
    first_on_path: Path | None = None
    package_folder: Path | None = None
    usual: bool = False
    notes: tuple[str, ...] = ()
