"""The three ways to measure: pyinstrument, cProfile, memray, each with the tree of calls it comes to."""

import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

from pyexec_guest.profiler.tree import Tree

SMALLEST_SHARE = 0.001
DEEPEST = 100
MOST_NODES = 5000
LOG_ERRORS_ONLY = 40
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
# Ours, what pyinstrument says of the thread, and the steps between an import and the module.
_NOT_SHOWN = (_HERE, "<thread>", "<frozen importlib")


class TimeMeter:
    """Where the time goes: a sample of the stack each millisecond, by pyinstrument."""

    unit = "seconds"

    def __init__(self, _folder: str) -> None:
        # Where the clock is slow it would say so in the program's own output.
        sampler: Any = importlib.import_module("pyinstrument.stack_sampler")
        sampler.IGNORE_OVERHEAD_WARNING = True
        self._profiler: Any = importlib.import_module("pyinstrument").Profiler()
        self._samples = _Samples()

    def start(self) -> None:
        """Begin."""
        self._profiler.start()
        session: Any = getattr(self._profiler, "_active_session", None)
        if session is not None:  # It would keep every sample: gigabytes in an hour.
            session.frame_records = self._samples

    def leave_child(self) -> None:
        """Stop in a forked child, whose time is not measured."""
        sys.setprofile(None)

    def stop(self) -> None:
        """End."""
        self._profiler.stop()

    def result(self) -> "tuple[Tree, list[list[object]], float]":
        """Return the calls, a row for each function, and all the seconds."""
        tree = Tree()
        for stack, seconds in self._profiler.last_session.frame_records:
            node = -1
            for info in stack:
                frame = _frame_of(info)
                if not frame[1].startswith(_NOT_SHOWN):
                    node = tree.child(node, frame)
            if node >= 0:
                tree.own[node] += seconds
        return tree, tree.rows(), sum(tree.own)


class _Samples:
    """Samples of the same stack as one."""

    def __init__(self) -> None:
        self._seconds: dict[Any, float] = {}
        self._count = 0

    def append(self, sample: "tuple[list[str], float]") -> None:
        """Take one more."""
        stack = tuple(sample[0])
        self._count += 1
        self._seconds[stack] = self._seconds.get(stack, 0.0) + sample[1]

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Any:
        return iter(self._seconds.items())


def _frame_of(info: str) -> "tuple[str, str, int]":
    """Read pyinstrument's `function NUL file NUL line`, with attributes behind it, among them the class."""
    identifier, *attributes = info.split("\1")
    function, file, line = (*identifier.split("\0"), "", "")[:3]
    for attribute in attributes:
        if attribute.startswith("c"):
            function = f"{attribute[1:]}.{function}"
    if file == "<built-in>":
        file, line = "", ""
    return function, file, int(line) if line.isdigit() else 0


class CallMeter:
    """How often what is called, and what it takes: cProfile."""

    unit = "seconds"

    def __init__(self, folder: str) -> None:
        self._profile: Any = importlib.import_module("cProfile").Profile()
        self._file = os.path.join(folder, "calls.pstats")

    def start(self) -> None:
        """Begin."""
        self._profile.enable()

    def leave_child(self) -> None:
        """Stop in a forked child, whose calls are not counted."""
        self._profile.disable()

    def stop(self) -> None:
        """End."""
        self._profile.disable()

    def result(self) -> "tuple[Tree, list[list[object]], float]":
        """Return the calls, a row for each function, and all the seconds."""
        self._profile.dump_stats(self._file)
        calls = _Calls(self._profile.getstats())
        return calls.tree(), calls.rows(), calls.whole()


class _Calls:
    """What cProfile knows: functions, and who calls whom how long, but not from where it was called itself."""

    def __init__(self, entries: "list[Any]") -> None:
        self._entries = [entry for entry in entries if not _is_ours(entry.code)]
        self._by_code: dict[Any, Any] = {_key(entry.code): entry for entry in self._entries}

    def rows(self) -> "list[list[object]]":
        """Return a row for each function."""
        return [
            [*_code_frame(entry.code), entry.inlinetime, entry.totaltime, entry.callcount] for entry in self._entries
        ]

    def whole(self) -> float:
        """Return all the seconds."""
        return sum(entry.inlinetime for entry in self._entries)

    def tree(self) -> Tree:
        """Return calls below calls: what a function takes is shared among its callers by what each of them waited."""
        tree = Tree()
        from_others: dict[Any, float] = {}
        for entry in self._entries:
            for called in entry.calls or ():
                if _key(called.code) != _key(entry.code):
                    from_others[_key(called.code)] = from_others.get(_key(called.code), 0.0) + called.totaltime
        tops = [(max(0.0, one.totaltime - from_others.get(_key(one.code), 0.0)), one) for one in self._entries]
        whole = sum(seconds for seconds, _entry in tops)
        waiting = [_Part(-1, one, seconds, ()) for seconds, one in tops if seconds > whole * SMALLEST_SHARE]
        while waiting and len(tree.parents) < MOST_NODES:
            part = waiting.pop(0)
            node = tree.child(part.parent, _code_frame(part.entry.code))
            below = [
                _Part(node, self._by_code[key], called.totaltime * part.share * part.fit, part.inside)
                for called in part.entry.calls or ()
                if (key := _key(called.code)) in self._by_code and key not in part.inside
            ]
            large = [one for one in below if one.seconds > whole * SMALLEST_SHARE and len(part.inside) < DEEPEST]
            waiting += large
            tree.own[node] += max(0.0, part.seconds - sum(one.seconds for one in large))
        return tree


class _Part:
    """A part of the seconds of a function: what it took when it was called from one place."""

    def __init__(self, parent: int, entry: Any, seconds: float, path: "tuple[Any, ...]") -> None:
        self.parent = parent
        self.entry = entry
        self.seconds = seconds
        self.inside = (*path, _key(entry.code))
        self.share: float = seconds / entry.totaltime if entry.totaltime > 0 else 0.0
        # Calls that come back to a function count again and again below it: together they get what it waited.
        waited = sum(called.totaltime for called in entry.calls or ())
        self.fit: float = min(1.0, (entry.totaltime - entry.inlinetime) / waited) if waited > 0 else 1.0


def _key(code: Any) -> Any:
    return code if isinstance(code, str) else (code.co_name, code.co_filename, code.co_firstlineno)


def _is_ours(code: Any) -> bool:
    if isinstance(code, str):
        return "_lsprof.Profiler" in code
    return code.co_filename.startswith(_HERE)


def _code_frame(code: Any) -> "tuple[str, str, int]":
    if isinstance(code, str):
        return code, "", 0
    return getattr(code, "co_qualname", code.co_name), code.co_filename, code.co_firstlineno


class MemoryMeter:
    """What held the memory when it was most: every allocation, by memray."""

    unit = "bytes"

    def __init__(self, folder: str) -> None:
        self._memray: Any = importlib.import_module("memray")
        self._memray.set_log_level(LOG_ERRORS_ONLY)
        self._file = os.path.join(folder, "memory.memray")
        # Aggregated: a file that does not grow with every allocation.
        self._tracker: Any = self._memray.Tracker(
            self._file, file_format=self._memray.FileFormat.AGGREGATED_ALLOCATIONS
        )

        self.start: Callable[[], object] = self._tracker.__enter__  # Without a frame in between.

    def leave_child(self) -> None:
        """Do nothing: memray does not follow into a forked child."""

    def stop(self) -> None:
        """End."""
        self._tracker.__exit__(None, None, None)

    def result(self) -> "tuple[Tree, list[list[object]], float]":
        """Return what allocated, a row for each line that did, and all the bytes."""
        tree = Tree()
        with self._memray.FileReader(self._file) as reader:
            for record in reader.get_high_watermark_allocation_records(merge_threads=True):
                node = -1
                for function, file, line in reversed(record.stack_trace()):
                    if not file.startswith(_NOT_SHOWN):
                        node = tree.child(node, (function, file, line))
                if node < 0:
                    node = tree.child(-1, ("<outside of any function>", "", 0))
                tree.own[node] += record.size
                tree.counts[node] += record.n_allocations
        return tree, tree.rows(), sum(tree.own)


METERS: "dict[str, Any]" = {"time": TimeMeter, "calls": CallMeter, "memory": MemoryMeter}
