"""What servers ask the keeper about sessions, and how it answers. Paths are those of sessions' folders."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyexec.walls.bubblewrap.sessions.sessions import Sessions


def answer(sessions: Sessions, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Do what is asked, and tell what came of it.

    `end` (`folder`, `reason`, `renew`): end one. `look` (`folder` of an owner): those that live. `info` (`folder`):
    what the guest of one says about itself.
    """
    folder = Path(str(asked.get("folder")))
    match asked.get("op"):
        case "end":
            return {"ended": sessions.end_in(folder, str(asked.get("reason")), renew=bool(asked.get("renew")))}
        case "look":
            return {"live": sessions.look(folder)}
        case "info":
            return {"info": sessions.info(folder)}
        case other:
            return {"refused": f"unknown: {str(other)[:40]}"}
