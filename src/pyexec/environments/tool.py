"""uv at work on one environment: started, listened to, and its failures explained."""

import os
import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence

from pyexec.environments.credentials import masked
from pyexec.environments.failures import PreparationFailure, explain
from pyexec.processes.commands import run_tool

Say = Callable[[str], None]

_TOLD = ("Downloading ", "Building ", "Built ", "Downloaded ")
# Where the cache and the environments lie on two disks, files are copied: nothing anybody has to know.
_NOT_TOLD = ("hardlink", "`VIRTUAL_ENV=")


class ToolError(Exception):
    """uv could not do its part."""

    def __init__(self, failure: PreparationFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Uv:
    """Runs uv with the variables of one call.

    Args:
        program: Where it is.
        environ: The call's variables. Those about Python (`PYTHONPATH`, …) are for the user's program alone.
        index_url: The package index to use in place of the usual one.
        say: Hears what is going on, for whoever waits.

    Attributes:
        warnings: What uv has warned about so far.
        held: Locks that uv holds too, so that they outlast this process as long as uv does.
    """

    def __init__(self, program: str, environ: Mapping[str, str], index_url: str | None, say: Say) -> None:
        self._program = program
        self._environ = {name: value for name, value in environ.items() if not name.startswith("PYTHON")}
        if index_url is not None:
            self._environ["UV_DEFAULT_INDEX"] = index_url
        self._say = say
        self.warnings: list[str] = []
        self.held: list[int] = []

    def run(
        self,
        *arguments: str,
        stdin: str = "",
        constraints: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
        on_tick: Callable[[], None] | None = None,
        on_start: Callable[[int], None] | None = None,
    ) -> str:
        """Run uv and return what it wrote to its standard output.

        Args:
            arguments: Without the program.
            stdin: What it can read.
            constraints: Given to it in a file without a name, since they may have credentials in them.
            variables: More variables.
            on_tick: Called now and then; what it raises ends uv.
            on_start: Called with its pid.

        Raises:
            ToolError: It failed.
        """
        argv = [self._program, *arguments]
        descriptors = list(self.held)
        if constraints:
            fd = _unnamed_file("".join(f"{one}\n" for one in constraints))
            descriptors.append(fd)
            argv += ["--constraints", f"/dev/fd/{fd}"]
        environ = {**self._environ, **(variables or {})}
        try:
            finished = run_tool(
                argv,
                env=environ,
                stdin=stdin,
                descriptors=descriptors,
                on_line=self._hear,
                on_tick=on_tick,
                on_start=on_start,
            )
        finally:
            for fd in descriptors[len(self.held) :]:
                os.close(fd)
        if finished.exit_code < 0:
            raise ToolError(_killed(-finished.exit_code, finished.stderr))
        if finished.exit_code != 0:
            raise ToolError(explain(finished.stderr, environ))
        return finished.stdout

    def run_or_offline(
        self,
        *arguments: str,
        again: bool = True,
        stdin: str = "",
        constraints: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
        on_tick: Callable[[], None] | None = None,
        on_start: Callable[[int], None] | None = None,
    ) -> tuple[str, bool]:
        """Do the same; where the network is away, try `again` with what is in uv's cache, and tell whether it was that.

        Raises:
            ToolError: It failed; what the cache lacks is said as the network's failure, which is the cause.
        """

        def run(*words: str) -> str:
            return self.run(
                *words,
                stdin=stdin,
                constraints=constraints,
                variables=variables,
                on_tick=on_tick,
                on_start=on_start,
            )

        try:
            return run(*arguments), False
        except ToolError as error:
            if error.failure.kind != "network" or not again:
                raise
            self._say("the index cannot be reached; looking into uv's cache")
            try:
                return run("--offline", *arguments), True
            except ToolError:
                raise error from None

    def _hear(self, line: str) -> None:
        text = masked(line.strip())
        if text.startswith("warning:"):
            if not any(word in text for word in _NOT_TOLD):
                self.warnings.append(text.removeprefix("warning:").strip())
        elif text.startswith(_TOLD) and not text.endswith("..."):  # "Building wheel...": we say of what.
            self._say(text[0].lower() + text[1:])


def _killed(number: int, stderr: str) -> PreparationFailure:
    message = f"The environment could not be made: uv was ended by {signal.Signals(number).name}."
    return PreparationFailure(kind="other", message=message, detail=masked(stderr).strip() or message)


def _unnamed_file(text: str) -> int:
    with tempfile.TemporaryFile() as file:
        file.write(text.encode())
        file.seek(0)
        return os.dup(file.fileno())
