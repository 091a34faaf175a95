"""A guest for attacks: runs each text it is sent and answers what was printed, or what went wrong."""

import contextlib
import io
import signal
import socket
from typing import Any

from pyexec_guest.protocol import MAX_FRAME, Decoder, encode


def run(fd: int) -> int:
    connection = socket.socket(fileno=fd)
    decoder = Decoder(MAX_FRAME)
    names: dict[str, Any] = {"__name__": "__main__", "CONNECTION": connection}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    while data := connection.recv(65536):
        for message in decoder.feed(data):
            printed = io.StringIO()
            error = None
            try:
                with contextlib.redirect_stdout(printed):
                    exec(compile(message["code"], "<cell>", "exec"), names)
            except SystemExit:
                raise
            except BaseException as raised:  # noqa: BLE001 - told to who asked
                error = f"{type(raised).__name__}: {raised}"
            connection.sendall(encode({"out": printed.getvalue(), "error": error}))
    return 0
