"""Start the runner: `python -I -S <this file> ...`, with its orders on standard input.

The program of an execution that is a benchmark: it runs the programs that are to be measured, one at a time.
"""

import os
import sys

if __name__ == "__main__":
    # Behind the standard library, so that nothing installed beside us can stand in for it. This is run as a file, not
    # as a folder: that would need modules, and they memory, of their own.
    folder = os.path.abspath(__file__)
    for _level in range(4):
        folder = os.path.dirname(folder)
    sys.path.append(folder)
    from pyexec.benchmarks.runner.running import main

    sys.exit(main())
