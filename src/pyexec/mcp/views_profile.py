"""From a profile to the structured result."""

from collections.abc import Iterable

from pyexec.mcp.results import RunResult
from pyexec.mcp.results_profile import ProfileResult, ProfileRow
from pyexec.profiles.modes import TOOLS
from pyexec.profiles.reading import RESULT, Profile, Row

_DIGITS = 6


def profile_result(done: RunResult, profile: "Profile | str | None", files: Iterable[str], top: int) -> ProfileResult:
    """Return the result of `profile_script`: the run, and what was measured once it has ended."""
    result = ProfileResult(**{name: getattr(done, name) for name in RunResult.model_fields})
    if profile is None:
        return result
    if isinstance(profile, str):
        return result.model_copy(update={"notes": [*(done.notes or []), profile]})
    result.mode = profile.mode
    result.unit = profile.unit
    result.total = round(profile.total, _DIGITS)
    result.rows = [_row(row) for row in profile.rows[:top]]
    result.text = profile.text
    result.artifacts = [f"job-file://{done.job_id}/{name}" for name in files if name != RESULT]
    result.overhead = TOOLS[profile.mode].overhead
    return result


def _row(row: Row) -> ProfileRow:
    return ProfileRow(
        function=row.function,
        file=row.file,
        line=row.line,
        own=round(row.own, _DIGITS),
        total=round(row.total, _DIGITS),
        count=row.count or None,
    )
