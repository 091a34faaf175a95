"""Asking the guest that tries its wall."""

import socket
import time
from typing import Any

from pyexec_guest.protocol import Decoder, ProtocolError, encode

PROBER = "pyexec_guest.prober.guest:run"
"""What a sandbox runs to be asked."""

_GULP_BYTES = 65536


class ProbeError(Exception):
    """The guest does not answer as it should; the message says how, as the end of a sentence."""


class ProbeEndedError(ProbeError):
    """The guest ended before it answered."""


def begin(connection: socket.socket, attempt: str, /, **given: Any) -> None:
    """Have a guest make an attempt, without waiting for it.

    Raises:
        ProbeEndedError: It has ended.
    """
    try:
        connection.sendall(encode({"attempt": attempt, "with": given}))
    except OSError as error:
        raise ProbeEndedError("the sandbox has ended") from error


def ask(connection: socket.socket, attempt: str, seconds: float, /, **given: Any) -> Any:
    """Have a guest make an attempt; return what it saw. Blocks.

    Raises:
        ProbeEndedError: It ended before it answered.
        ProbeError: It could not make the attempt, or did not answer in time.
    """
    begin(connection, attempt, **given)
    decoder = Decoder()
    deadline = time.monotonic() + seconds
    while True:
        connection.settimeout(max(0.001, deadline - time.monotonic()))
        try:
            data = connection.recv(_GULP_BYTES)
            messages = decoder.feed(data)
        except TimeoutError as error:
            raise ProbeError(f"there is no answer after {seconds:g} s") from error
        except ConnectionError as error:
            raise ProbeEndedError("the sandbox ended before it answered") from error
        except ProtocolError as error:
            raise ProbeError(f"the answer makes no sense: {error}") from error
        if not data:
            raise ProbeEndedError("the sandbox ended before it answered")
        for message in messages:
            if "saw" not in message:
                raise ProbeError(f"it could not be tried: {message.get('failed')}")
            return message["saw"]
