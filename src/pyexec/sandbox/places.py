"""The door to sockets by the folder they lie in."""

from pyexec_guest.keeper.places import SOCKET_NAME, bind_in, connect_in, may_talk

__all__ = ["SOCKET_NAME", "bind_in", "connect_in", "may_talk"]
