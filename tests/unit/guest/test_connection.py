"""The keeper's end of a guest's channel."""

import socket
import time
from typing import Any

from pyexec_guest.keeper.connection import GuestConnection
from pyexec_guest.keeper.loop import Loop
from pyexec_guest.protocol import GUEST_FRAME, Decoder


def test_what_is_too_large_to_be_sent_before_anybody_listens_is_sent_then() -> None:
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    connection, loop = GuestConnection(ours), Loop()
    text = "x" * 2_000_000
    connection.send({"op": "run", "code": text}, large=True)
    arrived: list[dict[str, Any]] = []
    decoder = Decoder(GUEST_FRAME)

    def take() -> None:
        arrived.extend(decoder.feed(theirs.recv(1 << 20)))

    loop.add_reader(theirs.fileno(), take)
    connection.listen(loop, lambda _message: None, lambda _why: None)
    assert loop.run_until(lambda: bool(arrived), time.monotonic() + 60)
    assert arrived[0]["code"] == text
    connection.hang_up()
    loop.close()
    theirs.close()
