"""The text of a value, whatever it is."""

import io
from typing import Any

from pyexec_guest.text import clip, describe


class _FullError(Exception):
    """There is more than enough."""


class _Capped(io.StringIO):
    """Takes so many characters, and no more than one piece beyond."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._room = most

    def write(self, text: str, /) -> int:
        size = super().write(text)
        self._room -= size
        if self._room < 0:
            raise _FullError
        return size


def text_of(formatter: Any, printer_class: Any, value: object, most: int) -> str:
    """Return the text of a value as IPython prints it, cut to `most` characters; a fault of its own is said there.

    Args:
        formatter: IPython's for plain text, with what the program has told it about types.
        printer_class: IPython's pretty printer.
        value: Anything.
        most: The longest text.
    """
    stream = _Capped(most)
    try:
        if not formatter.pprint:
            return clip(repr(value), most)
        printer = printer_class(
            stream,
            formatter.verbose,
            formatter.max_width,
            formatter.newline,
            max_seq_length=formatter.max_seq_length,
            singleton_pprinters=formatter.singleton_printers,
            type_pprinters=formatter.type_printers,
            deferred_pprinters=formatter.deferred_printers,
        )
        printer.pretty(value)
        printer.flush()
    except _FullError:
        return clip(stream.getvalue(), most) if len(stream.getvalue()) > most + 1000 else stream.getvalue()[:most] + "…"
    except Exception as error:  # noqa: BLE001 - the program's own code
        return f"<{type(value).__name__} that cannot be shown: {describe(error)}>"
    return clip(stream.getvalue(), most)
