"""Attempts to live on after the end."""

import time

from pyexec.walls.bubblewrap.proof.subject import Attempt, Outcome, Subject, judge, not_held

DEAF_SECONDS = 0.1
GONE_SECONDS = 3.0
SURVIVORS = 4


def _kill(subject: Subject) -> Outcome:
    with subject.sandbox() as asked:
        asked.ask("turn_deaf")
        asked.begin("spin")
        asked.box.interrupt()
        if asked.box.wait_ended(DEAF_SECONDS) is not None:
            return not_held("the loop did not even begin, so that nothing could be shown")
        began = time.monotonic()
        gone = asked.box.kill()
        taken = (time.monotonic() - began) * 1000
        gone = asked.output_ended(GONE_SECONDS) and gone  # Whatever became of the first process.
    return judge(good=gone, happened=f"it is gone {taken:.0f} ms after the kill" if gone else "it lives on")


def _survivors(subject: Subject) -> Outcome:
    with subject.sandbox() as asked:
        count = asked.ask("leave_survivors", count=SURVIVORS)
        if count < SURVIVORS + 2:
            return not_held(f"only {count} processes were there to be killed, so that nothing could be shown")
        gone = asked.box.kill()
        silent = asked.output_ended(GONE_SECONDS)
        left = asked.box.group.members() if asked.box.group is not None else []
    return judge(
        good=gone and silent and not left,
        happened=f"all {count} processes are gone" if gone and silent and not left else "some live on",
    )


ENDING_ATTEMPTS = (
    Attempt(id="kill", name="time-out", tries="A loop ignores every signal", make=_kill),
    Attempt(
        id="survivors",
        name="survivors",
        tries="Daemons in sessions of their own stay behind",
        make=_survivors,
    ),
)
