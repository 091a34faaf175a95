"""The wall around sandboxes: whether it can be had, and whether it holds, by trying to get through it."""

import os
import secrets
import sys
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from pyexec.app.diagnosis.checks import Check, Status
from pyexec.app.diagnosis.workspaces import check_workspaces
from pyexec.domain.errors import PyexecError
from pyexec.domain.limits import MEGABYTE
from pyexec.domain.sandboxes import WAIVABLE, WallName
from pyexec.environments.interpreters import InterpreterFinder
from pyexec.sandbox.forks import Groups, NoGroupsError, Plan, Program, WatchedGroups, find_groups
from pyexec.sandbox.probing import PROBER
from pyexec.settings import Settings
from pyexec.walls.bubblewrap.contents import USERS, Inside, plan_for
from pyexec.walls.bubblewrap.inside import needs_of
from pyexec.walls.bubblewrap.obstacles import Obstacle, find_group_obstacles, find_obstacles
from pyexec.walls.bubblewrap.program import find_bubblewrap
from pyexec.walls.bubblewrap.proof.proving import Finding, prove
from pyexec.walls.bubblewrap.proof.subject import LIMITS, Secret, Subject, Verdict
from pyexec.walls.bubblewrap.python import look_at
from pyexec.walls.bubblewrap.sandboxes import Sandboxes

PROOF_SECONDS = 12.0
BUDGET = 2048 * MEGABYTE
GROUP = "the bubblewrap wall"

_INTERPRETER_NEEDS = ("PATH", "LD_LIBRARY_PATH")
_STATUS: Mapping[Verdict, Status] = {
    Verdict.HELD: "ok",
    Verdict.NOT_HELD: "fail",
    Verdict.WAIVED: "warn",
    Verdict.NOT_TRIED: "fail",
}
_WORDS = {Verdict.NOT_HELD: "NOT HELD, ", Verdict.WAIVED: "waived, ", Verdict.NOT_TRIED: "could not be tried, "}


def check_wall(settings: Settings, finder: InterpreterFinder, wall: WallName | None) -> tuple[Check, ...]:
    """Put the wall that is asked for to the proof; where none is, say whether there could be one. Blocks for seconds.

    Args:
        settings: Of whoever wants to know.
        finder: Of the interpreter that sandboxes run on.
        wall: Which one; None: none is asked for. That there can be none is a failure then only where the server offers
            what runs in sandboxes.
    """
    if wall == "host" or (wall is None and settings.sandboxes.wall == "host"):
        message = "None, by your word: execute_python runs code that may do what you may."
        return (Check(id="wall", name="wall", status="ok", message=message),)
    wanted = wall is not None or "execute" in settings.toolsets
    if not sys.platform.startswith("linux"):
        message = "There are no sandboxes here: the bubblewrap wall needs Linux."
        return (Check(id="wall", name="wall", status="fail" if wanted else "ok", message=message),)
    if wall is None:
        return (_in_one_line(settings, finder, wanted=wanted),)
    return tuple(_in_full(settings, finder))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Material:
    """What a wall is made of."""

    plan: Plan
    environ: Mapping[str, str]


def _in_one_line(settings: Settings, finder: InterpreterFinder, *, wanted: bool) -> Check:
    """Have one sandbox, without looking at what it can do."""
    began = time.monotonic()
    try:
        material = _material(settings, finder, find_bubblewrap(settings.environ.get("PATH")))
        with _groups(settings) as groups, _sandboxes(material, groups) as sandboxes:
            sandboxes.sandbox().close()
    except (PyexecError, NoGroupsError) as error:
        why = error.message if isinstance(error, PyexecError) else f"Limits cannot be held: {error}."
        message = f"The bubblewrap wall, for the sandboxes of execute_python, cannot be had here. {why}"
        hint = "`pyexec doctor --wall bubblewrap` says what to do. Nothing else needs it."
        return Check(id="wall", name="wall", status="fail" if wanted else "ok", message=message, hint=hint)
    taken = (time.monotonic() - began) * 1000
    message = f"The bubblewrap wall, for the sandboxes of execute_python, can be had here: up in {taken:.0f} ms."
    hint = "`pyexec doctor --wall bubblewrap` puts it to the proof."
    return Check(id="wall", name="wall", status="ok", message=message, hint=hint)


def _in_full(settings: Settings, finder: InterpreterFinder) -> Iterator[Check]:
    try:
        bwrap = find_bubblewrap(settings.environ.get("PATH"))
    except PyexecError as error:
        yield _fails("wall", error.message, error.hint)
        return
    material = None
    try:
        material = _material(settings, finder, bwrap)
        try:
            with _groups(settings, allowed=False) as groups:
                yield _line("control-groups", "control groups", "ok", "They can be made.")
                yield from _prove(settings, material, groups)
        except NoGroupsError as error:
            waived = _may_be_missing(settings)
            message = f"None can be had: {error}."
            yield _line("control-groups", "control groups", "warn" if waived else "fail", message)
            if not waived:
                yield from map(_in_the_way, find_group_obstacles())
            yield from _prove(settings, material, WatchedGroups(BUDGET))
    except PyexecError as error:
        yield _fails("wall", error.message, error.hint)
        yield from map(_in_the_way, find_obstacles(bwrap, material.plan if material is not None else None))


def _prove(settings: Settings, material: _Material, groups: Groups) -> Iterator[Check]:
    secret = Secret(name=f"PYEXEC_DOCTOR_{secrets.token_hex(4)}".upper(), value=secrets.token_hex(16))
    began = time.monotonic()
    with _sandboxes(material, groups, {secret.name: secret.value}) as sandboxes:
        sandboxes.warm()
        taken = (time.monotonic() - began) * 1000
        bwrap = os.path.join(material.plan.bwrap.root, material.plan.bwrap.path)
        yield _line("wall", "wall", "ok", f"Up in {taken:.0f} ms, by {bwrap}")
        yield check_workspaces(material.environ, GROUP)
        subject = Subject(
            sandboxes, secret=secret, home=settings.home, plan=material.plan, waived=_may_be_missing(settings)
        )
        yield from map(_tried, prove(subject, PROOF_SECONDS))


def _material(settings: Settings, finder: InterpreterFinder, bwrap: Program) -> _Material:
    environ = {name: settings.environ[name] for name in _INTERPRETER_NEEDS if name in settings.environ}
    python = look_at(finder.find(settings.sandboxes.python).path, environ)
    inside = Inside(python=python, packages=None, guest=PROBER, preloaded=(), environment=needs_of(python, environ))
    return _Material(plan=plan_for(inside, bwrap, USERS if os.geteuid() == 0 else None), environ=environ)


@contextmanager
def _groups(settings: Settings, *, allowed: bool = True) -> Generator[Groups]:
    """Have control groups of the doctor's own, or a watcher where there can be none and that is allowed.

    Raises:
        NoGroupsError: There can be none.
    """
    try:
        groups = find_groups(f"doctor-{os.getpid()}-{secrets.token_hex(4)}", BUDGET)
    except NoGroupsError:
        if not (allowed and _may_be_missing(settings)):
            raise
        groups = WatchedGroups(BUDGET)
    try:
        yield groups
    finally:
        groups.remove()


def _may_be_missing(settings: Settings) -> bool:
    return WAIVABLE.keys() <= set(settings.sandboxes.waived)


@contextmanager
def _sandboxes(material: _Material, groups: Groups, more: Mapping[str, str] | None = None) -> Generator[Sandboxes]:
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
