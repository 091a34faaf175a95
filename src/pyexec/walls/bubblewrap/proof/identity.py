"""Attempts to be somebody, and whether each sandbox is somebody else."""

import errno
import os
from typing import Any

from pyexec.walls.bubblewrap.proof.subject import Attempt, Outcome, Subject, held, judge, not_held, waived

ABSENT = frozenset({"clone3", "landlock_create_ruleset"})
_NO_CAPABILITIES = frozenset({"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"})
_INSIDE = "1000"
_NOBODYS = "65534"
"""How a group is called inside that there is no name for."""

_FILTERED = "2"
_EXPECTED = ["0 /dev/null", "1 pipe", "2 pipe", "3 socket"]


def _privileges(subject: Subject) -> Outcome:
    # Only root can leave its groups. Those of anybody else come along, as the user itself does: see `_user`.
    allowed = set[str]() if subject.plan.users is not None else {_INSIDE, _NOBODYS}
    with subject.sandbox() as asked:
        saw = asked.ask("hold")
    wrong = [problem for who, status in _own_and_first(saw).items() for problem in _wrong(who, status, allowed)]
    wrong += [f"{name} works" for name in saw["changed"]]
    return held("no capabilities, none to be had, user 1000 only") if not wrong else not_held("; ".join(wrong))


def _wrong(who: str, status: dict[str, str], allowed: set[str]) -> list[str]:
    wrong = [f"{who} has {name} {status[name]}" for name in sorted(_NO_CAPABILITIES) if int(status[name], 16)]
    if status["NoNewPrivs"] != "1":
        wrong.append(f"{who} can get new privileges")
    wrong += [f"{who} has {name} {status[name]}" for name in ("Uid", "Gid") if set(status[name].split()) != {_INSIDE}]
    if not allowed.issuperset(status["Groups"].split()):
        wrong.append(f"{who} is in the groups {status['Groups']}")
    return wrong


def _setuid(subject: Subject) -> Outcome:
    with subject.sandbox() as asked:
        saw = asked.ask("run_as_root")
    ran: dict[str, str] = saw["ran"]
    wrong = [f"{path} runs as {users.split()[1]}" for path, users in ran.items() if set(users.split()) != {_INSIDE}]
    wrong += [f"{place} would let one" for place in saw["mounts"]]
    happened = "there is none here, and no mount would let it"
    for path in ran:
        happened = f"{path} runs as {_INSIDE}, not root"
    return held(happened) if not wrong else not_held("; ".join(wrong))


def _system_calls(subject: Subject) -> Outcome:
    with subject.sandbox() as asked:
        answers: dict[str, int] = asked.ask("call")
        filtered = {name: asked_of["Seccomp"] for name, asked_of in _own_and_first(asked.ask("hold")).items()}
    wrong = [
        f"{name} ({errno.errorcode.get(answer, str(answer)) if answer else 'works'})"
        for name, answer in answers.items()
        if answer != (errno.ENOSYS if name in ABSENT else errno.EPERM)
    ]
    wrong += [f"{name} has no filter" for name, mode in filtered.items() if mode != _FILTERED]
    absent = ABSENT.intersection(answers)
    good = f"{len(answers) - len(absent)} answered EPERM, {len(absent)} ENOSYS"
    return held(good) if not wrong else not_held(f"not refused: {', '.join(wrong)}")


def _own_and_first(saw: dict[str, Any]) -> dict[str, dict[str, str]]:
    return {"it": saw["own"], "its first process": saw["first"]}


def _user(subject: Subject) -> Outcome:
    with subject.sandbox() as one, subject.sandbox() as other:
        first, second, ours = one.user(), other.user(), os.geteuid()
    if subject.plan.users is None:
        return waived(f"it is {first}, who runs pyexec, with their groups: only root has other users to give")
    if ours in (first, second):
        return not_held(f"one is {ours}, who runs pyexec")
    return judge(
        good=first != second,
        happened=f"{first} and {second} on this machine" if first != second else f"two sandboxes are {first}",
    )


def _randomness(subject: Subject) -> Outcome:
    with subject.sandbox() as one, subject.sandbox() as other:
        first, second = one.ask("draw"), other.ask("draw")
    same = [name for name, value in first.items() if value == second[name]]
    if same:
        return not_held(f"the same from {', '.join(same)}")
    return held(f"they differ, from {len(first)} sources")


def _descriptors(subject: Subject) -> Outcome:
    with subject.sandbox() as asked:
        saw: list[str] = asked.ask("descriptors")
    more = [one for one in saw if one not in _EXPECTED]
    return judge(
        good=saw == _EXPECTED,
        happened="its input, its output and its connection" if not more else f"these too: {', '.join(more)}",
    )


IDENTITY_ATTEMPTS = (
    Attempt(id="privileges", name="privileges", tries="Its own are counted, others taken", make=_privileges),
    Attempt(id="setuid", name="set-uid programs", tries="One is run", make=_setuid),
    Attempt(id="system-calls", name="system calls", tries="Calls that lead out are made", make=_system_calls),
    Attempt(id="user", name="user", tries="Two sandboxes are looked at from outside", make=_user),
    Attempt(id="randomness", name="random numbers", tries="Two sandboxes draw some", make=_randomness),
    Attempt(id="descriptors", name="descriptors", tries="What it has open is listed", make=_descriptors),
)
