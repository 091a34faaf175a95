"""The interpreter: IPython's shell, without a terminal, a history file or a folder in anybody's home."""

import os
import sys
import traceback
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, cast

from IPython.core import interactiveshell, page
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.error import UsageError
from IPython.core.history import HistoryManager
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.profiledir import ProfileDir
from IPython.lib.pretty import RepresentationPrinter
from traitlets.config import Config

from pyexec_guest.shell.cells import CellCompiler, keep_lines
from pyexec_guest.shell.commands import run_command
from pyexec_guest.shell.failures import failure_of
from pyexec_guest.shell.installing import MAGICS, ON_THE_HOST, installs
from pyexec_guest.shell.plain import PlainCells, may_await
from pyexec_guest.shell.programs import Program
from pyexec_guest.shell.running import AsyncRunner
from pyexec_guest.shell.values import text_of
from pyexec_guest.text import describe

VALUE_CHARACTERS = 200_000
NOTES = 20
_NOWHERE = os.path.join(os.sep, "nonexistent", "ipython")
_AS_REPR = frozenset({int, float, str})
"""What IPython prints as Python does, unless it is told otherwise."""

_EXIT_HINT = "To exit: use"

OnValue = Callable[[object], None]
OnPublish = Callable[["dict[str, Any]", "dict[str, Any]"], None]


@dataclass
class Ran:
    """What came of a cell. `value` is the text of its last expression, or None."""

    status: str = "ok"
    exit_code: int = 0
    value: "str | None" = None
    value_type: "str | None" = None
    failure: "dict[str, Any] | None" = None
    notes: "list[str]" = field(default_factory=list[str])

    def note(self, text: str) -> None:
        """Add a sentence for the reader, once and not too many."""
        if text not in self.notes and len(self.notes) < NOTES:
            self.notes.append(text)


class _History(HistoryManager):
    """The cells so far.

    The last ones are plain attributes here, not traits, which take as long to set as a short cell to run.
    """

    _i00 = _i = _ii = _iii = ""


_History.__name__ = HistoryManager.__name__  # `%config` goes by that.


class _Hook(DisplayHook):
    """Takes the value of a cell's last expression. It keeps two values, not all that ever were."""

    def __call__(self, result: Any = None) -> None:
        self.check_for_underscore()
        if result is None or self._is_silenced():
            return
        self.update_user_ns(result)
        shell: Any = self.shell
        shell.take_value(result)

    def update_user_ns(self, result: Any) -> None:
        """Put the value into `_` and the one before into `__`, unless the program has taken these names."""
        namespace = self.shell.user_ns
        if "_" in namespace and namespace["_"] is not self._:
            return
        self.__, self._ = self._, result
        namespace["__"], namespace["_"] = self.__, self._

    def _is_silenced(self) -> bool:
        inputs = self.shell.history_manager.input_hist_parsed
        if not inputs or ";" not in inputs[-1]:
            return False
        try:
            return self.quiet()
        except Exception:  # noqa: BLE001 - what is no Python for a tokenizer is not silenced
            return False


class _Publisher(DisplayPublisher):
    """Takes what `display` publishes."""

    def publish(self, data: Any, metadata: Any = None, *_more: Any, **_options: Any) -> None:
        self._validate_data(data, metadata)
        shell: Any = self.shell
        if shell.on_publish is not None:
            shell.on_publish(dict(data), dict(metadata or {}))

    def clear_output(self, wait: bool = False) -> None:  # noqa: FBT001, FBT002 - IPython's signature
        """Leave what was shown: nothing of a record is unsaid."""


class _Profile(ProfileDir):
    """A profile that lies nowhere, for a shell that writes nothing."""

    def _location_changed(self, change: Any) -> None:
        return


class _Leave:
    """`exit()` and `quit()`."""

    def __call__(self, code: object = None) -> None:
        raise SystemExit(code)

    def __repr__(self) -> str:
        return "exit() ends the cell; the session stays."


class GuestShell(InteractiveShell):
    """Runs cells and hands on what they show."""

    compiler_class = CellCompiler

    def __init__(self, **options: Any) -> None:
        # IPython's own constructor asks for these already.
        self.on_value: OnValue | None = None
        self.on_publish: OnPublish | None = None
        self.on_end_of_code: Callable[[], None] | None = None
        self.no_installing = ON_THE_HOST
        self._ran = Ran()
        self._errors: list[BaseException] = []
        self._trace: TracebackType | None = None
        self._runner = AsyncRunner()
        self._command_code = 0
        super().__init__(**options)
        self._plain = PlainCells(self)
        printers: dict[type, Any] = self.display_formatter.formatters["text/plain"].type_printers
        self._printers = {kind: printers.get(kind) for kind in _AS_REPR}

    @classmethod
    def make(cls, on_value: OnValue, on_publish: OnPublish) -> "GuestShell":
        """Make the one shell of this process."""
        config = Config()
        config.HistoryManager.enabled = False
        config.HistoryManager.hist_file = ":memory:"
        config.InteractiveShell.autoindent = False
        config.InteractiveShell.colors = "nocolor"
        config.InteractiveShell.cache_size = 0
        config.InteractiveShell.display_page = False
        config.Completer.use_jedi = False
        shell: Any = cls.instance(config=config)
        shell.on_value = on_value
        shell.on_publish = on_publish
        shell.builtin_trap.__enter__()  # For good, not anew for each cell: get_ipython() is there between cells too.
        return shell

    def begin_here(self) -> None:
        """Take the working directory as it is now for the one that it began in."""
        shell: Any = self
        shell.starting_dir = os.getcwd()
        shell.user_ns["_dh"][:] = [shell.starting_dir]

    def get_ready(self) -> None:
        """See, ahead of a cell, that it finds an event loop that is open."""
        self._runner.begin()

    # -- running ---------------------------------------------------------------------------------------------------

    def run(self, code: str) -> Ran:
        """Run a cell."""
        return self._run(lambda: self._run_code(code))

    def run_program(self, program: Program) -> Ran:
        """Run a program that is not a cell."""
        return self._run(lambda: program.run(self.user_ns))

    def _run_code(self, code: str) -> "BaseException | None":
        cell = self._plain.takes(code)
        if cell is not None:
            return self._plain.run(code, cell)
        result = self.run_cell(code, store_history=True)
        error: BaseException | None = result.error_before_exec or result.error_in_exec
        # The result lies in frames that the exception holds: a circle, with all the program's values in it.
        result.error_before_exec = result.error_in_exec = None
        self.last_execution_result = None
        return error

    def _run(self, work: "Callable[[], BaseException | None]") -> Ran:
        self._ran = ran = Ran()
        self._errors = []
        self.forget_last_failure()
        self._command_code = 0
        error: BaseException | None
        try:
            error = work()
        except BaseException as escaped:  # noqa: BLE001 - a program's, or an interrupt between two steps of IPython's
            error = escaped
        self._relieve()
        error = _first_of(error)
        for other in self._errors:
            if other is not error:
                ran.note(f"Showing a value failed: {describe(other)}")
        self._errors = []
        self._trace = error.__traceback__ if error is not None else None
        self._conclude(ran, error)
        return ran

    def take_value(self, value: object) -> None:
        """Note the value of the last expression, and have it shown."""
        self._ran.value = self.text_of(value)
        self._ran.value_type = type(value).__name__
        if self.on_value is not None:
            self.on_value(value)

    def text_of(self, value: object, most: int = VALUE_CHARACTERS) -> str:
        """Return the text of any value."""
        formatter = self.display_formatter.formatters["text/plain"]
        kind = type(value)
        if kind in _AS_REPR and formatter.type_printers.get(kind) is self._printers[kind]:
            with suppress(ValueError):  # A number of too many digits.
                text = repr(value)
                if len(text) <= most:
                    return text
        return text_of(formatter, RepresentationPrinter, value, most)

    def inputs(self) -> "list[str]":
        """Return the cells so far, as Python."""
        return [str(cell) for cell in self.history_manager.input_hist_parsed]

    def _relieve(self) -> None:
        """Tell that the program's code is over, before anything is made of how it ended."""
        if self.on_end_of_code is not None:
            self.on_end_of_code()

    def _conclude(self, ran: Ran, error: "BaseException | None") -> None:
        if self._command_code:
            ran.note(f"The last shell command ended with exit code {self._command_code}.")
        if error is None:
            return
        if isinstance(error, SystemExit):
            ran.status = "exited"
            ran.exit_code, said = _exit_of(error)
            if ran.exit_code:
                ran.failure = {**failure_of(error), "message": said}
            return
        ran.status = "interrupted" if isinstance(error, KeyboardInterrupt) else "error"
        ran.exit_code = 130 if isinstance(error, KeyboardInterrupt) else 1
        ran.failure = failure_of(error)

    def forget_last_failure(self) -> None:
        """Let go of the last exception, which holds on to every local variable it passed."""
        # Since Python 3.13 its frames are in a circle that only the collector would break, some time.
        if self._trace is not None:
            traceback.clear_frames(self._trace)
            self._trace = None
        known = vars(sys)
        for name in ("last_exc", "last_type", "last_value", "last_traceback"):
            if known.get(name) is not None:
                setattr(sys, name, None)

    # -- what IPython asks of a shell ------------------------------------------------------------------------------

    def transform_cell(self, raw_cell: str) -> str:
        """Return a cell as Python."""
        cell = self._plain.text_of(raw_cell)
        plain: Any = super()
        return plain.transform_cell(raw_cell) if cell is None else cell

    def should_run_async(self, raw_cell: str, *args: Any, **options: Any) -> bool:
        """Tell whether a cell awaits something."""
        text = options.get("transformed_cell")
        if isinstance(text, str) and not may_await(text):
            return False  # Without compiling it once more.
        plain: Any = super()
        return plain.should_run_async(raw_cell, *args, **options)

    @contextmanager
    def _tee(self, *_args: Any, **_options: Any) -> Generator[None]:
        """Keep no copy of what is printed: it would grow as long as the session lives."""
        yield

    def init_ipython_dir(self, ipython_dir: Any) -> None:
        """Have no folder."""

    def init_profile_dir(self, profile_dir: Any) -> None:
        """Have a profile that lies nowhere."""
        with suppress(Exception):
            self.profile_dir = _Profile(location=_NOWHERE)

    def init_virtualenv(self) -> None:
        """Leave sys.path: the interpreter is the environment's own."""

    def init_displayhook(self) -> None:
        """Take over what is shown."""
        self.displayhook_class = _Hook
        self.display_pub_class = _Publisher
        self.display_pub = _Publisher(parent=self, shell=self)
        super().init_displayhook()
        self.loop_runner = self._runner
        keep_lines(self.input_transformer_manager)
        self.db = {}

    def init_history(self) -> None:
        """Keep the cells so far."""
        shell: Any = self
        shell.history_manager = _History(shell=self, parent=self)
        shell.configurables.append(shell.history_manager)

    def init_user_ns(self) -> None:
        """Put names into the user's namespace."""
        super().init_user_ns()
        leave = _Leave()
        for name in ("exit", "quit"):
            self.user_ns[name] = self.user_ns_hidden[name] = leave

    def init_hooks(self) -> None:
        """Page by printing."""
        super().init_hooks()
        self.set_hook("show_in_pager", page.as_hook(_show_page), 99)

    def init_magics(self) -> None:
        """Take out what would install."""
        super().init_magics()
        for name in MAGICS:
            self.register_magic_function(self._no_installing, magic_name=name)

    def system(self, cmd: str) -> None:
        """Run `!command`."""
        command = self._without_installing(self.var_expand(cmd, depth=1))
        self._command_code = self.user_ns["_exit_code"] = run_command(command)

    def getoutput(self, cmd: str, split: bool = True, depth: int = 0) -> Any:  # noqa: FBT001, FBT002 - IPython's
        """Run `name = !command`."""
        self._without_installing(self.var_expand(cmd, depth=depth + 1))
        shell: Any = super()
        return shell.getoutput(cmd, split=split, depth=depth + 1)

    def _no_installing(self, _line: str) -> None:
        raise UsageError(self.no_installing)

    def _without_installing(self, command: str) -> str:
        if installs(command):
            raise UsageError(self.no_installing)
        return command

    def showtraceback(self, exc_tuple: Any = None, *_args: Any, **_options: Any) -> None:
        """Note the exception; it is told with the result."""
        self._relieve()
        error = exc_tuple[1] if exc_tuple else sys.exc_info()[1]
        if isinstance(error, BaseException) and not isinstance(error, SystemExit):
            self._errors.append(error)

    def showsyntaxerror(self, *_args: Any, **_options: Any) -> None:
        """Note the exception; it is told with the result."""
        self.showtraceback()

    def showindentationerror(self) -> None:
        """Note the exception; it is told with the result."""
        self.showtraceback()

    def _format_exception_for_storage(self, *_args: Any, **_options: Any) -> "dict[str, Any]":
        return {}  # Formatting it IPython's way takes longer than most cells.

    def enable_gui(self, gui: Any = None) -> None:
        """Have no window system."""

    def enable_matplotlib(self, gui: Any = None) -> "tuple[str, str]":
        """Take `%matplotlib …` for done: figures are shown by themselves."""
        return "inline", "agg"

    def ask_exit(self) -> None:
        """End the cell."""
        raise SystemExit


def _first_of(error: "BaseException | None") -> "BaseException | None":
    """Return the first of several exceptions for want of memory: those after it come of handling it."""
    while isinstance(error, MemoryError) and isinstance(error.__context__, MemoryError):
        error = error.__context__
    return error


def _exit_of(error: SystemExit) -> "tuple[int, str]":
    """Return the exit code that a SystemExit stands for, and what it says."""
    code = error.code
    if code is None:
        return 0, ""
    if isinstance(code, int):
        return code & 0xFF, f"The code called exit({int(code)})."
    return 1, describe(error).partition(": ")[2]


def _show_page(data: Any, *_more: Any, **_options: Any) -> None:
    text = cast("dict[str, Any]", data).get("text/plain", "") if isinstance(data, dict) else data
    sys.stdout.write(f"{text}\n")


def _quiet_warn(message: Any, *args: Any, **options: Any) -> None:
    """Warn as IPython does, but not of how to leave a terminal."""
    if not (isinstance(message, str) and message.startswith(_EXIT_HINT)):
        warnings.warn(message, *args, **{**options, "stacklevel": options.get("stacklevel", 1) + 1})


interactiveshell.warn = _quiet_warn
