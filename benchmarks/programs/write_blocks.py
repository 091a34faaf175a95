"""Write so many bytes in blocks of 1 MB; say on stderr how many seconds that took."""

import sys
import time

BLOCK = b"x" * 999_999 + b"\n"

blocks = int(sys.argv[1]) // len(BLOCK)
started = time.perf_counter()
for _number in range(blocks):
    rest = memoryview(BLOCK)
    while rest:  # Unbuffered, the interpreter may write less than it was given.
        rest = rest[sys.stdout.buffer.write(rest) :]
sys.stdout.flush()
print(time.perf_counter() - started, file=sys.stderr)
