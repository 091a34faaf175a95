"""What the runner measures, held against what the programs themselves know."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.processes import alive, eventually
from tests.helpers.runner import RUNNER, measure, orders, python
from tests.helpers.waiting import with_enough_time

MEGABYTE = 2**20
linux = pytest.mark.skipif(sys.platform != "linux", reason="the tree is looked at where /proc is")

HIGH_WATER = "print([l for l in open('/proc/self/status') if l.startswith('VmHWM')][0].split()[1])"
FILLS = "x = bytearray({0} * 2**20); x[::4096] = b'1' * len(x[::4096])"
FOUR_CHILDREN = f"""
import os
pipes = []
for _ in range(4):
    ready, go = os.pipe(), os.pipe()
    if os.fork() == 0:
        {FILLS.format(100)}
        os.write(ready[1], b"x"); os.read(go[0], 1); os._exit(0)
    pipes.append((ready, go))
for ready, _ in pipes: os.read(ready[0], 1)
import time; time.sleep(1)
for _, go in pipes: os.write(go[1], b"x")
for _ in pipes: os.wait()
"""
ORPHAN = """
import os, sys, time
ready, tell = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        x = bytearray(60 * 2**20); x[::4096] = b"1" * len(x[::4096])
        while time.process_time() < 0.3: pass
        open("orphan", "w").write(str(os.getpid()))
        os.close(tell); time.sleep(float(sys.argv[1])); os._exit(0)
    os._exit(0)
os.wait(); os.close(tell); os.read(ready, 1)
"""


@pytest.fixture(scope="module", autouse=True)
def _compiled(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Have its bytecode written: a runner that compiles itself has more memory, and knows less of small programs."""
    measure(tmp_path_factory.mktemp("compiled"), ["/bin/true"])


@linux
def test_the_peak_of_a_short_process_is_its_own_and_not_that_of_the_runner(tmp_path: Path) -> None:
    measured = measure(tmp_path, python(f"{FILLS.format(4)}; {HIGH_WATER}"))
    own = int(measured.stdout) * 1024
    # The kernel adds up in parts what each core has counted.
    assert measured.last["peak"] == pytest.approx(own, abs=MEGABYTE / 2)
    assert measured.last["peak_known"]


def test_a_process_that_ends_at_once_has_figures_and_no_more_is_said_of_its_memory_than_is_known(
    tmp_path: Path,
) -> None:
    for sample in measure(tmp_path, ["/bin/true"], rounds=[[0]] * 50).samples:
        assert sample["wall"] > 0
        assert sample["user"] + sample["system"] > 0
        assert sample["minor_faults"] > 0
        assert 0 < sample["peak"] < 10 * MEGABYTE
        assert not sample["peak_known"]


def test_cpu_time_is_that_of_the_program(tmp_path: Path) -> None:
    last = measure(tmp_path, python("import time\nwhile time.process_time() < 0.3: pass")).last
    assert 0.29 <= last["user"] + last["system"] <= 0.6  # Starting takes its part.
    assert last["wall"] >= last["user"] + last["system"] - 0.01


@linux
def test_page_faults_and_context_switches_are_counted(tmp_path: Path) -> None:
    code = (
        "import mmap, sys, time\nm = mmap.mmap(-1, 4096 * 1000, flags=mmap.MAP_PRIVATE)\n"
        "m.madvise(mmap.MADV_NOHUGEPAGE)\n"
        "for page in range(int(sys.argv[1])): m[page * 4096] = 1\n"
        "for _ in range(int(sys.argv[1]) // 20): time.sleep(0.0005)\n"
    )
    without, with_them = measure(tmp_path, python(code, "0"), python(code, "1000")).samples
    assert with_them["minor_faults"] - without["minor_faults"] == pytest.approx(1000, abs=60)
    assert with_them["voluntary_switches"] - without["voluntary_switches"] >= 40


@linux
def test_four_children_of_100_mb_are_400_mb(tmp_path: Path) -> None:
    last = measure(tmp_path, python(FOUR_CHILDREN)).last
    assert 400 * MEGABYTE <= last["peak"] <= 450 * MEGABYTE
    assert last["processes"] == 5
    assert max(size for _at, size in last["memory"]) == last["peak"]
    assert [at for at, _size in last["memory"]] == sorted(at for at, _size in last["memory"])


@linux
def test_memory_that_processes_share_counts_once(tmp_path: Path) -> None:
    code = (
        f"import os, time\n{FILLS.format(100)}\n"
        "for _ in range(3):\n    if os.fork() == 0: time.sleep(1); os._exit(0)\n"
        "for _ in range(3): os.wait()\n"
    )
    last = measure(tmp_path, python(code)).last
    assert last["processes"] == 4
    assert 100 * MEGABYTE <= last["peak"] <= 130 * MEGABYTE


@linux
def test_a_child_that_left_its_parent_and_its_session_counts(tmp_path: Path) -> None:
    last = measure(tmp_path, python(ORPHAN, "0")).last
    assert last["user"] + last["system"] >= 0.3
    assert last["peak"] >= 60 * MEGABYTE
    assert last["left_behind"] == 0


@linux
def test_what_a_program_leaves_behind_is_ended_before_the_next_run(tmp_path: Path) -> None:
    last = measure(tmp_path, python(ORPHAN, "60")).last
    assert last["left_behind"] == 1
    assert not alive(int((tmp_path / "orphan").read_text()))


def test_runs_follow_the_rounds_and_the_first_output_of_the_first_program_is_shown(tmp_path: Path) -> None:
    code = "import sys; print(sys.argv[1]); print('said', sys.argv[1], file=sys.stderr)"
    told = {"rounds": [[1, 0], [0, 1], [1, 0]], "warmup": 1}
    measured = measure(tmp_path, python(code, "a"), python(code, "b"), **told)
    assert [(one["program"], one["run"], one["warmup"]) for one in measured.samples] == [
        (1, 1, True),
        (0, 1, True),
        (0, 1, False),
        (1, 1, False),
        (1, 2, False),
        (0, 2, False),
    ]
    assert measured.stdout == "a\n"
    lines = measured.stderr.splitlines()
    assert lines[:3] == ["::progress 1/6 warm-up 1 of 1, 1", "::progress 2/6 warm-up 1 of 1, 0", "said a"]
    assert lines[-1] == "::progress 6/6 run 2 of 2, 0"
    assert measured.status == 0


def test_every_run_reads_the_same_standard_input_and_its_name_is_gone(tmp_path: Path) -> None:
    code = "import sys; assert sys.stdin.read() == 'secret'; print('read')"
    measured = measure(tmp_path, python(code), rounds=[[0], [0]], stdin="secret")
    assert (measured.status, measured.stdout) == (0, "read\n")
    assert [path.name for path in tmp_path.iterdir()] == ["samples.jsonl"]


def test_the_interpreter_that_preparing_has_found_is_used(tmp_path: Path) -> None:
    (tmp_path / "0").write_text(json.dumps({"python": sys.executable}))
    program = ["3.13", *python("import os; print(os.environ['PATH'].split(':')[0])")[1:]]
    assert measure(tmp_path, program).stdout == f"{os.path.dirname(sys.executable)}\n"


@pytest.mark.case("B134")
def test_a_run_that_fails_ends_it_with_its_number_its_code_and_its_stderr(tmp_path: Path) -> None:
    code = "import os, sys; n = len(os.listdir()); open(f'{n}.txt', 'w'); sys.exit(f'third {n}' if n == 3 else 0)"
    measured = measure(tmp_path, python(code), rounds=[[0]] * 9)
    assert [one.get("failed", {}).get("exit_code") for one in measured.samples] == [None, None, 1]
    assert measured.last["failed"]["stderr"] == "third 3\n"
    assert measured.last["run"] == 3
    assert measured.status == 1
    assert measured.stderr.endswith("third 3\n")


@pytest.mark.parametrize(
    ("program", "told", "failed"),
    [
        (python("import os; os.kill(os.getpid(), 9)"), {}, {"exit_code": 137, "signal": "SIGKILL"}),
        (["/nowhere/python"], {}, {"exit_code": 127, "not_started": "No such file or directory"}),
        (["/bin/true"], {"cwd": "/nowhere"}, {"exit_code": 127, "not_started": "No such file or directory"}),
        (python("import time; time.sleep(60)"), {"timeout": 0.3}, {"timed_out": True, "signal": "SIGINT"}),
    ],
    ids=["signal", "not started", "no directory", "timed out"],
)
def test_how_a_run_failed_is_written_down(
    tmp_path: Path, program: list[str], told: dict[str, Any], failed: dict[str, Any]
) -> None:
    measured = measure(tmp_path, program, **told)
    found = measured.last["failed"]
    why = found["not_started"]
    found["not_started"] = None if why is None else why.rpartition(": ")[2]
    assert {name: found[name] for name in failed} == failed
    assert measured.status == found["exit_code"]


async def test_who_ignores_a_time_out_is_killed(tmp_path: Path) -> None:
    code = (
        "import signal as s, time; s.signal(2, s.SIG_IGN); s.signal(15, s.SIG_IGN); open('deaf', 'w').close(); "
        "time.sleep(300)"
    )

    async def ask(seconds: float) -> dict[str, Any]:
        (tmp_path / "samples.jsonl").unlink(missing_ok=True)
        return measure(tmp_path, python(code), timeout=seconds).last["failed"]

    failed, _seconds = await with_enough_time(ask, lambda _failed: (tmp_path / "deaf").exists(), times=0.3)
    assert (failed["timed_out"], failed["exit_code"], failed["signal"]) == (True, 137, "SIGKILL")


def test_a_program_that_floods_stderr_is_shown_by_its_end(tmp_path: Path) -> None:
    code = "import sys; sys.stderr.write('x' * 3_000_000 + 'end'); sys.exit(3)"
    measured = measure(tmp_path, python(code), rounds=[[0]])
    assert measured.last["failed"]["stderr"].endswith("xend")
    assert len(measured.last["failed"]["stderr"]) == 64 * 1024
    assert measured.stderr.count("x") == 3_000_000


def test_an_interrupt_reaches_the_program_and_ends_the_benchmark(tmp_path: Path) -> None:
    code = (
        "import time\ntry:\n    open('started', 'w').close(); time.sleep(60)\n"
        "except KeyboardInterrupt: open('seen', 'w').close()"
    )
    with subprocess.Popen([sys.executable, "-I", "-S", RUNNER], stdin=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        process.stdin.write(orders(tmp_path, python(code), rounds=[[0]] * 5))
        process.stdin.close()
        eventually((tmp_path / "started").exists)
        process.send_signal(signal.SIGINT)
    assert process.returncode == 130
    assert (tmp_path / "seen").exists()
    assert len((tmp_path / "samples.jsonl").read_text().splitlines()) == 1
