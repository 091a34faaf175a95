"""What servers ask the keeper about sessions, and how it answers. Paths are those of sessions' folders."""

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyexec.domain.errors import PyexecError
from pyexec.sandbox.guarding import encode
from pyexec.storage.sessions import SessionFolder
from pyexec.walls.bubblewrap.sessions.sessions import Sessions

WORKSPACE = "workspace"


def reply(sessions: Sessions, asked: Mapping[str, Any], connection: socket.socket) -> None:
    """Do what is asked, and tell what came of it; see `answer`.

    `workspace` (`folder`): hand out the root of its workspace. The descriptor goes with the answer, and as long as
    anybody has it, the workspace stays mounted.
    """
    if asked.get("op") != WORKSPACE:
        connection.sendall(encode(answer(sessions, asked)))
        return
    folder = SessionFolder(Path(str(asked.get("folder"))))
    try:
        share = sessions.share(folder.path.parent)
        with sessions.workspace(folder) as found:
            told = {"room": found.room(), "used": share.used, "allowed": share.allowed}
            socket.send_fds(connection, [encode(told)], [found.root])
    except PyexecError as error:
        connection.sendall(encode({"refused": error.sentence()}))


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
