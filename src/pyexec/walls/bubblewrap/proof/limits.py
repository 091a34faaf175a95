"""Attempts to use more than a sandbox may."""

import errno

from pyexec.sandbox.probing import ProbeEndedError
from pyexec.walls.bubblewrap.boxes import Cause
from pyexec.walls.bubblewrap.proof.subject import (
    Asked,
    Attempt,
    Outcome,
    Subject,
    Verdict,
    held,
    judge,
    megabytes,
    not_held,
)

WORK, TMP, SHM = "/work", "/tmp", "/dev/shm"  # noqa: S108 - inside
END_SECONDS = 5.0
BURN_SECONDS = 0.6
BURNERS = 4
NEIGHBOURS = 4
BURNS = 3
"""How often they spin, where the machine is so busy that they do not even get their share."""

_OVERRUN = 0.15
"""How much more of a processor it may have had: the kernel looks some hundred times a second, on each of them."""


def _memory_error(subject: Subject) -> Outcome:
    limit = subject.limits.memory
    with subject.sandbox() as asked:
        try:
            saw = asked.ask("allocate", most=2 * limit)
            still = asked.ask("present", paths=["/work"]) == ["/work"]
        except ProbeEndedError:
            return not_held(f"it was killed, and read no MemoryError before {megabytes(limit)}")
    if not saw["refused"]:
        return not_held(f"it got {megabytes(saw['held'])}, of {megabytes(limit)}")
    return judge(
        good=still and saw["held"] < limit,
        happened=f"a MemoryError at {megabytes(saw['held'])} of {megabytes(limit)}; it goes on",
    )


def _memory_together(subject: Subject) -> Outcome:
    limit, each = subject.limits.memory, subject.limits.memory * 2 // 5
    if (ungrouped := subject.without_groups) is not None:
        return ungrouped
    with subject.sandbox() as asked:
        try:
            saw = asked.ask("allocate_together", each=each, processes=NEIGHBOURS)
        except ProbeEndedError:
            return _out_of_memory(asked, limit)
        usage = asked.box.usage()
    wanted = f"{NEIGHBOURS} of {megabytes(each)} each"
    if saw["killed"] == 0:
        return not_held(f"{saw['done']} of {wanted} got it, {megabytes(saw['done'] * each)} of {megabytes(limit)}")
    peak = usage.peak_memory if usage is not None else 0
    return judge(
        good=usage is not None and usage.out_of_memory > 0 and peak <= limit,
        happened=f"of {wanted} the kernel killed {saw['killed']}, at {megabytes(peak)} of {megabytes(limit)}",
    )


def _memory_shared(subject: Subject) -> Outcome:
    limit = subject.limits.memory
    if (ungrouped := subject.without_groups) is not None:
        return ungrouped
    with subject.sandbox() as asked:
        try:
            got = asked.ask("share_memory", size=2 * limit)
        except ProbeEndedError:
            return _out_of_memory(asked, limit)
    return not_held(f"it got {megabytes(got)}, of {megabytes(limit)}")


def _out_of_memory(asked: Asked, limit: int) -> Outcome:
    ending = asked.box.wait_ended(END_SECONDS)
    if ending is None or ending.cause is not Cause.OUT_OF_MEMORY:
        return not_held(f"it ended, but not for its memory: {ending.cause if ending is not None else 'it lives'}")
    at = f"{megabytes(ending.peak_memory)} of {megabytes(limit)}"
    return judge(good=ending.peak_memory <= limit, happened=f"the kernel ended it at {at}, and said why")


def _processor(subject: Subject) -> Outcome:
    share = subject.limits.cpu
    if (ungrouped := subject.without_groups) is not None:
        return ungrouped
    had, throttled = 0.0, 0
    with subject.sandbox(cpu=share) as asked:
        for _ in range(BURNS):
            saw = asked.ask("burn", processes=BURNERS, seconds=BURN_SECONDS)
            had = saw["processor"] / saw["elapsed"]
            usage = asked.box.usage()
            throttled = usage.throttled if usage is not None else 0
            if throttled or had > share + _OVERRUN:
                break
    happened = f"{BURNERS} busy ones had {had:.2f} of a processor, of {share:g}; held back {throttled} times"
    if not throttled and had <= share + _OVERRUN:
        return Outcome(verdict=Verdict.NOT_TRIED, happened=f"{happened}: this machine is too busy to show more")
    return judge(good=throttled > 0 and had <= share + _OVERRUN, happened=happened)


def _processes(subject: Subject) -> Outcome:
    limit = subject.limits.processes
    with subject.sandbox() as asked:
        saw = asked.ask("fork_many", most=2 * limit)
    return judge(
        good=saw["refused"] == errno.EAGAIN and saw["made"] < limit,
        happened=f"{_refused(saw['refused'])} after {saw['made']}, of {limit}",
    )


def _open_files(subject: Subject) -> Outcome:
    limit = subject.limits.open_files
    with subject.sandbox() as asked:
        saw = asked.ask("open_many", most=2 * limit)
    return judge(
        good=saw["refused"] == errno.EMFILE and saw["made"] < limit,
        happened=f"{_refused(saw['refused'])} after {saw['made']}, of {limit}",
    )


def _work(subject: Subject) -> Outcome:
    return _fill(subject, WORK, subject.limits.workspace, subject.limits.files)


def _tmp(subject: Subject) -> Outcome:
    return _fill(subject, TMP, subject.limits.temporary, subject.limits.files // 4)


def _shm(subject: Subject) -> Outcome:
    return _fill(subject, SHM, subject.limits.temporary, subject.limits.files // 4)


def _fill(subject: Subject, folder: str, size: int, files: int) -> Outcome:
    with subject.sandbox() as asked:
        written = asked.ask("fill", folder=folder, most=2 * size)
        made = asked.ask("fill_with_files", folder=folder, most=2 * files)
    full = written["refused"] == errno.ENOSPC and written["made"] <= size
    crowded = made["refused"] == errno.ENOSPC and made["made"] < files
    return judge(
        good=full and crowded,
        happened=f"{_refused(written['refused'])} after {megabytes(written['made'])}, of {megabytes(size)}; "
        f"{_refused(made['refused'])} after {made['made']} files, of {files}",
    )


def _file_size(subject: Subject) -> Outcome:
    with subject.sandbox() as asked:
        answer = asked.ask("make_large_file", size=2 * subject.limits.workspace)
    limit = megabytes(subject.limits.workspace)
    return judge(good=answer == errno.EFBIG, happened=f"{_refused(answer)}, beyond {limit}")


def _raised(subject: Subject) -> Outcome:
    with subject.sandbox() as asked:
        raised = asked.ask("raise_limits")
    return held("none can be") if not raised else not_held(f"{', '.join(raised)} can be")


def _refused(number: int) -> str:
    return errno.errorcode.get(number, str(number)) if number else "nothing refused it"


LIMIT_ATTEMPTS = (
    Attempt(id="memory-error", name="memory", tries="One process allocates more than it may", make=_memory_error),
    Attempt(
        id="memory-together",
        name="memory of all",
        tries="Several processes fill memory at once",
        make=_memory_together,
    ),
    Attempt(id="memory-shared", name="shared memory", tries="Shared pages are filled", make=_memory_shared),
    Attempt(id="processor", name="processor", tries="Processes spin", make=_processor),
    Attempt(id="processes", name="processes", tries="Processes are started without end", make=_processes),
    Attempt(id="open-files", name="open files", tries="Files are opened without end", make=_open_files),
    Attempt(id="work", name=WORK, tries="It is filled with data, then with files", make=_work),
    Attempt(id="tmp", name=TMP, tries="It is filled with data, then with files", make=_tmp),
    Attempt(id="dev-shm", name=SHM, tries="It is filled with data, then with files", make=_shm),
    Attempt(id="file-size", name="file size", tries="A file is made larger than it may be", make=_file_size),
    Attempt(id="limits-fixed", name="limits", tries="Limits are raised from inside", make=_raised),
)
