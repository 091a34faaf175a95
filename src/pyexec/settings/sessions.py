"""The variables by which an operator sets what sessions may take."""

from pyexec.domain.limits import DAY, MEGABYTE
from pyexec.settings.reading import Variable, number, whole

SESSION_VARIABLES: tuple[Variable, ...] = (
    Variable(
        name="PYEXEC_SESSIONS",
        meaning="How many sessions of one user may be alive; the one not used for the longest time makes room.",
        default="16",
        allowed="a whole number between 1 and 100000",
        read=whole(1, 100_000),
        limit="live",
    ),
    Variable(
        name="PYEXEC_SESSION_WAITING",
        meaning="How many executions may wait for their turn in one session.",
        default="32",
        allowed="a whole number between 0 and 100000",
        read=whole(0, 100_000),
        limit="waiting",
    ),
    Variable(
        name="PYEXEC_SESSION_IDLE_MINUTES",
        meaning="How long a session lives that nobody uses.",
        default="30",
        allowed="a number between 0.01 and 525600",
        read=number(0.01, 525_600, 60.0),
        limit="idle",
    ),
    Variable(
        name="PYEXEC_SESSION_HOURS",
        meaning="How long a session lives at most.",
        default="24",
        allowed="a number between 0.001 and 8760",
        read=number(0.001, 8760, 3600.0),
        limit="lifetime",
    ),
    Variable(
        name="PYEXEC_SESSIONS_WORKSPACE",
        meaning="What the files of all sessions of one user, ended ones included, may come to, in MB.",
        default="4096",
        allowed="a whole number between 1 and 1000000000",
        read=whole(1, 10**9, MEGABYTE),
        limit="workspaces",
    ),
    Variable(
        name="PYEXEC_SESSION_FILES_DAYS",
        meaning="How long the files of a session are kept that has ended.",
        default="7",
        allowed="a number between 0 and 36500",
        read=number(0, 36_500, DAY),
        limit="kept",
    ),
)
