"""What an execution stands in line for, as its keeper says."""

from pathlib import Path

import anyio

from pyexec.sandbox.keepers import connect

ANSWER_SECONDS = 2.0
_FOR = {
    "turn": "its turn among your executions",
    "session": "its turn in the session",
    "sandbox": "room for one more sandbox",
}


async def standing_in_line(folder: Path) -> str | None:
    """Return in words what the execution of a folder waits for, and where in line it is; None for one that does not."""
    async with connect(folder) as keeper:
        if keeper is None:
            return None
        with anyio.move_on_after(ANSWER_SECONDS):
            match (await keeper.next() or {}).get("waits"):
                case [str(what), int(before)]:
                    place = f"{before} before it" if before else "it is the next"
                    return f"queued: waits for {_FOR.get(what, what)}, {place}"
                case _:
                    pass
    return None
