"""Put up an outer wall that leaves the machine's network where it is."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path[:1] = []
sys.path.append(str(Path(os.environ["PYEXEC_SOURCE"])))

from pyexec_guest.outside import outerwall  # noqa: E402
from pyexec_guest.outside.start import main  # noqa: E402

arguments = outerwall._arguments


def without_network(*given: Any) -> Iterator[str]:
    return (argument for argument in arguments(*given) if argument != "--unshare-net")


outerwall._arguments = without_network
main(int(sys.argv[1]), int(sys.argv[2]), [int(fd) for fd in sys.argv[3:]])
