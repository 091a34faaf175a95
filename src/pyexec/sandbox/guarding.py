"""The door to what keepers are made of, for a wall that has a keeper of its own."""

from pyexec_guest.keeper.child import StartError, exit_of, signal_name
from pyexec_guest.keeper.connection import GuestConnection
from pyexec_guest.keeper.guarding import PREPARED, Guarding, Orders, note_ended, note_running, outcome_of
from pyexec_guest.keeper.guest import FRAMES, GuestLink, turn_request
from pyexec_guest.keeper.linux import boot_id, start_ticks
from pyexec_guest.keeper.listener import ended_frame
from pyexec_guest.keeper.loop import Loop
from pyexec_guest.keeper.output import OutputPump, readable_bytes
from pyexec_guest.keeper.record import OUTCOME, STARTED
from pyexec_guest.keeper.supervisor import Ending, Usage
from pyexec_guest.keeper.turn import LastPlace, hold_place, leave_place, next_in_line, wake
from pyexec_guest.log import EVENTS, STREAMS, EventWriter
from pyexec_guest.protocol import encode

__all__ = [
    "EVENTS",
    "FRAMES",
    "OUTCOME",
    "PREPARED",
    "STARTED",
    "STREAMS",
    "Ending",
    "EventWriter",
    "Guarding",
    "GuestConnection",
    "GuestLink",
    "LastPlace",
    "Loop",
    "Orders",
    "OutputPump",
    "StartError",
    "Usage",
    "boot_id",
    "encode",
    "ended_frame",
    "exit_of",
    "hold_place",
    "leave_place",
    "next_in_line",
    "note_ended",
    "note_running",
    "outcome_of",
    "readable_bytes",
    "signal_name",
    "start_ticks",
    "turn_request",
    "wake",
]
