"""Print so many bytes as lines of 100 characters; say on stderr how many seconds that took."""

import sys
import time

LINE = "x" * 99

lines = int(sys.argv[1]) // (len(LINE) + 1)
started = time.perf_counter()
for _number in range(lines):
    print(LINE)
sys.stdout.flush()
print(time.perf_counter() - started, file=sys.stderr)
