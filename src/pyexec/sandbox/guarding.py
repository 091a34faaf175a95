"""The door to what keepers are made of, for a wall that has a keeper of its own."""

from pyexec_guest.keeper.child import StartError, exit_of, signal_name
from pyexec_guest.keeper.connection import GuestConnection
from pyexec_guest.keeper.guarding import PREPARED, Guarding, receive_orders
from pyexec_guest.keeper.guest import GuestLink, turn_request
from pyexec_guest.keeper.linux import boot_id, start_ticks
from pyexec_guest.keeper.loop import Loop
from pyexec_guest.keeper.output import OutputPump
from pyexec_guest.keeper.supervisor import Ending, Usage
from pyexec_guest.keeper.turn import LastPlace, hold_place
from pyexec_guest.protocol import encode

__all__ = [
    "PREPARED",
    "Ending",
    "Guarding",
    "GuestConnection",
    "GuestLink",
    "LastPlace",
    "Loop",
    "OutputPump",
    "StartError",
    "Usage",
    "boot_id",
    "encode",
    "exit_of",
    "hold_place",
    "receive_orders",
    "signal_name",
    "start_ticks",
    "turn_request",
]
