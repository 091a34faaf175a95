"""Start the launcher: `python -I -S <this folder> <control descriptor>`."""

import os
import sys

if __name__ == "__main__":
    # Behind the standard library, so that nothing installed beside us can stand in for it.
    sys.path[:1] = []
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    from pyexec_guest.keeper.launcher import main

    main(int(sys.argv[1]))
