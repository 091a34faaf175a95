"""Two forks of one process draw the same random numbers, unless each of them begins anew."""

import os
import random
import sys
from typing import Any


def begin_anew() -> None:
    """Give every source of randomness that has been imported a state that no other process has."""
    random.seed()
    numpy: Any = sys.modules.get("numpy.random")
    if numpy is not None:
        numpy.seed()
    tempfile: Any = sys.modules.get("tempfile")
    if tempfile is not None:
        # It tells processes apart by their pid, which forks in pid namespaces of their own have in common.
        tempfile._name_sequence = None  # noqa: SLF001 - there is no other way
    multiprocessing: Any = sys.modules.get("multiprocessing")
    if multiprocessing is not None:
        multiprocessing.current_process().authkey = os.urandom(32)
    ssl: Any = sys.modules.get("ssl")
    if ssl is not None:
        # OpenSSL goes by the pid as well.
        ssl.RAND_add(os.urandom(32), 32.0)
