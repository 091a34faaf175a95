"""Reading progress out of what programs print: our own line, and the bars of tqdm and rich.

What is read was written by anybody: only so many pieces of only such a length are looked at, and numbers are checked.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from pyexec.domain.progress import Progress, make_progress

LINE = b"::progress"

_LINES_TRIED = 50
_LINE_BYTES = 1000
_PIECES = 2000
_PIECE_LENGTH = 1000
_ROWS = 30

_NUMBER = r"\d{1,20}(?:\.\d{1,20})?(?:e[+-]?\d{1,3})?"
_PRINTED = re.compile(
    rf"::progress[ \t]+(?P<current>{_NUMBER})[ \t]*(?:(?P<percent>%)|/[ \t]*(?P<total>{_NUMBER}))?"
    r"(?:[ \t]+(?P<message>.*))?"
)
_TOKEN = re.compile(
    r"(?P<text>[^\r\n\x1b]+)|(?P<back>\r)|(?P<down>\n)|\x1b\[(?P<up>\d{0,3})A|\x1b(?:\[[0-?]*[ -/]*[@-~])?"
)

_SUFFIXES = "kMGTPEZY"
_TQDM = re.compile(
    rf"(?P<name>.*?)(?::\s+|\s*)\d{{1,3}}%\|[^|]*\|\s*(?P<current>{_NUMBER})(?P<current_suffix>[{_SUFFIXES}])?"
    rf"/(?P<total>{_NUMBER})(?P<total_suffix>[{_SUFFIXES}])?\s*\["
)
_TQDM_WITHOUT_TOTAL = re.compile(
    rf"(?:(?P<name>.*): )?(?P<current>{_NUMBER})(?P<unit>[^\s\d\[/][^\s\[]{{0,20}})? \[\d+:\d\d(?::\d\d)?, "
)
_SCALED = re.compile(r"\d\.\d\d|\d\d\.\d|\d\d\d")  # Three digits is how tqdm writes a number with a suffix.

_RICH_BAR = re.compile("[━╸╺]{3,}")
_RICH_NUMBER = r"\d[\d,]{0,20}(?:\.\d{1,20})?"
_RICH_COUNT = re.compile(
    rf"(?P<current>{_RICH_NUMBER})\s*/\s*(?P<total>{_RICH_NUMBER}|\?)(?:\s*(?P<suffix>[{_SUFFIXES}K])(?P<binary>i?)B\b)?"
)
_RICH_PERCENT = re.compile(r"(?P<percent>\d{1,3}(?:\.\d{1,10})?)%")


def find_line(data: bytes, *, at_start: bool, final: bool) -> tuple[int, Progress] | None:
    """Return the last whole line that tells progress, and at which byte it begins.

    `at_start` says that `data` begins where a line does, `final` that nothing more comes after it.
    """
    end = len(data)
    for _ in range(_LINES_TRIED):
        begin = data.rfind(LINE, 0, end)
        if begin < 0:
            return None
        end = begin
        begins_a_line = data[begin - 1] in b"\r\n" if begin else at_start
        if not begins_a_line:
            continue
        line, rest = data[begin : begin + _LINE_BYTES], data[begin + _LINE_BYTES : begin + _LINE_BYTES + 1]
        text, newline, _ = line.replace(b"\r", b"\n").partition(b"\n")
        if not newline and not rest and not final:
            continue  # The rest of it may still come.
        found = _PRINTED.fullmatch(text.decode("utf-8", "replace").rstrip())
        if found is None:
            continue
        total = 100.0 if found["percent"] else float(found["total"]) if found["total"] else None
        progress = make_progress(float(found["current"]), total, found["message"] or "")
        if progress is not None:
            return begin, progress
    return None


def find_bar(data: bytes) -> Progress | None:
    """Return what the last bar shows: of bars within bars the outer one, of several rows the first that is not full."""
    pieces = _split(data.decode("utf-8", "replace"))
    tqdm_at, tqdm = _last_tqdm(pieces)
    rich_at, rich = _last_rich(pieces)
    return tqdm if tqdm_at > rich_at else rich


@dataclass(slots=True)
class _Piece:
    """Text between two moves of the cursor: so many rows down before it, so many up after it."""

    text: str
    downs: int
    ups: int = 0


def _split(text: str) -> list[_Piece]:
    """Split into pieces; the last one is empty and has the moves down at the end."""
    pieces: list[_Piece] = []
    parts: list[str] = []
    downs = 0
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind == "text":
            parts.append(token[0])
            continue
        if kind is None:
            continue  # A colour, or something else that leaves the cursor where it is.
        downs = _flush(pieces, parts, downs)
        if kind == "down":
            downs += 1
        elif kind == "up":
            rows = int(token["up"] or 1)
            if downs or not pieces:
                downs = max(0, downs - rows)
            else:
                pieces[-1].ups += rows
    downs = _flush(pieces, parts, downs)
    return [*pieces[-_PIECES:], _Piece("", downs)]


def _flush(pieces: list[_Piece], parts: list[str], downs: int) -> int:
    text = "".join(parts).strip()
    parts.clear()
    if not text:
        return downs
    pieces.append(_Piece(text, downs))
    return 0


# -- tqdm ----------------------------------------------------------------------------------------------------------


def _last_tqdm(pieces: Sequence[_Piece]) -> tuple[int, Progress | None]:
    """Find the bar that stands at the cursor's own row; inner bars are drawn below it, by going down and up again."""
    at = -1
    outer: Progress | None = None
    inner: Progress | None = None
    under_way: Progress | None = None
    for number, (piece, following) in enumerate(pairwise(pieces)):
        progress = _as_tqdm(piece.text)
        if progress is None:
            continue
        at = number
        if piece.ups:
            inner = progress
            continue
        # The last one drawn may be an inner bar from which the cursor has not come up yet.
        may_come_up = number == len(pieces) - 3 and not following.ups and not _is_full(progress)
        closed = following.downs > following.ups and not may_come_up
        is_inner = inner is not None and _bar(progress) == _bar(inner)
        being_drawn = number == len(pieces) - 2 and (piece.downs > 0 or is_inner)
        if (closed or being_drawn) and under_way is not None and _bar(progress) != _bar(under_way):
            continue  # That, or an inner bar that is left standing; the outer one goes on below it.
        outer, under_way = progress, None if closed else progress
    return at, outer or inner


def _is_full(progress: Progress) -> bool:
    return progress.total is not None and progress.current >= progress.total


def _bar(progress: Progress) -> tuple[str | None, float | None]:
    return progress.message, progress.total


def _as_tqdm(text: str) -> Progress | None:
    if len(text) > _PIECE_LENGTH or " [" not in text:
        return None
    found = _TQDM.match(text)
    if found:
        current = _scaled(found["current"], found["current_suffix"])
        return make_progress(current, _scaled(found["total"], found["total_suffix"]), found["name"])
    found = _TQDM_WITHOUT_TOTAL.match(text)
    if found is None:
        return None
    first = (found["unit"] or "")[:1]
    scaled = len(found["unit"] or "") > 1 and first in _SUFFIXES and _SCALED.fullmatch(found["current"])
    return make_progress(_scaled(found["current"], first if scaled else None), None, found["name"] or "")


def _scaled(number: str, suffix: str | None, base: int = 1000) -> float:
    if not suffix:
        return float(number)
    power = _SUFFIXES.index(suffix.replace("K", "k")) + 1
    return float(round(float(number) * base**power))


# -- rich ----------------------------------------------------------------------------------------------------------


def _last_rich(pieces: Sequence[_Piece]) -> tuple[int, Progress | None]:
    """Look at the rows that were drawn last, together: the first that is not full, else the last.

    Rows that have no end count only where there are no others.
    """
    rows: list[Progress] = []
    last, tries = -1, _ROWS
    for at in range(len(pieces) - 1, -1, -1):
        if not _is_rich(pieces[at].text):
            if rows:
                break
            continue
        if tries == 0:
            break
        tries -= 1
        row = _as_rich(pieces[at].text)
        if row is not None:
            rows.insert(0, row)
            last = max(last, at)
        begins = pieces[at].downs == 0 or (at > 0 and pieces[at - 1].ups > 0)
        if begins and rows:
            break
    if not rows:
        return -1, None
    counted = [row for row in rows if row.total is not None] or rows
    return last, next((row for row in counted if not _is_full(row)), counted[-1])


def _is_rich(text: str) -> bool:
    return len(text) <= _PIECE_LENGTH and _RICH_BAR.search(text) is not None


def _as_rich(text: str) -> Progress | None:
    """Read one row; None for one that only says that something goes on."""
    before, _bar_itself, after = _RICH_BAR.sub("\0", text, count=1).partition("\0")
    count = _RICH_COUNT.search(after) or _RICH_COUNT.search(before)
    percent = _RICH_PERCENT.search(after) or _RICH_PERCENT.search(before)
    name = before
    for found in (count, percent):
        if found is not None and found.string is before:
            name = name.replace(found[0], " ")
    if count is not None:
        base = 1024 if count["binary"] else 1000
        total = None if count["total"] == "?" else _scaled(count["total"].replace(",", ""), count["suffix"], base)
        return make_progress(_scaled(count["current"].replace(",", ""), count["suffix"], base), total, name)
    return make_progress(float(percent["percent"]), 100, name) if percent is not None else None
