"""What people do in sandboxes works in them: a wall that stops it is of no use."""

import pytest

from pyexec.domain.limits import SandboxLimits
from tests.walls.bubblewrap import AttackedWall
from tests.walls.interface import Wall, run

pytestmark = pytest.mark.root

THREADS = """
import concurrent.futures, threading
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    print(sum(pool.map(lambda n: n * n, range(100))))
"""

PROCESSES = """
import concurrent.futures, multiprocessing
for method in ("fork", "spawn", "forkserver"):
    with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context(method)) as pool:
        print(pool.submit(sum, [1, 2, 3]).result())
with multiprocessing.get_context("spawn").Manager() as manager:
    shared = manager.dict(a=1)
    print(shared["a"])
import multiprocessing.shared_memory
block = multiprocessing.shared_memory.SharedMemory(create=True, size=1000)
block.buf[0] = 7
print(block.buf[0])
block.close(); block.unlink()
"""

PROGRAMS = """
import subprocess, sys
print(subprocess.run("echo hello | tr a-z A-Z", shell=True, capture_output=True, text=True).stdout, end="")
print(subprocess.run([sys.executable, "-c", "import numpy; print(numpy.arange(3).sum())"],
                     capture_output=True, text=True).stdout, end="")
"""

ASYNC = """
import asyncio
async def main():
    process = await asyncio.create_subprocess_exec("echo", "hello", stdout=asyncio.subprocess.PIPE)
    print((await process.communicate())[0].decode(), end="")
    print(await asyncio.to_thread(sum, [1, 2]))
asyncio.run(main())
"""

FILES = """
import mmap, os, shutil, sqlite3, tempfile
with sqlite3.connect("/work/a.db") as database:
    print(database.execute("select 6 * 7").fetchone()[0])
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "a")
    open(path, "w").write("x" * 10)
    shutil.copy2(path, path + "b")
    shutil.copytree(folder, folder + "c")
    os.mkfifo(path + "f"); os.link(path, path + "l"); os.symlink(path, path + "s")
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        print(len(mapped))
os.sync()
print(os.path.expanduser("~"), os.getcwd())
"""

STACK = """
import io
import matplotlib.pyplot as plt, numpy as np, pandas as pd
frame = pd.DataFrame({"a": np.arange(10), "b": np.random.rand(10)})
print(frame.groupby(frame.a % 2).a.sum().tolist(), float(np.linalg.det(np.eye(50))))
figure, axes = plt.subplots()
frame.plot(ax=axes)
out = io.BytesIO()
figure.savefig(out, format="png")
figure.savefig("/work/figure.svg")
frame.to_csv("/work/a.csv", index=False)
print(out.getvalue()[1:4].decode(), len(pd.read_csv("/work/a.csv")))
"""

THREADED_LIBRARIES = """
import polars
frame = polars.DataFrame({"a": [1, 2, 3]}).lazy().with_columns(b=polars.col("a") * 2).collect()
print(frame["b"].sum())
frame.write_parquet("/work/a.parquet")
import duckdb
print(duckdb.connect().execute("select sum(a) from '/work/a.parquet'").fetchone()[0])
"""

ALLOCATE = """
kept = []
try:
    while True:
        kept.append(bytearray(4 << 20))
except MemoryError:
    allocated = len(kept) * (4 << 20)
    kept.clear()
print(allocated)
"""

TEXT = """
import datetime, locale, sys, zoneinfo
print("naïve 漢字", sys.getfilesystemencoding(), locale.getpreferredencoding())
print(datetime.datetime(2026, 1, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")).utcoffset())
open("/work/漢字", "w").write("漢字")
"""


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        pytest.param(THREADS, "328350\n", id="threads"),
        pytest.param(PROCESSES, "6\n6\n6\n1\n7\n", id="processes"),
        pytest.param(PROGRAMS, "HELLO\n3\n", id="programs"),
        pytest.param(ASYNC, "hello\n3\n", id="asyncio"),
        pytest.param(FILES, "42\n10\n/work /work\n", id="files"),
        pytest.param(STACK, "[20, 25] 1.0\nPNG 10\n", id="numpy, pandas and matplotlib"),
        pytest.param(THREADED_LIBRARIES, "12\n6\n", id="polars and duckdb"),
        pytest.param(TEXT, "naïve 漢字 utf-8 UTF-8\n1:00:00\n", id="text"),
    ],
)
def test_it_works_in_a_sandbox(wall: Wall, code: str, printed: str) -> None:
    sandbox = wall.sandbox(memory=SandboxLimits().memory)
    try:
        ran = run(sandbox, code)
    finally:
        sandbox.close()
    assert (ran.out, ran.error) == (printed, None)


def test_what_is_imported_ahead_takes_little_from_what_a_process_may_allocate(wall: AttackedWall) -> None:
    """And where it ends there is a MemoryError, also when much of what was there has been written to."""
    limits = SandboxLimits()
    sandbox = wall.sandbox(memory=limits.memory)
    try:
        ran = run(sandbox, ALLOCATE)
        after = run(sandbox, f"{STACK}\n{ALLOCATE}")
    finally:
        sandbox.close()
    most = limits.memory - limits.memory_reserve
    assert 0.85 * most < ran.value <= most
    assert after.error is None
    assert 0.6 * most < int(after.out.splitlines()[-1]) <= most
