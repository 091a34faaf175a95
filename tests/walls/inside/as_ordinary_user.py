"""Run by an ordinary user: puts up a wall and tells what it is like. Arguments: a folder with python, src, packages."""

import json
import os
import sys
import tempfile
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

from pyexec.domain.errors import WallUnavailableError
from pyexec.domain.limits import MEGABYTE, SandboxLimits
from pyexec.domain.sandboxes import WAIVABLE
from pyexec.sandbox.forks import Groups
from pyexec.sandbox.probing import PROBER
from pyexec.walls.bubblewrap.boxes import Box
from pyexec.walls.bubblewrap.contents import PACKAGES, Inside, plan_for
from pyexec.walls.bubblewrap.folders import Folder
from pyexec.walls.bubblewrap.limits import groups_for
from pyexec.walls.bubblewrap.program import find_bubblewrap
from pyexec.walls.bubblewrap.proof.proving import prove
from pyexec.walls.bubblewrap.proof.subject import LIMITS, Secret, Subject, Verdict
from pyexec.walls.bubblewrap.python import look_at
from pyexec.walls.bubblewrap.sandboxes import Sandboxes
from pyexec.walls.bubblewrap.workspaces import Workspaces
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

# A file of no name, which nobody has mapped: neither a limit of a process nor the memory of one shows it.
BOMB = """
import os
fd = os.memfd_create("bomb")
for _ in range(96):
    os.write(fd, bytes(1 << 20))
print(os.fstat(fd).st_size >> 20)
"""


def run(box: Box, code: str) -> str:
    connection = box.sandbox.socket
    connection.settimeout(30)
    connection.sendall(encode({"code": code}))
    decoder = Decoder(MAX_FRAME)
    while True:
        data = connection.recv(65536)
        if not data:
            raise ConnectionResetError
        for message in decoder.feed(data):
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
    told: dict[str, object] = {"uid": os.getuid(), "refused": None}
    try:
        groups: Groups = groups_for("ordinary", 1 << 32, ("cpu",))
    except WallUnavailableError as error:
        told["refused"] = [error.message, error.hint]
        groups = groups_for("ordinary", 1 << 32, WAIVABLE)
    wall = Sandboxes(plan_for(inside, find_bubblewrap(None), None), groups, environ, ready=0)
    try:
        boxes = [wall.sandbox(SandboxLimits()) for _ in range(2)]
        told["looks"] = [json.loads(run(box, LOOK)) for box in boxes]
        told["members"] = [len(box.group.members()) if box.group is not None else 0 for box in boxes]
        told["usages"] = [asdict(usage) for box in boxes if (usage := box.usage()) is not None]
        told["gone"] = [box.kill() for box in boxes]
        told["alone"] = not any(_asleep(folder) for folder in Path("/proc").glob("[0-9]*"))
        told["folders"] = folders(wall)
        told["ends"] = [_bombed(wall.sandbox(SandboxLimits(memory=memory * MEGABYTE))) for memory in (64, 512)]
    finally:
        wall.close()
    told["proof"] = proof(inside, groups, environ)
    told |= {"waived": list(wall.waived), "tier": groups.tier, "left": [groups.promised(), not groups.remove()]}
    sys.stdout.write(json.dumps(told))


def proof(inside: Inside, groups: Groups, environ: dict[str, str]) -> dict[str, str]:
    """Put the wall to the proof; return what is not simply held."""
    plan = plan_for(replace(inside, guest=PROBER), find_bubblewrap(None), None)
    secret = Secret(name="SECRET", value="0123456789abcdef")
    wall = Sandboxes(plan, groups, {**environ, secret.name: secret.value}, limits=LIMITS, ready=0)
    try:
        subject = Subject(wall, secret=secret, home=Path("/none"), plan=plan, waived=True)
        return {
            one.attempt.id: f"{one.verdict}: {one.happened}"
            for one in prove(subject, 30)
            if one.verdict is not Verdict.HELD
        }
    finally:
        wall.close()


FOLDERS = """
import json, os
open("new", "w").write("written")
def refused(attempt):
    try:
        attempt()
    except OSError as error:
        return error.errno
print(json.dumps({
    "cwd": os.getcwd(), "owner": os.stat("new").st_uid, "seen": open("/data/sales/a").read(),
    "data": refused(lambda: open("/data/sales/new", "w")), "above": os.listdir("/workspace/.."),
    "places": [os.listdir(place) for place in ("/packages", "/code", "/data")],
    "options": {line.split()[4]: line.split()[5] for line in open("/proc/self/mountinfo")
                if line.split()[4] in ("/workspace", "/data/sales")},
}))
"""


def folders(wall: Sandboxes) -> dict[str, object]:
    """Tell what folders of this machine are like in a sandbox, and in the next one that has them."""
    with tempfile.TemporaryDirectory(prefix="pe-user-", dir="/var/tmp") as name:
        workspace, data = Path(name, "written"), Path(name, "data")
        for folder in (workspace, data):
            folder.mkdir()
        (data / "a").write_text("a")
        given = (
            Folder(place="/workspace", source=workspace, writable=True),
            Folder(place="/data/sales", source=data, programs=False),
        )
        box = wall.sandbox(SandboxLimits(), given)
        found = json.loads(run(box, FOLDERS))
        box.close()
        box = wall.sandbox(SandboxLimits(), given)
        found["next"] = run(box, "print(open('new').read()); open('new', 'a').write('again')")
        box.close()
        found["here"] = [(workspace / "new").read_text(), (workspace / "new").stat().st_uid]
        found["watched"] = watched(wall, Path(name))
        mounts = Path("/proc/self/mountinfo").read_text("utf-8")
        return found | {"mounted": name in mounts}


def watched(wall: Sandboxes, home: Path) -> list[object]:
    """Tell why a workspace has no hard size here, and what becomes of one that there is too much in."""
    workspaces = Workspaces(os.environ)
    workspace = workspaces.open(home, 8 * MEGABYTE)
    with workspace.opened() as folder:
        box = wall.sandbox(SandboxLimits(), [folder])
    workspace.watch(box)
    with suppress(ConnectionError):
        run(box, "open('a', 'wb').write(bytes(9 << 20)); import time; time.sleep(30)")
    ended = box.wait_ended(30)
    box.close()
    used = workspace.used() >= 9 * MEGABYTE
    workspace.remove()
    return [workspaces.obstacle, ended and ended.cause, box.reason, used, sorted(os.listdir(home))]


def _bombed(box: Box) -> dict[str, object] | None:
    """Let it take 96 MB; tell how it ended, and None where it did not."""
    try:
        with suppress(ConnectionError):
            run(box, BOMB)
        ending = box.wait_ended(0 if box.limits.memory > 96 * MEGABYTE else 30)
        return None if ending is None else asdict(ending)
    finally:
        box.close()


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


sys.stdin.readline()  # By then this process is where it shall be.
main(Path(sys.argv[1]))
