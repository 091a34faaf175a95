"""The guest itself, behind the wall: it does what it does on the host, and harms nobody but itself."""

import ast
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pyexec.domain.limits import MEGABYTE, SandboxLimits
from pyexec.walls.bubblewrap.boxes import Cause
from pyexec.walls.bubblewrap.sandboxes import Sandboxes
from tests.walls.bubblewrap import inside, wall_around
from tests.walls.guests import BoxedGuest, guard

pytestmark = [pytest.mark.root, pytest.mark.needs_uv]
LIMITS = SandboxLimits(memory=384 * MEGABYTE, cpu=2.0, workspace=96 * MEGABYTE)


@pytest.fixture(scope="module")
def wall(sandbox_packages: Path) -> Iterator[Sandboxes]:
    """A wall around the guest itself; all tests of this module share it."""
    with wall_around(inside(sandbox_packages, guest="pyexec_guest.inner:run"), limits=LIMITS) as made:
        yield made


@pytest.fixture
def new_guest(wall: Sandboxes, tmp_path: Path) -> Iterator[Callable[[], BoxedGuest]]:
    """Starts guests of a test's own. Whatever they do, the next one works."""
    started: list[BoxedGuest] = []

    def start() -> BoxedGuest:
        files = tmp_path / f"files-{len(started)}"
        files.mkdir()
        started.append(BoxedGuest(wall.sandbox(), files))
        return started[-1]

    yield start
    for one in started:
        one.box.close()


@pytest.fixture(scope="module")
def guest(wall: Sandboxes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoxedGuest]:
    """A guest that tests share: each leaves it usable."""
    started = BoxedGuest(wall.sandbox(), tmp_path_factory.mktemp("files"))
    yield started
    started.box.close()


# -- cells ---------------------------------------------------------------------------------------------------------


def test_cells_keep_their_state_in_main_and_are_at_home_in_work(guest: BoxedGuest) -> None:
    guest.run("x = 41\ndef f(): return __name__")
    assert guest.run("x += 1; x, f()").value == "(42, '__main__')"
    where = "import os, sys; os.getcwd(), os.path.expanduser('~'), os.getpid(), sys.argv"
    assert guest.run(where).value == "('/work', '/work', 2, [''])"
    assert guest.run("%cd /tmp\n%cd -\nimport os; os.getcwd()").value == "'/work'"
    assert guest.run("[name for name in dir() if not name.startswith('_')][:3]").value == "['In', 'Out', 'exit']"
    guest.run("import pathlib; pathlib.Path('near.py').write_text('answer = 42')")
    assert guest.run("import near; near.answer").value == "42"
    assert guest.run("import sys; [path for path in sys.path if 'guest' in path]").value == "[]"


def test_magics_commands_and_await_work(guest: BoxedGuest) -> None:
    assert guest.run("!echo hello; exit 3").stdout == "hello\n"
    assert guest.run("_exit_code").value == "3"
    assert guest.run("%timeit -n1 -r1 1").stdout.startswith("1") or guest.run("%who_ls").value is not None
    assert guest.run("import asyncio\nawait asyncio.sleep(0.01, 7)").value == "7"
    assert guest.run("%%bash\necho from bash").stdout == "from bash\n"


@pytest.mark.case("B059")
def test_exit_ends_the_cell_and_not_the_session(guest: BoxedGuest) -> None:
    cell = guest.run("kept = 5; import sys; sys.exit(3)")
    assert (cell.turn.status, cell.turn.exit_code, cell.stderr) == ("exited", 3, "")
    assert guest.run("kept").value == "5"


@pytest.mark.case("B058")
def test_input_reads_what_was_given_and_else_says_that_there_is_nothing(guest: BoxedGuest) -> None:
    assert guest.run("input('? '), input()", stdin="a\nb\n").value == "('a', 'b')"
    assert guest.run("input()").failure.type == "EOFError"
    assert guest.run("import sys; sys.stdin.read()").value == "''"
    # Its folders may be full.
    guest.run("open('/tmp/full', 'wb').write(b'') or os.posix_fallocate(os.open('/tmp/full', 2), 0, 64 << 20)")
    assert guest.run("input()", stdin="a").value == "'a'"
    guest.run("os.unlink('/tmp/full')")


def test_variables_are_set_for_their_turn(guest: BoxedGuest) -> None:
    code = "import os; os.environ['TAKEN'] = 'b'; os.environ['GIVEN'], os.environ['HOME']"
    assert guest.run(code, env={"GIVEN": "a", "HOME": "/tmp", "TAKEN": "a"}).value == "('a', '/tmp')"
    assert guest.run("!echo $GIVEN.$HOME.$TAKEN").stdout == "./work.b\n"
    assert guest.run("1", env={"": "a", "a=b": "c", "nul": "\0", "number": 1}).value == "1"


@pytest.mark.case("B101")
def test_figures_and_tables_come_out_with_their_files(guest: BoxedGuest) -> None:
    cell = guest.run("import matplotlib.pyplot as plt\nplt.plot([1, 2, 4], label='a')\nprint('o')\nplt.show()\n42")
    picture = cell.only.parts[0]
    assert (cell.only.kind, cell.stdout, cell.value, picture.media_type) == ("figure", "o\n", "42", "image/png")
    assert cell.only.chart is not None
    assert cell.only.chart["axes"][0]["series"][0]["label"] == "a"
    assert picture.file == "figure-1.png"
    data = (guest.files / picture.file).read_bytes()
    assert (data[:4], len(data)) == (b"\x89PNG", picture.size)
    cell = guest.run("import pandas as pd\npd.DataFrame({'a': range(100_000)})")
    assert cell.only.table is not None
    assert (cell.only.table["shape"], cell.only.parts[0].file) == ([100_000, 1], "table-1.csv")
    assert (guest.files / "table-1.csv").read_text().splitlines() == ["a", *map(str, range(100_000))]


def test_what_a_thread_prints_too_late_is_told_as_late(guest: BoxedGuest) -> None:
    guest.run("import threading\ngate = threading.Event()\ndef late(): gate.wait(); print('late')")
    guest.run("t = threading.Thread(target=late); t.start()")
    assert guest.run("gate.set(); t.join()").stdout == ""
    assert [getattr(said, "text", None) for _, said in guest.late][:1] == ["late"]


def test_a_fork_in_a_cell_says_nothing_in_the_guests_name(guest: BoxedGuest) -> None:
    cell = guest.run("import os\nx = 'parent'\nif os.fork() == 0:\n    x = 'child'\nelse:\n    _ = os.wait()\nx")
    assert (cell.turn.status, cell.value) == ("ok", "'parent'")


def test_workers_find_what_was_defined(new_guest: Callable[[], BoxedGuest]) -> None:
    guest = new_guest()
    guest.run("import multiprocessing as mp\ndef g(x): return x + 1")
    code = "with mp.get_context('{}').Pool(1) as p: print(p.map(g, [1]))"
    assert [guest.run(code.format(way)).stdout for way in ("spawn", "fork")] == ["[2]\n", "[2]\n"]


def test_the_first_cell_finds_no_trace_of_any_before_it(new_guest: Callable[[], BoxedGuest]) -> None:
    guest = new_guest()
    assert guest.info()["variables"] == []
    code = """
import linecache, sys
cells = [name for name in linecache.cache if name.startswith('<cell')]
own = sorted(name for name in globals() if name.startswith('_i') or name in ('x', 'f', 'g'))
(len(In), _, __, _i, _ii, own, cells, get_ipython().execution_count, getattr(sys, 'last_exc', None))
"""
    cell = guest.run(code)
    told = (2, "", "", "", "", ["_i", "_i1", "_ih", "_ii", "_iii"], ["<cell 1>"], 2, None)
    assert ast.literal_eval(cell.value or "") == told


def test_two_forks_have_no_randomness_in_common(new_guest: Callable[[], BoxedGuest]) -> None:
    code = """
import multiprocessing, os, random, secrets, ssl, tempfile, uuid, numpy
(random.random(), uuid.uuid4().hex, uuid.uuid1().hex, secrets.token_hex(8), numpy.random.random(),
 float(numpy.random.default_rng().random()), next(tempfile._get_candidate_names()), ssl.RAND_bytes(8),
 bytes(multiprocessing.current_process().authkey))
"""
    first, second = (ast.literal_eval(new_guest().run(code).value or "") for _ in range(2))
    assert len(first) == 9
    assert not set(map(str, first)) & set(map(str, second))


# -- limits --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", ["10_000_000", "100"])
def test_code_that_runs_out_of_memory_is_told_so_and_the_session_lives(
    new_guest: Callable[[], BoxedGuest], size: str
) -> None:
    guest = new_guest()
    guest.run("x = 41")
    cell = guest.run(f"kept = []\nwhile True: kept.append(bytearray({size}))")
    assert (cell.turn.status, cell.failure.type, cell.failure.line) == ("error", "MemoryError", 2)
    assert guest.run("kept = None; x + 1").value == "42"


@pytest.mark.case("B088")
def test_a_memory_bomb_ends_the_sandbox_and_is_told_with_its_output(new_guest: Callable[[], BoxedGuest]) -> None:
    guest = new_guest()
    code = "print('progress'); display('shown')\nimport mmap\nbomb = mmap.mmap(-1, 1 << 30)\n"
    gone, ending = guest.dies(code + "for at in range(0, 1 << 30, 1 << 20): bomb[at:at + (1 << 20)] = bytes(1 << 20)")
    assert (ending.cause, ending.memory_limit) == (Cause.OUT_OF_MEMORY, LIMITS.memory)
    assert LIMITS.memory * 0.9 < ending.peak_memory <= LIMITS.memory
    assert bytes(guest.printed[0]) == b"progress\n"
    assert gone.turn is not None
    assert [display.kind for display in gone.turn.displays] == ["text"]


def test_a_memory_bomb_in_children_ends_those_and_the_owner_can_tell(new_guest: Callable[[], BoxedGuest]) -> None:
    guest = new_guest()
    cell = guest.run("""
import os, time
for _ in range(5):
    if os.fork() == 0:
        kept = bytearray(1 << 20) * 100
        time.sleep(3600)
_, status = os.wait()
os.WTERMSIG(status)
""")
    assert cell.value == "9"
    usage = guest.box.usage()
    assert usage is not None
    assert usage.out_of_memory
    assert LIMITS.memory * 0.9 < usage.peak_memory <= LIMITS.memory


def test_deep_recursion_is_an_error_and_a_crash_is_told_as_one(new_guest: Callable[[], BoxedGuest]) -> None:
    guest = new_guest()
    assert guest.run("def f(): f()\nf()").failure.type == "RecursionError"
    assert guest.run("1").value == "1"
    _, ending = guest.dies("print('last words')\nimport ctypes; ctypes.string_at(0)")
    assert (ending.cause, ending.value) == (Cause.SIGNAL, 11)
    assert bytes(guest.printed[0]) == b"last words\n"
    assert b"Segmentation fault" in guest.printed[1]


@pytest.mark.case("B060")
def test_a_hard_exit_is_told_with_its_code(new_guest: Callable[[], BoxedGuest]) -> None:
    _, ending = new_guest().dies("import os; os._exit(9)")
    assert (ending.cause, ending.value) == (Cause.EXIT, 9)


@pytest.mark.parametrize("megabytes", [100, pytest.param(1024, marks=pytest.mark.exhaustive)])
def test_a_flood_of_output_is_counted_and_its_owner_goes_on(wall: Sandboxes, tmp_path: Path, megabytes: int) -> None:
    box = wall.sandbox()
    try:
        code = f"import os\nblock = b'x' * (1 << 20)\nfor _ in range({megabytes}): os.write(1, block)\n'end'"
        # Its own code may be more than a socket holds.
        told = guard(box, tmp_path, f"{'#' * (2 << 20)}\n{code}", seconds=60)
    finally:
        box.close()
    assert (told.turn.status, told.turn.value, told.totals) == ("ok", "'end'", (megabytes << 20, 0))


def test_a_session_without_descriptors_lives_on(new_guest: Callable[[], BoxedGuest]) -> None:
    guest = new_guest()
    cell = guest.run("import os\nkept = []\nwhile True: kept.append(os.open('/dev/null', os.O_RDONLY))")
    assert cell.failure.type == "OSError"
    assert guest.run("len(kept) > 100", stdin="a").value == "True"
    guest.run("for fd in kept: os.close(fd)")
    assert guest.run("input()", stdin="a").value == "'a'"


# -- interrupts ----------------------------------------------------------------------------------------------------

WAYS = {
    "a loop": "while True: pass",
    "sleep": "import time; time.sleep(300)",
    "a child": "import subprocess; subprocess.run(['sleep', '300'])",
    "a command": "!sleep 300",
    "numpy": "import numpy as np\na = np.ones((200, 200))\nwhile True: a @ a",
}


@pytest.mark.case("B078")
@pytest.mark.parametrize("by_signal", [False, True], ids=["a message", "a signal"])
def test_whatever_it_does_it_is_interrupted_at_once_and_keeps_its_state(guest: BoxedGuest, by_signal: bool) -> None:
    guest.interrupts_by_signal = by_signal
    took: list[float] = []
    for code in WAYS.values():
        cell = guest.interrupted(f"x = 41; print('ready', flush=True)\n{code}")
        took.append(time.monotonic() - guest.interrupted_at)
        assert (cell.turn.status, cell.failure.type) == ("interrupted", "KeyboardInterrupt"), code
        assert guest.run("x + 1").value == "42"
    assert min(took) < 0.3  # The promise itself; the best, so that a busy machine does not break it.
    # One that has just been ended is seen until it is reaped.
    assert any(guest.run("!ps -e -o comm= | grep -c sleep").stdout in ("0\n", "") for _ in range(20))


# -- files ---------------------------------------------------------------------------------------------------------


def test_files_that_the_code_makes_are_told_and_after_the_last_turn_handed_over(
    wall: Sandboxes, tmp_path: Path
) -> None:
    box = wall.sandbox()
    code = """
import os, pathlib, sys
os.makedirs("sub/__pycache__"); os.makedirs(".hidden")
for name in ("sub/a.csv", "sub__a.csv", "figure-1.png", ".hidden/a", "sub/__pycache__/m.pyc", ".dot", "empty", "ü.txt"):
    pathlib.Path(name).write_text("" if name == "empty" else name)
os.symlink("/etc/passwd", "link"); os.mkfifo("fifo")
pathlib.Path("new\\nline").write_text("a"); open(b"\\xff", "w").close()
with open("large", "wb") as file: file.truncate(70 << 20)
import atexit, threading
atexit.register(print, "at exit")
threading.Thread(target=lambda: (threading.main_thread().join(), print("from a thread"))).start()
import matplotlib.pyplot as plt; plt.plot([1]); print("end")
"""
    try:
        told = guard(box, tmp_path, code)
    finally:
        box.close()
    turn = told.turn
    assert (turn.status, turn.broken, turn.failure) == ("ok", None, None)
    assert [(file.path, file.change, file.kept_as) for file in turn.files] == [
        ("empty", "created", "empty"),
        ("figure-1.png", "created", "figure-1-2.png"),
        ("large", "created", None),
        ("sub/a.csv", "created", "sub__a.csv"),
        ("sub__a.csv", "created", "sub__a-2.csv"),
        ("ü.txt", "created", "ü.txt"),
    ]
    assert turn.notes == ("Too large to be handed over, and lost with the sandbox: large.",)
    picture = told.files.pop("figure-1.png")
    assert (picture[:4], turn.displays[0].parts[0].file) == (b"\x89PNG", "figure-1.png")
    assert {name: data.decode() for name, data in told.files.items()} == {
        "empty": "",
        "figure-1-2.png": "figure-1.png",
        "sub__a.csv": "sub/a.csv",
        "sub__a-2.csv": "sub__a.csv",
        "ü.txt": "ü.txt",
    }
    # As where an interpreter ends by itself.
    assert told.stdout == b"end\nfrom a thread\nat exit\n"


def test_changes_are_told_turn_by_turn(new_guest: Callable[[], BoxedGuest]) -> None:
    guest = new_guest()
    made = guest.run("open('a', 'w').write('a'); open('b', 'w').write('b'); _ = open('c', 'w').write('c')").turn.files
    assert [(file.path, file.size, file.change) for file in made] == [(name, 1, "created") for name in "abc"]
    changed = guest.run("import os; open('a', 'a').write('a'); os.unlink('b'); open('c').read()").turn.files
    assert [(file.path, file.size, file.change) for file in changed] == [("a", 2, "changed")]
    assert list(guest.files.iterdir()) == []
    many = guest.run("for n in range(60): open(f'f{n:02}', 'w').close()").turn
    assert (len(many.files), many.notes) == (50, ("10 more files were created or changed than are listed.",))


# -- a guest that is not ours any more -----------------------------------------------------------------------------

FIND = """
import base64, json, os, struct, sys, threading
from pathlib import Path
def channel():
    for name in os.listdir('/proc/self/fd'):
        try:
            if os.readlink(f'/proc/self/fd/{name}').startswith('socket:'): yield int(name)
        except OSError: pass
fd = max(channel())
loop = next(o for o in __import__('gc').get_objects() if type(o).__name__ == 'Loop' and hasattr(o, '_current'))
turn = loop._current
def raw(data):
    while data: data = data[os.write(fd, data):]
def send(**m): b = json.dumps(m).encode(); raw(struct.pack('>I', len(b)) + b)
def event(**m): send(t='event', turn=turn.id, n=turn.next(), **m)
def piece(name, data, last=True, size=None):
    size = len(data) if size is None else size
    event(k='file', name=name, data=base64.b64encode(data).decode(), last=last, size=size)
"""

HOSTILE = {
    "oversized": ("raw(bytes([255] * 4))", "at most"),
    "truncated": ("raw(struct.pack('>I', 100) + b'{'); os._exit(0)", None),
    "no object": ("raw(struct.pack('>I', 2) + b'[]')", "not a JSON object"),
    "a forged end": ("send(t='done', turn='a' * 32, n=1, status='ok', value='forged')", "another turn"),
    "an end, and more": ("send(t='done', turn=turn.id, n=turn.next()); event(k='display')", "after the terminal one"),
    "a wrong number": ("send(t='event', turn=turn.id, n=7, k='display', kind='text', data={})", "where 1 was due"),
    "another kind": ("event(k='display2')", "of kind 'display2'"),
    "a file above": ("piece('../x', b'a')", "whose name is none"),
    "a file at the root": ("piece('/etc/x', b'a')", "whose name is none"),
    "a file with NUL": ("piece('a\\0b', b'a')", "whose name is none"),
    "a hidden file": ("piece('.bashrc', b'a')", "whose name is none"),
    "a name that is none": ("piece({'a': 1}, b'a')", "whose name is none"),
    "a size that lies": ("piece('x', b'a', size=2)", "that is said to have 2"),
    "no base64": ("event(k='file', name='x', data='?', last=True, size=1)", "no base64"),
    "two files at once": ("piece('x', b'a', last=False); piece('y', b'a')", "before the last one"),
    "many files": ("for n in range(10_000): piece(f'x{n}', b'a')", "more than 200 files"),
    "many pieces": ("for n in range(10_000): piece('x', b'', last=False)", "more than 2000 pieces"),
    "a large file": ("for n in range(100): piece('x', bytes(1 << 20), last=False)", "of more than"),
}


@pytest.mark.parametrize(("code", "why"), HOSTILE.values(), ids=HOSTILE.keys())
def test_what_no_guest_of_ours_says_ends_the_turn(wall: Sandboxes, tmp_path: Path, code: str, why: str | None) -> None:
    box = wall.sandbox()
    try:
        told = guard(box, tmp_path, f"{FIND}\nprint('before', flush=True)\n{code}\nimport time; time.sleep(300)")
    finally:
        box.close()
    assert told.turn.status in (None, "refused")
    assert told.stdout == b"before\n", told.stderr
    assert (told.turn.broken is None) if why is None else (why in told.broken)
    # What was torn or lied is gone; what was whole before that is a file.
    assert sorted(told.files) == sorted(f"x{n}" for n in range(200 if "{n}" in code else 0))


def test_what_is_said_for_an_earlier_turn_is_only_told_as_late(new_guest: Callable[[], BoxedGuest]) -> None:
    guest = new_guest()
    guest.run(FIND)
    cell = guest.run(
        "send(t='late', turn=turn.id, k='stdout', text='late'); send(t='late', turn='x', k='stdout', text='x')\n1"
    )
    assert cell.value == "1"
    assert [getattr(said, "text", None) for _, said in guest.late] == ["late"]
    gone, _ = guest.dies("piece('x', b'a')\nimport time; time.sleep(300)")
    assert "a file where none is due" in gone.why
    assert list(guest.files.iterdir()) == []


def test_the_next_sandbox_works(new_guest: Callable[[], BoxedGuest]) -> None:
    """Whatever the tests before this one did."""
    assert new_guest().run("import os; 6 * 7, os.listdir('/work')").value == "(42, [])"
