"""IPython's own syntax as the Python that IPython makes of it."""

import re
from collections.abc import Callable, Iterator
from functools import partial

_NAME = r"[A-Za-z_][\w.]*"
_HELP = re.compile(r"^([%]{0,2}[A-Za-z_*][\w.*]*(?:\[[^\]]*\])*)(\?\??)$")
_ASSIGNED = re.compile(rf"^({_NAME}(?:\s*,\s*{_NAME})*\s*=)\s*([%!])(?!=)(.*)$", re.DOTALL)
_QUOTES = ("'''", '"""', "'", '"')


def as_python(code: str) -> str:
    """Return a cell with its magics, commands and questions as calls of IPython; other lines stay as they are."""
    lines = _tidied(code.split("\n"))
    if lines[0].startswith("%%"):
        return _cell_magic("\n".join(lines))
    return "\n".join(_converted(lines))


def _tidied(lines: list[str]) -> list[str]:
    """Leave out empty lines at the beginning, and the indentation that the first line has."""
    first = next((number for number, line in enumerate(lines) if line.strip()), None)
    if first is None:
        return [""]
    lines = lines[first:]
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    return [line.removeprefix(indent) for line in lines]


def _cell_magic(code: str) -> str:
    first, _newline, body = code.partition("\n")
    name, _space, rest = first.removeprefix("%%").partition(" ")
    body = body if not body or body.endswith("\n") else f"{body}\n"
    return f"get_ipython().run_cell_magic({name!r}, {rest.strip()!r}, {body!r})"


def _converted(lines: list[str]) -> Iterator[str]:
    scanner = _Scanner()
    position = 0
    while position < len(lines):
        line = lines[position]
        position += 1
        if scanner.within:
            scanner.feed(line)
            yield line
            continue
        whole = line
        while whole.endswith("\\") and position < len(lines) and _is_escaped(whole):
            whole = f"{whole[:-1]} {lines[position]}"
            position += 1
        python = _statement(whole)
        if python is None:
            scanner.feed(line)
            yield line
        else:
            yield python


def _is_escaped(line: str) -> bool:
    text = line.lstrip()
    return text.startswith(("%", "!")) or _ASSIGNED.match(text) is not None


def _statement(line: str) -> str | None:
    """Return what IPython makes of a line at which a statement begins; None where it is Python already."""
    text = line.lstrip()
    indent = line[: len(line) - len(text)]
    python = _expression(text.rstrip())
    return None if python is None else f"{indent}{python}"


def _expression(text: str) -> str | None:
    asked = _HELP.match(text)
    if asked is not None:
        return _question(asked[2], asked[1])
    for mark, convert in _MARKS:
        if text.startswith(mark):
            return convert(text.removeprefix(mark).strip())
    found = _ASSIGNED.match(text)
    if found is None:
        return None
    return f"{found[1]} {_line_magic(found[3].strip()) if found[2] == '%' else _output_of(found[3].strip())}"


def _line_magic(text: str) -> str:
    name, _space, rest = text.partition(" ")
    return f"get_ipython().run_line_magic({name!r}, {rest.strip()!r})"


def _output_of(command: str) -> str:
    return f"get_ipython().getoutput({command!r})"


def _run(command: str) -> str:
    return f"get_ipython().system({command!r})"


def _question(mark: str, what: str) -> str:
    return f"get_ipython().run_line_magic({'pinfo2' if mark == '??' else 'pinfo'!r}, {what!r})"


_MARKS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("??", partial(_question, "??")),
    ("?", partial(_question, "?")),
    ("!!", _output_of),
    ("!", _run),
    ("%", _line_magic),
)


class _Scanner:
    """Knows whether a line goes on with what began before it: a string, brackets, a line that ends with a backslash."""

    def __init__(self) -> None:
        self._quote = ""
        self._brackets = 0
        self._continued = False

    @property
    def within(self) -> bool:
        return bool(self._quote) or self._brackets > 0 or self._continued

    def feed(self, line: str) -> None:
        self._continued = False
        position = 0
        while position < len(line):
            position = self._in_string(line, position) if self._quote else self._in_code(line, position)
        if len(self._quote) == 1 and not line.endswith("\\"):
            self._quote = ""  # A string that was never closed: an error of the code, which is found elsewhere.

    def _in_string(self, line: str, position: int) -> int:
        if line[position] == "\\":
            return position + 2
        if line.startswith(self._quote, position):
            position += len(self._quote)
            self._quote = ""
            return position
        return position + 1

    def _in_code(self, line: str, position: int) -> int:
        character = line[position]
        if character == "#":
            return len(line)
        quote = next((quote for quote in _QUOTES if line.startswith(quote, position)), None)
        if quote is not None:
            self._quote = quote
            return position + len(quote)
        if character in "([{":
            self._brackets += 1
        elif character in ")]}":
            self._brackets = max(0, self._brackets - 1)
        elif character == "\\" and position == len(line) - 1:
            self._continued = True
        return position + 1
