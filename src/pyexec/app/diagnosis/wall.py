"""The wall around sandboxes: whether it can be had, and whether it holds, by trying to get through it."""

import os
import secrets
import sys
import time
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from pyexec.app.diagnosis.checks import Check, Status
from pyexec.domain.errors import PyexecError
from pyexec.domain.limits import MEGABYTE
from pyexec.environments.interpreters import InterpreterFinder
from pyexec.sandbox.forks import Groups, NoGroupsError, Plan, Program
from pyexec.sandbox.probing import PROBER
from pyexec.settings import Settings
from pyexec.walls.bubblewrap.contents import USERS, Inside, plan_for
from pyexec.walls.bubblewrap.obstacles import Obstacle, find_group_obstacles, find_obstacles
from pyexec.walls.bubblewrap.program import find_bubblewrap
from pyexec.walls.bubblewrap.proof.proving import Finding, prove
from pyexec.walls.bubblewrap.proof.subject import LIMITS, Secret, Subject, Verdict
from pyexec.walls.bubblewrap.python import WANTED, look_at
from pyexec.walls.bubblewrap.sandboxes import Sandboxes

WallName = Literal["host", "bubblewrap"]
PROOF_SECONDS = 12.0
BUDGET = 2048 * MEGABYTE
GROUP = "the bubblewrap wall"

_BY_GROUPS = {"memory", "cpu"}
_INTERPRETER_NEEDS = ("PATH", "LD_LIBRARY_PATH")
_STATUS: Mapping[Verdict, Status] = {
    Verdict.HELD: "ok",
    Verdict.NOT_HELD: "fail",
    Verdict.WAIVED: "warn",
    Verdict.NOT_TRIED: "fail",
}
_WORDS = {Verdict.NOT_HELD: "NOT HELD, ", Verdict.WAIVED: "waived, ", Verdict.NOT_TRIED: "could not be tried, "}


def check_wall(
    settings: Settings, finder: InterpreterFinder, wall: WallName | None, waived: Collection[str] = ()
) -> tuple[Check, ...]:
    """Put the wall that is asked for to the proof; where none is, say whether there could be one. Blocks for seconds.

    Args:
        settings: Of whoever wants to know.
        finder: Of the interpreter that sandboxes run on.
        wall: Which one; None: none is asked for.
        waived: The limits that the operator has waived, as `KeeperOrders` has them.
    """
    if wall == "host":
        return (Check(id="wall", name="wall", status="ok", message="None: code may do what you may, on purpose."),)
    if not sys.platform.startswith("linux"):
        return (_elsewhere(wanted=wall is not None),)
    if wall is None:
        return (_in_one_line(settings, finder),)
    return tuple(_in_full(settings, finder, waived=set(waived) >= _BY_GROUPS))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Material:
    """What a wall is made of."""

    plan: Plan
    environ: Mapping[str, str]


def _elsewhere(*, wanted: bool) -> Check:
    return Check(
        id="wall",
        name="wall",
        status="fail" if wanted else "ok",
        message="Code runs without one. The bubblewrap wall needs Linux.",
    )


def _in_one_line(settings: Settings, finder: InterpreterFinder) -> Check:
    """Have one sandbox, without looking at what it can do."""
    began = time.monotonic()
    try:
        material = _material(settings, finder, find_bubblewrap(settings.environ.get("PATH")))
        with _groups() as groups, _sandboxes(material, groups) as sandboxes:
            sandboxes.sandbox().close()
    except (PyexecError, NoGroupsError) as error:
        why = error.message if isinstance(error, PyexecError) else f"No control groups: {error}."
        message = f"Code runs without one, and the bubblewrap wall cannot be had: {why}"
        hint = "`pyexec doctor --wall bubblewrap` says what to do. Nothing else needs it."
        return Check(id="wall", name="wall", status="ok", message=message, hint=hint)
    taken = (time.monotonic() - began) * 1000
    message = f"Code runs without one. The bubblewrap wall can be had here: it was up in {taken:.0f} ms."
    hint = "`pyexec doctor --wall bubblewrap` puts it to the proof."
    return Check(id="wall", name="wall", status="ok", message=message, hint=hint)


def _in_full(settings: Settings, finder: InterpreterFinder, *, waived: bool) -> Iterator[Check]:
    try:
        bwrap = find_bubblewrap(settings.environ.get("PATH"))
    except PyexecError as error:
        yield _fails("wall", error.message, error.hint)
        return
    material = None
    try:
        material = _material(settings, finder, bwrap)
        try:
            with _groups() as groups:
                yield _line("control-groups", "control groups", "ok", "They can be made.")
                yield from _prove(settings, material, groups, waived=waived)
        except NoGroupsError as error:
            message = f"None can be had: {error}."
            yield _line("control-groups", "control groups", "warn" if waived else "fail", message)
            if not waived:
                yield from map(_in_the_way, find_group_obstacles())
            yield from _prove(settings, material, None, waived=waived)
    except PyexecError as error:
        yield _fails("wall", error.message, error.hint)
        yield from map(_in_the_way, find_obstacles(bwrap, material.plan if material is not None else None))


def _prove(settings: Settings, material: _Material, groups: Groups | None, *, waived: bool) -> Iterator[Check]:
    secret = Secret(name=f"PYEXEC_DOCTOR_{secrets.token_hex(4)}".upper(), value=secrets.token_hex(16))
    began = time.monotonic()
    with _sandboxes(material, groups, {secret.name: secret.value}) as sandboxes:
        sandboxes.warm()
        taken = (time.monotonic() - began) * 1000
        bwrap = os.path.join(material.plan.bwrap.root, material.plan.bwrap.path)
        yield _line("wall", "wall", "ok", f"Up in {taken:.0f} ms, by {bwrap}")
        subject = Subject(sandboxes, secret=secret, home=settings.home, plan=material.plan, waived=waived)
        yield from map(_tried, prove(subject, PROOF_SECONDS))


def _material(settings: Settings, finder: InterpreterFinder, bwrap: Program) -> _Material:
    environ = {name: settings.environ[name] for name in _INTERPRETER_NEEDS if name in settings.environ}
    python = look_at(finder.find(WANTED).path, environ)
    inside = Inside(python=python, packages=None, guest=PROBER, preloaded=())
    return _Material(plan=plan_for(inside, bwrap, USERS if os.geteuid() == 0 else None), environ=environ)


@contextmanager
def _groups() -> Generator[Groups]:
    groups = Groups(f"doctor-{os.getpid()}-{secrets.token_hex(4)}", BUDGET)
    try:
        yield groups
    finally:
        groups.remove()


@contextmanager
def _sandboxes(
    material: _Material, groups: Groups | None, more: Mapping[str, str] | None = None
) -> Generator[Sandboxes]:
    environ = {**material.environ, **(more or {})}
    sandboxes = Sandboxes(material.plan, groups, environ, limits=LIMITS, ready=0)
    try:
        yield sandboxes
    finally:
        sandboxes.close()


def _tried(finding: Finding) -> Check:
    words = _WORDS.get(finding.verdict, "")
    return Check(
        id=f"wall.{finding.attempt.id}",
        name=finding.attempt.name,
        group=f"a sandbox: {finding.about}",
        status=_STATUS[finding.verdict],
        verdict=finding.verdict.value,
        message=f"{finding.attempt.tries}: {words}{finding.happened}.",
    )


def _in_the_way(obstacle: Obstacle) -> Check:
    return _fails(f"obstacle.{obstacle.id}", obstacle.what, obstacle.remedy, "in the way")


def _fails(key: str, message: str, hint: str | None, name: str | None = None) -> Check:
    return Check(
        id=key if key == "wall" else f"wall.{key}",
        name=name or key.replace("-", " "),
        group=GROUP,
        status="fail",
        message=message,
        hint=hint,
    )


def _line(key: str, name: str, status: Status, message: str) -> Check:
    return Check(id=key if key == "wall" else f"wall.{key}", name=name, group=GROUP, status=status, message=message)
