"""Formatting a source, and replacing a file by what comes out."""

import difflib
import os
import re
from dataclasses import dataclass, field

from anyio.to_thread import run_sync

from pyexec.domain.errors import InvalidArgumentError
from pyexec.domain.principals import Principal
from pyexec.quality.files import replace_source
from pyexec.quality.running import Answered, Say, ToolRunner, failed
from pyexec.quality.targets import BOM, Target
from pyexec.quality.tools import FormatterName, Order

LONGEST_LINE = 320
MOST_COMPARED_LINES = 20_000
# ruff ends with 2 and black with 123, on a syntax error as on most of what else goes wrong.
_FAILURES = frozenset({2, 123})
_PLACE = re.compile(r"[Pp]arse\b[^\n]*?(\d+):(\d+)(?:: ([^\n]+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntaxFault:
    """Where a source cannot be parsed; lines and columns count from 1."""

    line: int
    column: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Formatted:
    """What came out. `formatted` is the source itself where nothing changed or nothing could be done.

    `diff` is a unified diff, None where the source is too long to compare.
    """

    formatter: FormatterName
    path: str | None
    formatted: str = field(repr=False)
    diff: str | None = field(repr=False)
    changed: bool
    written: bool = False
    fault: SyntaxFault | None = None


async def format_target(
    runner: ToolRunner,
    principal: Principal,
    target: Target,
    *,
    formatter: FormatterName,
    line_length: int | None,
    write: bool,
    say: Say | None,
) -> Formatted:
    """Format a source.

    Raises:
        InvalidArgumentError: The target is a folder, `write` is asked for without a path, or a value is not allowed.
        ToolFailedError: The formatter could not do its part; a syntax error is none of that.
    """
    _check(target, line_length, write=write)
    order = _order(target, formatter, line_length)
    answered = await runner.run(principal, order, say)
    before = target.content or b""
    shown = None if target.path is None else target.shown(target.path)
    if answered.exit_code != 0:
        fault = _fault(answered) if answered.exit_code in _FAILURES else None
        if fault is None:
            raise failed(order, answered)
        text = before.decode("utf-8", "replace")
        return Formatted(formatter=formatter, path=shown, formatted=text, diff="", changed=False, fault=fault)
    after = (BOM if before.startswith(BOM) else b"") + answered.stdout
    changed = after != before
    if changed and write and target.path is not None:
        await run_sync(replace_source, target.path, before, after)
    return Formatted(
        formatter=formatter,
        path=shown,
        formatted=after.decode("utf-8", "replace"),
        diff=await run_sync(_diff, before, after, shown or "source.py"),
        changed=changed,
        written=changed and write,
    )


def _check(target: Target, line_length: int | None, *, write: bool) -> None:
    if target.content is None:
        raise InvalidArgumentError(f"path {target.path} is a folder; one file at a time is formatted.")
    if write and target.path is None:
        raise InvalidArgumentError("write=true needs a path: a source has no file to replace.")
    if line_length is not None and not 1 <= line_length <= LONGEST_LINE:
        raise InvalidArgumentError(f"line_length is {line_length}; it must be between 1 and {LONGEST_LINE}.")


def _order(target: Target, formatter: FormatterName, line_length: int | None) -> Order:
    length = () if line_length is None else ("--line-length", str(line_length))
    named = None if target.path is None else ("--stdin-filename", str(target.path))
    if formatter == "ruff":
        args = ("format", "--no-cache", *(named or ("--isolated",)), *length, "-")
    else:
        args = ("--quiet", *(named or ("--config", os.devnull)), *length, "-")
    return Order(tool=formatter, args=args, stdin=target.stdin)


def _fault(answered: Answered) -> SyntaxFault | None:
    """Read "error: Failed to parse at 2:1: …" and "error: cannot parse: -:1:5", with the reason some lines below."""
    found = _PLACE.search(answered.stderr)
    if found is None:
        return None
    below = [line for line in answered.stderr[found.end() :].splitlines() if line and not line.startswith(" ")]
    message = found[3] or (below[0] if below else "it cannot be parsed")
    return SyntaxFault(line=int(found[1]), column=int(found[2]), message=message.strip())


def _diff(before: bytes, after: bytes, name: str) -> str | None:
    if before == after:
        return ""
    old, new = (text.decode("utf-8", "replace").splitlines(keepends=True) for text in (before, after))
    if max(len(old), len(new)) > MOST_COMPARED_LINES:
        return None
    lines = [
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        for line in difflib.unified_diff(old, new, f"a/{name}", f"b/{name}")
    ]
    return "".join(lines)
