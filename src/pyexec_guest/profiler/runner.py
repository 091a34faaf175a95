"""Running a program as `python FILE` would, with a meter around it."""

import atexit
import json
import os
import signal
import sys
from contextlib import suppress
from types import FrameType, FunctionType, ModuleType, TracebackType
from typing import Any

from pyexec_guest.profiler.meters import METERS
from pyexec_guest.profiler.page import flame_graph
from pyexec_guest.profiler.places import Places
from pyexec_guest.profiler.tree import outline, top

ARTIFACTS = "PYEXEC_ARTIFACTS"
RESULT = "profile.json"
FLAME_GRAPH = "flamegraph.html"
FAILED = 1
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class Measurement:
    """One measurement, from its start to the files it leaves; a forked child has no part in it."""

    def __init__(self, aside: Any, mode: str, script: str, tools: str) -> None:
        self._aside = aside
        self._mode = mode
        self._tools = tools
        self._folder = os.environ[ARTIFACTS]
        self._name = os.path.basename(script)
        self._places = Places(script)
        self._pid = os.getpid()
        self._done = False
        with aside.seeing(tools):
            self.meter: Any = METERS[mode](self._folder)

    def prepare(self) -> None:
        """See that what is measured will be written: when Python ends, or when SIGTERM says that it must."""
        atexit.register(self.finish)  # The first to be registered is the last to be called.
        signal.signal(signal.SIGTERM, self._on_terminate)
        os.register_at_fork(after_in_child=self._in_child)

    def finish(self) -> None:
        """End it and write what was measured, once."""
        if self._done:
            return
        self._done = True
        try:
            self.meter.stop()
            if os.getpid() != self._pid:  # A child that was forked behind Python's back.
                return
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
            with self._aside.seeing(self._tools):
                self._write()
        except Exception as error:  # noqa: BLE001 - whatever is wrong with the profile, the program ends as it ended
            with suppress(OSError):
                self._put(RESULT, json.dumps({"failure": f"{type(error).__name__}: {error}"}))

    def _write(self) -> None:
        tree, rows, whole = self.meter.result()
        tree.frames = [(function, self._places.name(file), line) for function, file, line in tree.frames]
        for row in rows:
            row[1] = self._places.name(row[1])
        unit = self.meter.unit
        result = {"mode": self._mode, "unit": unit, "total": whole, "rows": top(rows), "text": outline(tree, unit)}
        self._put(RESULT, json.dumps(result))
        self._put(FLAME_GRAPH, flame_graph(tree, unit, self._mode, self._name))

    def _put(self, name: str, text: str) -> None:
        """Write a file whole or not at all."""
        path = os.path.join(self._folder, name)
        with open(f"{path}.part", "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        os.replace(f"{path}.part", path)

    def _on_terminate(self, number: int, _frame: "FrameType | None") -> None:
        self.finish()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def _in_child(self) -> None:
        self._done = True
        self.meter.leave_child()
        if signal.getsignal(signal.SIGTERM) == self._on_terminate:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def run(aside: Any, mode: str, script: str, tools: str) -> None:
    """Run a program; leave as it leaves."""
    measurement = Measurement(aside, mode, script, tools)
    main = _main_module(script)
    sys.modules["__main__"] = main
    try:
        with open(script, "rb") as file:
            code = compile(file.read(), main.__dict__["__file__"], "exec", dont_inherit=True)
        measurement.prepare()
        measurement.meter.start()  # Here and no deeper: memray leaves out as many frames as there are now.
        # A function over the module's variables: what it runs is called by nobody, as in a program of its own.
        FunctionType(code, main.__dict__)()
    except SystemExit:
        raise
    except BaseException as error:
        _show(error)
        if isinstance(error, KeyboardInterrupt):  # Python ends by SIGINT after one that nobody caught.
            sys.excepthook = _say_nothing
            raise
        raise SystemExit(FAILED) from None


def _main_module(script: str) -> ModuleType:
    file = script if sys.version_info < (3, 9) else os.path.abspath(script)  # As each Python says it.
    main = ModuleType("__main__")
    main.__dict__.update(
        __file__=file,
        __cached__=None,
        __loader__=type(__loader__)("__main__", file),
        __builtins__=sys.modules["builtins"],
        __annotations__={},
    )
    return main


def _show(error: BaseException) -> None:
    """Show an exception that nobody caught, without the frames that are ours."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_HERE):
        trace = trace.tb_next
    error = error.with_traceback(trace)
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
    try:
        sys.excepthook(type(error), error, trace)
    except Exception:  # noqa: BLE001 - a hook of the program's that fails does not hide what happened
        sys.__excepthook__(type(error), error, trace)


def _say_nothing(_kind: "type[BaseException]", _error: BaseException, _trace: "TracebackType | None") -> None:
    """Do nothing: it has been shown."""
