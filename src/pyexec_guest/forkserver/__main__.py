"""Start a fork server: `python -I <this folder> <control descriptor> <guest> <modules to import ahead>`."""

import os
import sys

if __name__ == "__main__":
    # Behind everything else, so that nothing beside us can stand in for it.
    sys.path[:1] = []
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    from pyexec_guest.forkserver.server import main

    main(int(sys.argv[1]), sys.argv[2], sys.argv[3].split(",") if sys.argv[3] else [])
