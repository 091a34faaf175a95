"""Start the guest: `python <this file>`, with a socket under the descriptor that `PYEXEC_CHANNEL` names.

It is started by its path, in whatever interpreter the user's environment has; nothing but itself is taken from where
it lies.
"""

import os
import sys

CHANNEL = "PYEXEC_CHANNEL"
FILES = "PYEXEC_ARTIFACTS"
NEEDED = ("IPython", "traitlets")

if __name__ == "__main__":
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path[:1] = []
    sys.path.append(own)
    try:
        from pyexec_guest.loop import serve
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in NEEDED:
            raise
        sys.exit(f"This Python has no {error.name}; add ipython to its packages.")
    sys.path.remove(own)
    # As at a prompt: modules that lie in the working directory are found.
    sys.path.insert(0, "")
    sys.argv = [""]
    os.environ.setdefault("MPLBACKEND", "agg")  # Figures are drawn, and no window system is looked for.
    sys.exit(serve(int(os.environ.pop(CHANNEL)), os.environ.get(FILES)))
