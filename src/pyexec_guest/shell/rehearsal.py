"""Running cells ahead of the first one, which then finds everything in place; no trace of them is left."""

import linecache
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

_LAST_INPUTS = ("_i00", "_i", "_ii", "_iii")
_LAST_VALUES = ("_", "__", "___")


@contextmanager
def rehearsing(shell: Any) -> Generator[None]:
    """Have a shell be at the end as it was at the beginning, whatever ran in it that did not change its settings."""
    names, hidden = dict(shell.user_ns), dict(shell.user_ns_hidden)
    history, hook, compiler = shell.history_manager, shell.displayhook, shell.compile
    lists = [history.input_hist_parsed, history.input_hist_raw, history.db_input_cache]
    entries = [list(one) for one in lists]
    inputs = [getattr(history, name) for name in _LAST_INPUTS]
    values = [getattr(hook, name, "") for name in _LAST_VALUES]
    number, known = shell.execution_count, dict(compiler._filename_map)  # noqa: SLF001 - there is no other way
    try:
        yield
    finally:
        for name in set(compiler._filename_map) - set(known):  # noqa: SLF001 - as above
            del compiler._filename_map[name]  # noqa: SLF001 - as above
            linecache.cache.pop(name, None)
        shell.execution_count = number
        shell.last_execution_succeeded, shell.last_execution_result = True, None
        for name, value in zip(_LAST_VALUES, values, strict=True):
            setattr(hook, name, value)
        for name, text in zip(_LAST_INPUTS, inputs, strict=True):
            setattr(history, name, text)
        for one, before in zip(lists, entries, strict=True):
            one[:] = before
        for space, before in ((shell.user_ns, names), (shell.user_ns_hidden, hidden)):
            for name in set(space) - set(before):
                del space[name]
            space.update(before)
