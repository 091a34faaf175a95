"""Asking the guest of a session about itself, between two turns."""

import secrets
import time
from typing import Any

from pyexec.sandbox.guarding import Loop
from pyexec.walls.bubblewrap.sessions.live import LiveSession

INFO_SECONDS = 5.0


def ask(live: LiveSession) -> Any:
    """Have a guest tell about itself; None when it does not answer in time."""
    loop = Loop()
    turn = secrets.token_hex(16)
    live.turns.append(turn)
    told: list[Any] = []

    def take(frame: dict[str, Any]) -> None:
        if frame.get("t") == "done" and frame.get("turn") == turn:
            told.append(frame.get("info"))
        elif frame.get("t") == "late" and frame.get("turn") in live.turns:
            live.say_late(frame, len(str(frame)))

    try:
        live.connection.listen(loop, take, lambda _why: told.append(None))
        live.connection.send({"op": "info", "turn": turn})
        loop.run_until(lambda: bool(told), time.monotonic() + INFO_SECONDS)
        live.connection.leave()
    finally:
        loop.close()
    return told[0] if told else None
