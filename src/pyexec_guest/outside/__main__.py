"""Put up the outer wall: `python -I -S <this folder> <descriptor of the orders> <info descriptor> <control groups>`.

Or take mounts: `python -I -S <this folder> mounter <descriptor of the questions>`.
"""

import os
import sys

if __name__ == "__main__":
    # Behind the standard library, so that nothing installed beside us can stand in for it.
    sys.path[:1] = []
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    if sys.argv[1] == "mounter":
        from pyexec_guest.outside import mounter

        mounter.main(int(sys.argv[2]))
    else:
        from pyexec_guest.outside.start import main

        main(int(sys.argv[1]), int(sys.argv[2]), [int(fd) for fd in sys.argv[3:]])
