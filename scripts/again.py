"""Run pytest; where few tests failed, run those once more, alone.

    python scripts/again.py FILE COMMAND...

COMMAND runs pytest in the current folder (`pytest -n 4`, or `coverage run -m pytest`). The tests start thousands of
real processes on cores that others use, too. So when it is one to five that failed, and nothing else went wrong, those
run again one after the other, with nothing beside them. A failure that repeats stays one. The names of tests that have
passed only then are said, and added to FILE, a line each, so that nobody overlooks them.

Exits with the status of COMMAND, or of its second run.
"""

import json
import subprocess
import sys
from pathlib import Path

AT_MOST = 5
ALONE = ("--last-failed", "--last-failed-no-failures=none", "-n", "0")
FAILED = Path(".pytest_cache/v/cache/lastfailed")
_TESTS_FAILED = 1


def main(file: str, *command: str) -> int:
    """Do it; return the exit status."""
    FAILED.unlink(missing_ok=True)  # What an earlier run has left there is no matter of this one.
    status = _run(command)
    failed = _failed()
    if status != _TESTS_FAILED or not failed:
        return status
    if len(failed) > AT_MOST:
        print(f"\n{len(failed)} tests failed; up to {AT_MOST} would have been run again alone.", flush=True)
        return status
    print("\nAgain, alone:", *failed, sep="\n    ", flush=True)
    status = _run((*command, *ALONE))
    if status == 0:
        print("\nPassed only when run again alone:", *failed, sep="\n    ", flush=True)
        with Path(file).open("a", encoding="utf-8") as told:
            told.writelines(f"{name} (Python {sys.version_info[0]}.{sys.version_info[1]})\n" for name in failed)
    return status


def _run(command: tuple[str, ...]) -> int:
    return subprocess.run(command, check=False).returncode


def _failed() -> list[str]:
    """Return the names of the tests that failed in the last run."""
    try:
        return list(json.loads(FAILED.read_text("utf-8")))
    except FileNotFoundError:
        return []


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
