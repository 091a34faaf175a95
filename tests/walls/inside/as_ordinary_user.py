"""Run by an ordinary user: puts up a wall and tells what it is like. Arguments: a folder with python, src, packages."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

from pyexec.domain.limits import SandboxLimits
from pyexec.sandbox.forks import Groups, NoGroupsError
from pyexec.sandbox.probing import PROBER
from pyexec.walls.bubblewrap.boxes import Box
from pyexec.walls.bubblewrap.contents import PACKAGES, Inside, plan_for
from pyexec.walls.bubblewrap.program import find_bubblewrap
from pyexec.walls.bubblewrap.proof.proving import prove
from pyexec.walls.bubblewrap.proof.subject import LIMITS, Secret, Subject, Verdict
from pyexec.walls.bubblewrap.python import look_at
from pyexec.walls.bubblewrap.sandboxes import Sandboxes
from pyexec_guest.protocol import MAX_FRAME, Decoder, encode

TESTS = "/opt/pyexec/tests"
LOOK = """
import json, os
status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
found = {name: status[name].strip() for name in ("Uid", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp")}
found["pids"] = sorted(name for name in os.listdir("/proc") if name.isdecimal())
found["map"] = open("/proc/self/uid_map").read().split()
open("/work/a", "w").write("a")
try:
    open("/usr/a", "w")
except OSError as error:
    found["usr"] = error.errno
if os.fork() == 0:
    os.setsid()
    import time; time.sleep(3600)
print(json.dumps(found))
"""


def run(box: Box, code: str) -> str:
    connection = box.sandbox.socket
    connection.settimeout(30)
    connection.sendall(encode({"code": code}))
    decoder = Decoder(MAX_FRAME)
    while True:
        for message in decoder.feed(connection.recv(65536)):
            assert message["error"] is None, message
            return message["out"]


def main(folder: Path) -> None:
    environ = {"LD_LIBRARY_PATH": str(folder / "python/lib")}
    inside = Inside(
        python=look_at(Path(sys.executable), environ),
        packages=None,
        guest="attack_guest:run",
        preloaded=(),
        more={TESTS: folder / "inside"},
        environment={**environ, "PYTHONPATH": f"{PACKAGES}:{TESTS}"},
    )
    try:
        Groups("ordinary", 1 << 30)
        groups = "had"
    except NoGroupsError as error:
        groups = str(error)
    wall = Sandboxes(plan_for(inside, find_bubblewrap(None), None), None, environ, ready=0)
    try:
        boxes = [wall.sandbox(SandboxLimits()) for _ in range(2)]
        looks = [json.loads(run(box, LOOK)) for box in boxes]
        gone = [box.kill() for box in boxes]
        alone = not any(_asleep(folder) for folder in Path("/proc").glob("[0-9]*"))
    finally:
        wall.close()
    told: dict[str, object] = {"groups": groups, "looks": looks, "gone": gone, "alone": alone, "uid": os.getuid()}
    told["waived"] = list(wall.waived)
    told["proof"] = proof(inside, environ)
    sys.stdout.write(json.dumps(told))


def proof(inside: Inside, environ: dict[str, str]) -> dict[str, str]:
    """Put the wall to the proof; return what is not simply held."""
    plan = plan_for(replace(inside, guest=PROBER), find_bubblewrap(None), None)
    secret = Secret(name="SECRET", value="0123456789abcdef")
    wall = Sandboxes(plan, None, {**environ, secret.name: secret.value}, limits=LIMITS, ready=0)
    try:
        subject = Subject(wall, secret=secret, home=Path("/none"), plan=plan, waived=True)
        return {
            one.attempt.id: f"{one.verdict}: {one.happened}"
            for one in prove(subject, 30)
            if one.verdict is not Verdict.HELD
        }
    finally:
        wall.close()


def _asleep(process: Path) -> bool:
    """Tell whether this is a process of this user's sandboxes; those are in other pid namespaces."""
    try:
        mine = process.stat().st_uid == os.getuid()
        return mine and os.readlink(process / "ns/pid") != os.readlink("/proc/self/ns/pid") and _is_fork(process)
    except OSError:
        return False


def _is_fork(process: Path) -> bool:
    status = (process / "status").read_text("utf-8")
    levels = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()
    return len(levels) > 3 and "State:\tZ" not in status


main(Path(sys.argv[1]))
