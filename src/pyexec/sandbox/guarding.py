"""The door to what keepers are made of, for a wall that has a keeper of its own."""

from pyexec_guest.keeper.child import StartError, exit_of, signal_name
from pyexec_guest.keeper.guarding import Guarding, receive_orders
from pyexec_guest.keeper.guest import GuestLink
from pyexec_guest.keeper.linux import boot_id, start_ticks
from pyexec_guest.keeper.loop import Loop
from pyexec_guest.keeper.output import OutputPump
from pyexec_guest.keeper.places import SOCKET_NAME, bind_in, connect_in, may_talk
from pyexec_guest.keeper.supervisor import Ending, Usage

__all__ = [
    "SOCKET_NAME",
    "Ending",
    "Guarding",
    "GuestLink",
    "Loop",
    "OutputPump",
    "StartError",
    "Usage",
    "bind_in",
    "boot_id",
    "connect_in",
    "exit_of",
    "may_talk",
    "receive_orders",
    "signal_name",
    "start_ticks",
]
