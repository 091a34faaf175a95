"""Run by root on a machine with control groups of version 2 only: puts up a wall, and tells whether it holds."""

import json
import os
import secrets
import sys
from pathlib import Path

from pyexec.domain.limits import MEGABYTE
from pyexec.sandbox.forks import find_groups
from pyexec.sandbox.probing import PROBER
from pyexec.walls.bubblewrap.contents import USERS, Inside, plan_for
from pyexec.walls.bubblewrap.inside import needs_of
from pyexec.walls.bubblewrap.program import find_bubblewrap
from pyexec.walls.bubblewrap.proof import subject as proof
from pyexec.walls.bubblewrap.proof.endings import ENDING_ATTEMPTS
from pyexec.walls.bubblewrap.proof.identity import IDENTITY_ATTEMPTS
from pyexec.walls.bubblewrap.proof.limits import LIMIT_ATTEMPTS
from pyexec.walls.bubblewrap.proof.proving import make
from pyexec.walls.bubblewrap.python import look_at
from pyexec.walls.bubblewrap.sandboxes import Sandboxes

MARK = "PROOF "


def main(python: Path) -> None:
    environ = {
        "PATH": os.environ["PATH"],
        **{name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ},
    }
    # Such a machine takes ten times as long.
    proof.ANSWER_SECONDS = 100.0
    found = look_at(python, environ)
    inside = Inside(python=found, packages=None, guest=PROBER, preloaded=(), environment=needs_of(found, environ))
    plan = plan_for(inside, find_bubblewrap(None), USERS)
    groups = find_groups(secrets.token_hex(4), 2048 * MEGABYTE)
    secret = proof.Secret(name="SECRET", value=secrets.token_hex(16))
    wall = Sandboxes(plan, groups, environ, limits=proof.LIMITS, ready=0)
    try:
        subject = proof.Subject(wall, secret=secret, home=Path("/none"), plan=plan, waived=False)
        attempts = [*LIMIT_ATTEMPTS, *ENDING_ATTEMPTS, IDENTITY_ATTEMPTS[0]]
        outcomes = {one.id: make(one, subject) for one in attempts}
    finally:
        wall.close()
    told = {
        "tier": groups.tier,
        "waived": list(groups.waived),
        "outcomes": {key: f"{one.verdict}: {one.happened}" for key, one in outcomes.items()},
        "left": [groups.promised(), not groups.remove()],
    }
    sys.stdout.write(f"{MARK}{json.dumps(told)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
