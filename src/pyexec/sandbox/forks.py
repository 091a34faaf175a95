"""The door to fork servers and control groups, for walls that are made of them."""

from pyexec_guest.orders import MOST_FOLDERS, NAMED, PACKAGES, PLACES, WORKSPACE, News, Order, Report, is_name, is_place
from pyexec_guest.outside.forks import Entrances, ForkServer, ForkServerGoneError, NotMadeError, Sandbox
from pyexec_guest.outside.groups.choice import find_groups
from pyexec_guest.outside.groups.model import Group, GroupLimits, Groups, NoGroupsError, NoRoomError, Spent, Usage
from pyexec_guest.outside.groups.sight import Sight
from pyexec_guest.outside.groups.watched import Groups as WatchedGroups
from pyexec_guest.outside.plan import Plan, Program, Users

__all__ = [
    "MOST_FOLDERS",
    "NAMED",
    "PACKAGES",
    "PLACES",
    "WORKSPACE",
    "Entrances",
    "ForkServer",
    "ForkServerGoneError",
    "Group",
    "GroupLimits",
    "Groups",
    "News",
    "NoGroupsError",
    "NoRoomError",
    "NotMadeError",
    "Order",
    "Plan",
    "Program",
    "Report",
    "Sandbox",
    "Sight",
    "Spent",
    "Usage",
    "Users",
    "WatchedGroups",
    "find_groups",
    "is_name",
    "is_place",
]
