"""From what a guest said to the structured result of `execute_python`."""

import json
import mimetypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pyexec.domain.turns import Display, Failure, Part, Turn, TurnFile
from pyexec.mcp.results_execute import PythonException, PythonFile, PythonResult, Shown
from pyexec.mcp.views import run_fields
from pyexec.sessions.paths import uri_of as workspace_uri

if TYPE_CHECKING:
    # At run time it would bring in storage, and with it SQLAlchemy, before the client has had its first answer.
    from pyexec.environments.orders import Answer
    from pyexec.executions.service import Reading
    from pyexec.storage.artifacts import Artifact

RESULT_CHARACTERS = 20_000
CHART_CHARACTERS = 12_000
TABLE_CHARACTERS = 6_000
TEXT_CHARACTERS = 4_000
LATE_CHARACTERS = 2_000
PICTURES = 10
PICTURE_BYTES = 1_000_000
_MAGIC = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff"}


def python_result(
    reading: "Reading",
    now: float,
    environment: "Answer",
    turn: Turn | None,
    artifacts: "Sequence[Artifact]",
    directory: str | None = None,
) -> PythonResult:
    """Return the result of `execute_python`, but for its pictures.

    `directory` is where the code left its files, where the client has it too; else they are among the artifacts.
    """
    fields = run_fields(reading, now, environment)
    job_id, turn = reading.execution.id, turn or Turn()
    files = [
        PythonFile(name=one.name, size=one.size, media_type=one.media_type, uri=uri_of(job_id, one.name))
        for one in artifacts
    ]
    session = reading.execution.session
    if session is not None:
        files += [_file_of(session, one) for one in turn.files if one.kept_as is None]
    elif directory is not None:
        files += [_file_in(directory, one) for one in turn.files if one.kept_as is None]
    outcome = reading.execution.outcome
    notes: list[str] = [*(fields["notes"] or []), *turn.notes, *_own_notes(turn)]
    fields.update(stderr=_stderr(fields["stderr"], turn), notes=notes or None)
    return PythonResult(
        **fields,
        session_id=reading.execution.session,
        success=fields["status"] == "completed" and fields["error"] is None,
        result=_clip(turn.value, RESULT_CHARACTERS),
        exception=_exception(turn.failure),
        displays=[shown(job_id, display) for display in turn.displays] or None,
        files=files or None,
        peak_memory_mb=round(outcome.peak_rss_bytes / 2**20, 2) if outcome else None,
    )


def shown(job_id: str, display: Display) -> Shown:
    """Return one display; its pictures and whatever is long by their URIs."""
    part = next(iter(display.parts), None)
    return Shown(
        kind=display.kind,
        media_type=part.media_type if part else None,
        text=_clip(part.text, TEXT_CHARACTERS) if part else None,
        uri=uri_of(job_id, part.file) if part and part.file else None,
        width=display.width or None,
        height=display.height or None,
        chart=_within(display.chart, CHART_CHARACTERS),
        table=_table(display.table),
        stdout_at=display.stdout_at,
    )


def picture_part(display: Display) -> Part | None:
    """Return the form of a display that is a picture for the client."""
    return next((part for part in display.parts if part.media_type in _MAGIC), None)


def is_picture(media_type: str, data: bytes) -> bool:
    """Tell whether bytes are what they are said to be, and not too many; the program could have changed the file."""
    return len(data) <= PICTURE_BYTES and data.startswith(_MAGIC.get(media_type, b"\0none"))


def uri_of(job_id: str, name: str) -> str:
    """Return where a file of a job can be read."""
    return f"job-file://{job_id}/{name}"


def _file_in(directory: str, file: TurnFile) -> PythonFile:
    media_type = mimetypes.guess_type(file.path)[0] or "application/octet-stream"
    return PythonFile(name=file.path, size=file.size, media_type=media_type, uri=Path(directory, file.path).as_uri())


def _file_of(session_id: str, file: TurnFile) -> PythonFile:
    media_type = mimetypes.guess_type(file.path)[0] or "application/octet-stream"
    return PythonFile(name=file.path, size=file.size, media_type=media_type, uri=workspace_uri(session_id, file.path))


def _own_notes(turn: Turn) -> list[str]:
    notes: list[str] = []
    if turn.late:
        text = "".join(one.text for one in turn.late)
        notes.append(f"Printed by what an earlier cell has left running: {text[:LATE_CHARACTERS].rstrip()}")
    if turn.left_out:
        notes.append(f"{turn.left_out} displays were too large together and were left out.")
    if turn.broken:
        notes.append(f"What the interpreter said could not be taken further: {turn.broken}.")
    return notes


def _exception(failure: Failure | None) -> PythonException | None:
    if failure is None:
        return None
    return PythonException(type=failure.type, message=failure.message, traceback=failure.traceback, line=failure.line)


def _stderr(text: str, turn: Turn) -> str:
    """Return stderr without the traceback at its end, which is told apart."""
    if not turn.told_bytes or turn.failure is None:
        return text
    for told in (turn.failure.traceback, f"{turn.failure.message}\n"):
        if told and told in text[-len(told) - 20 :]:
            before, _told, after = text.rpartition(told)
            return before + after
    return text


def _clip(text: str | None, most: int) -> str | None:
    if text is None or len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


def _within(value: Mapping[str, Any] | None, most: int) -> dict[str, Any] | None:
    if value is None or len(json.dumps(value)) > most:
        return None
    return dict(value)


def _table(table: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a table with as many of its first rows as an answer has room for."""
    if table is None:
        return None
    rows = table.get("rows")
    if not isinstance(rows, list):
        return _within(table, TABLE_CHARACTERS)
    shorter = list(cast("list[Any]", rows))
    while shorter and len(json.dumps({**table, "rows": shorter})) > TABLE_CHARACTERS:
        shorter = shorter[: len(shorter) // 2]
    return {**table, "rows": shorter}
