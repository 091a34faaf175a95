"""A guest that tries its wall: it is asked for one attempt after the other, and answers what it saw.

It needs the standard library only, so that a wall can be tried before there is any environment.
"""

import socket
from collections.abc import Callable
from typing import Any

from pyexec_guest.prober import lasting, limits, outside, privileges
from pyexec_guest.protocol import Decoder, encode

ATTEMPTS: "dict[str, Callable[..., Any]]" = {
    attempt.__name__: attempt
    for attempt in (
        limits.allocate,
        limits.allocate_together,
        limits.share_memory,
        limits.burn,
        limits.fork_many,
        limits.open_many,
        limits.fill,
        limits.fill_with_files,
        limits.make_large_file,
        limits.raise_limits,
        lasting.turn_deaf,
        lasting.spin,
        lasting.leave_survivors,
        outside.connect,
        outside.make_sockets,
        outside.namespaces,
        outside.processes,
        outside.write_everywhere,
        outside.change_system,
        outside.present,
        outside.devices,
        outside.draw,
        outside.descriptors,
        outside.environment,
        outside.leave_traces,
        outside.find_traces,
        privileges.hold,
        privileges.run_as_root,
        privileges.call,
    )
}


def run(fd: int) -> int:
    """Serve attempts until the other side hangs up.

    Args:
        fd: A stream socket: frames `{"attempt": name, "with": {…}}` come, `{"saw": …}` or `{"failed": text}` go.
    """
    decoder = Decoder()
    with socket.socket(fileno=fd) as connection:
        while data := connection.recv(65536):
            for message in decoder.feed(data):
                connection.sendall(encode(_try(message)))
    return 0


def _try(message: "dict[str, Any]") -> "dict[str, Any]":
    try:
        return {"saw": ATTEMPTS[message["attempt"]](**message["with"])}
    except Exception as error:  # noqa: BLE001 - told to who asked
        return {"failed": f"{type(error).__name__}: {error}"}
