"""Attacks on what is not the sandbox's: the network, other sandboxes, the machine, its files and its secrets."""

import json
import os
import secrets
import socket
import tempfile
from pathlib import Path

import pytest

from pyexec_guest.confine import policy, seccomp
from tests.walls.bubblewrap import AttackedBox, AttackedWall
from tests.walls.interface import Sandbox, Wall, run

pytestmark = pytest.mark.root

CALLS = """
import ctypes, json
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
answers = {}
for name, number in json.loads(NUMBERS).items():
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(value) for value in ARGUMENTS.get(name, [0] * 6)))
    answers[name] = ctypes.get_errno() if result == -1 else "allowed"
print(json.dumps(answers))
"""

CONNECT = """
import errno, json, socket
results = []
for family, kind, address in json.loads(TARGETS):
    try:
        with socket.socket(getattr(socket, family), getattr(socket, kind)) as connection:
            connection.settimeout(2)
            connection.connect(tuple(address) if isinstance(address, list) else address.replace("@", chr(0)))
            connection.send(b"x")
        results.append("connected")
    except OSError as error:
        results.append(errno.errorcode.get(error.errno, str(error)))
print(json.dumps(results))
"""


def connect(sandbox: Sandbox, targets: list[tuple[str, str, object]]) -> list[str]:
    answers: list[str] = run(sandbox, f"TARGETS = {json.dumps(targets)!r}\n{CONNECT}").value
    return answers


@pytest.mark.case("B098")
def test_there_is_no_network_and_it_says_so_at_once(sandbox: Sandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        answers = connect(
            sandbox,
            [
                ("AF_INET", "SOCK_STREAM", ("127.0.0.1", port)),
                ("AF_INET", "SOCK_STREAM", ("169.254.169.254", 80)),
                ("AF_INET", "SOCK_DGRAM", ("8.8.8.8", 53)),
                ("AF_INET6", "SOCK_STREAM", ("::1", port)),
            ],
        )
    assert answers == ["ENETUNREACH"] * 4
    looked_up = run(sandbox, "import socket; socket.getaddrinfo('example.com', 80)", seconds=3)
    assert str(looked_up.error).startswith("gaierror: ")


def test_sockets_of_the_machine_cannot_be_reached(sandbox: Sandbox) -> None:
    name = f"pyexec-{secrets.token_hex(8)}"
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, socket.socket(socket.AF_UNIX) as by_path:
        path = str(Path(folder) / "socket")
        by_path.bind(path)
        by_path.listen()
        os.chmod(folder, 0o777)
        os.chmod(path, 0o777)
        with socket.socket(socket.AF_UNIX) as abstract:
            abstract.bind(f"\0{name}")
            abstract.listen()
            answers = connect(sandbox, [("AF_UNIX", "SOCK_STREAM", path), ("AF_UNIX", "SOCK_STREAM", f"@{name}")])
    assert answers == ["ENOENT", "ECONNREFUSED"]


def test_other_sandboxes_cannot_be_reached(sandbox: Sandbox, wall: Wall) -> None:
    other = wall.sandbox()
    try:
        listen = """
import socket
kept = []
for address in (chr(0) + "shared", "/tmp/shared"):
    listener = socket.socket(socket.AF_UNIX); listener.bind(address); listener.listen(); kept.append(listener)
open("/dev/shm/shared", "w").write("shared"); open("/work/shared", "w").write("shared")
"""
        assert run(other, listen).error is None
        targets: list[tuple[str, str, object]] = [
            ("AF_UNIX", "SOCK_STREAM", "@shared"),
            ("AF_UNIX", "SOCK_STREAM", "/tmp/shared"),
        ]
        assert connect(other, targets) == ["connected"] * 2
        assert connect(sandbox, targets) == ["ECONNREFUSED", "ENOENT"]
        seen = "import os; print([os.listdir(folder) for folder in ('/tmp', '/work', '/dev/shm')])"
        assert run(sandbox, seen).out == "[[], [], []]\n"
    finally:
        other.close()


def test_other_kinds_of_sockets_do_not_exist(sandbox: Sandbox) -> None:
    code = """
import errno, json, socket
answers = {}
for family in (3, 5, 9, 15, 16, 17, 29, 31, 38, 39, 40, 41, 44):
    for kind in (1, 2, 3, 5):
        try:
            socket.socket(family, kind).close()
            answers[f"{family} {kind}"] = "made"
        except OSError as error:
            answers[f"{family} {kind}"] = errno.errorcode[error.errno]
print(json.dumps(sorted(set(answers.values()))))
"""
    assert run(sandbox, code).value == ["EAFNOSUPPORT"]


def test_calls_that_lead_out_are_refused_by_the_kernel(sandbox: Sandbox) -> None:
    numbers = seccomp.this_machine().numbers
    rules = policy.sandbox_policy(numbers)
    refused = {name: number for name, number in numbers.items() if rules.get(number) == policy.DENY}
    absent = {name: number for name, number in numbers.items() if rules.get(number, policy.ABSENT) == policy.ABSENT}
    asked = {**refused, **absent, "personality": numbers["personality"], "prctl": numbers["prctl"]}
    arguments = {
        "personality": [0x0400000, 0, 0, 0, 0, 0],  # READ_IMPLIES_EXEC
        "prctl": [22, 2, 0, 0, 0, 0],  # SET_SECCOMP
    }
    answers = run(sandbox, f"NUMBERS = {json.dumps(asked)!r}\nARGUMENTS = {arguments!r}\n{CALLS}").value
    assert {name: answers[name] for name in (*refused, "personality", "prctl")} == dict.fromkeys(
        (*refused, "personality", "prctl"), 1
    )
    assert {name: answers[name] for name in absent} == dict.fromkeys(absent, 38)
    assert {"ptrace", "mount", "unshare", "setns", "keyctl", "bpf", "perf_event_open", "io_uring_setup"} <= set(refused)
    assert {"userfaultfd", "pivot_root", "open_by_handle_at", "process_vm_readv"} <= set(refused)
    assert "clone3" in absent


def test_no_namespace_can_be_made(sandbox: Sandbox) -> None:
    code = """
import ctypes, json
libc = ctypes.CDLL(None, use_errno=True)
answers = []
for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
    pid = libc.syscall(ctypes.c_long(CLONE), ctypes.c_long(flag | 17), *(ctypes.c_long(0) for _ in range(4)))
    answers.append(ctypes.get_errno() if pid == -1 else "made")
    if pid == 0:
        libc._exit(0)
print(json.dumps(answers))
"""
    number = seccomp.this_machine().numbers["clone"]
    assert run(sandbox, f"CLONE = {number}\n{code}").value == [1] * 7


def test_it_has_no_privileges_and_cannot_get_any(sandbox: Sandbox) -> None:
    code = """
import json, os
def status(pid):
    return dict(line.split(":", 1) for line in open(f"/proc/{pid}/status").read().splitlines())
own = status("self")
first = status(1)
found = {name: own[name].strip() for name in
         ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Uid", "Gid", "Groups")}
found["first"] = [first[name].strip() for name in ("CapEff", "CapBnd", "NoNewPrivs", "Seccomp", "Uid")]
found["suid"] = [line for line in open("/proc/self/mountinfo").read().splitlines() if "nosuid" not in line.split()[5]]
for name in ("setuid", "setgid", "setresuid", "setgroups"):
    try:
        getattr(os, name)(*([0] * (3 if name == "setresuid" else 1)) if name != "setgroups" else ([0],))
        found[name] = "done"
    except OSError:
        pass
print(json.dumps(found))
"""
    zero = "0" * 16
    user = "1000\t1000\t1000\t1000"
    assert run(sandbox, code).value == {
        **dict.fromkeys(("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"), zero),
        "NoNewPrivs": "1",
        "Seccomp": "2",
        "Uid": user,
        "Gid": user,
        "Groups": "",
        "first": [zero, zero, "1", "2", user],
        "suid": [],
    }


def test_programs_that_make_root_of_others_do_not(sandbox: Sandbox) -> None:
    code = """
import glob, json, os, stat, subprocess
found = [path for path in glob.glob("/usr/bin/*") + glob.glob("/usr/sbin/*")
         if os.path.exists(path) and os.stat(path).st_mode & stat.S_ISUID]
ran = subprocess.run(["/usr/bin/su", "-c", "id -u"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
print(json.dumps([ran.returncode != 0, "0" in ran.stdout.split()]))
"""
    assert run(sandbox, code).value == [True, False]


def test_on_the_machine_it_is_a_user_that_nobody_else_is(sandbox: AttackedBox, wall: AttackedWall) -> None:
    other = wall.sandbox()
    try:
        users = [
            {Path(f"/proc/{pid}").stat().st_uid or _user(pid) for pid in one.processes()} for one in (sandbox, other)
        ]
    finally:
        other.close()
    assert all(len(found) == 1 for found in users)
    assert users[0] != users[1]
    assert all(uid >= 1_900_000_001 for found in users for uid in found)


def _user(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("Uid:")))


def test_only_harmless_devices_are_there_and_none_can_be_made(sandbox: Sandbox) -> None:
    code = """
import json, os, stat
devices = sorted(name for name in os.listdir("/dev") if not stat.S_ISLNK(os.lstat("/dev/" + name).st_mode))
made = []
for folder in ("/work", "/tmp", "/dev/shm"):
    for kind in (stat.S_IFCHR, stat.S_IFBLK):
        try:
            os.mknod(folder + "/device", kind | 0o666, os.makedev(1, 1))
            made.append(folder)
        except OSError:
            pass
print(json.dumps([devices, made]))
"""
    assert run(sandbox, code).value == [["full", "null", "random", "shm", "urandom", "zero"], []]


@pytest.mark.case("B095")
def test_no_secret_of_the_server_can_be_read(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYSECRET", "topsecret")
    code = """
import glob, json, os
seen = sorted(name for name in os.listdir("/proc") if name.isdecimal())
texts = []
for path in glob.glob("/proc/*/environ") + glob.glob("/proc/*/cmdline"):
    try:
        texts.append(open(path, "rb").read().decode())
    except OSError:
        pass
refused = []
for name in ("environ", "mem", "maps", "fd", "root", "cwd", "exe", "ns/mnt"):
    try:
        os.listdir("/proc/1/" + name) if name in ("fd", "root", "cwd") else open("/proc/1/" + name, "rb").read(1)
    except OSError:
        refused.append(name)
print(json.dumps([seen, refused, any("SECRET" in text or "/tmp/pe-" in text for text in texts), sorted(os.environ)]))
"""
    seen, refused, leaked, variables = run(sandbox, code).value
    assert seen == ["1", "2"]
    assert refused == ["environ", "mem", "maps", "fd", "root", "cwd", "exe", "ns/mnt"]
    assert not leaked
    assert not [name for name in variables if "SECRET" in name or name.startswith("PYEXEC")]


def test_files_of_the_machine_and_its_users_are_not_there(sandbox: Sandbox, sandbox_packages: Path) -> None:
    hidden = [
        "/etc/shadow",
        "/home",
        "/var",
        "/run",
        "/sys",
        "/boot",
        "/srv",
        "/proc/sys/kernel/core_pattern",
        "/proc/kcore",
        "/proc/sysrq-trigger",
        "/proc/kallsyms",
        str(Path(__file__)),
        str(sandbox_packages),
        os.environ.get("HOME", "/root") + "/.ssh",
    ]
    code = f"import json, os; print(json.dumps([path for path in {hidden!r} if os.path.exists(path)]))"
    assert run(sandbox, code).value == []
    assert run(sandbox, "print(open('/etc/passwd').read())").out.startswith("sandbox:")


def test_nothing_of_the_system_can_be_changed(sandbox: Sandbox) -> None:
    code = """
import json, os
changed = []
for path in ("/usr/bin/env", "/etc/passwd", "/opt/pyexec/guest/pyexec_guest/protocol.py", "/lib", "/dev/null", "/"):
    for attempt in (lambda: os.chmod(path, 0o777), lambda: os.unlink(path), lambda: os.rename(path, path + "x"),
                    lambda: os.open(path, os.O_WRONLY) if path != "/dev/null" else os.open("/", os.O_WRONLY)):
        try:
            attempt()
            changed.append(path)
        except OSError:
            pass
print(json.dumps(changed))
"""
    assert run(sandbox, code).value == []


def test_it_holds_no_descriptor_but_its_own(sandbox: Sandbox) -> None:
    code = """
import json, os
print(json.dumps([os.readlink(f"/proc/self/fd/{number}").split(":")[0] for number in
                  sorted(map(int, os.listdir("/proc/self/fd"))) if os.path.exists(f"/proc/self/fd/{number}")
                  or number < 4]))
"""
    assert run(sandbox, code).value == ["/dev/null", "pipe", "pipe", "socket"]


def test_its_first_process_cannot_be_ended_stopped_or_told_what_to_say(sandbox: Sandbox) -> None:
    code = """
import os, signal
for number in range(1, 65):
    if number not in (signal.SIGINT, signal.SIGCHLD, 32, 33):
        try:
            os.kill(1, number)
        except OSError:
            pass
print(os.getppid())
"""
    assert run(sandbox, code).out == "1\n"
    assert run(sandbox, "print(1)").out == "1\n"


def test_killing_everything_kills_only_itself(sandbox: Sandbox, wall: Wall) -> None:
    other = wall.sandbox()
    try:
        kill = "import os, subprocess; child = subprocess.Popen(['sleep', '1000']); os.kill(-1, 9); print(child.wait())"
        assert run(sandbox, kill).out == "-9\n"
        assert run(other, "print(2)").out == "2\n"
    finally:
        other.close()


RANDOM = """
import json, random, secrets, ssl, tempfile, uuid
import numpy
print(json.dumps([
    random.random(), float(numpy.random.rand()), float(numpy.random.default_rng().random()), str(uuid.uuid4()),
    tempfile.mkdtemp(), secrets.token_hex(8), ssl.RAND_bytes(8).hex(), numpy.random.permutation(100).tolist(),
]))
"""


def test_no_two_sandboxes_draw_the_same_random_numbers(sandbox: Sandbox, wall: Wall) -> None:
    others = [wall.sandbox() for _ in range(3)]
    try:
        drawn = [run(one, RANDOM).value for one in (sandbox, *others)]
    finally:
        for other in others:
            other.close()
    for kind in zip(*drawn, strict=True):
        assert len({json.dumps(value) for value in kind}) == 4, kind


def test_nothing_is_left_of_one_sandbox_for_the_next(sandbox: AttackedBox, wall: AttackedWall) -> None:
    leave = "for folder in ('/tmp', '/work', '/dev/shm'): open(folder + '/left', 'w').write('left')"
    assert run(sandbox, f"{leave}\nimport numpy; numpy.left = 1").error is None
    sandbox.close()
    after = wall.sandbox()
    try:
        seen = "import numpy, os; print([os.listdir(f) for f in ('/tmp', '/work', '/dev/shm')], hasattr(numpy, 'left'))"
        assert run(after, seen).out == "[[], [], []] False\n"
    finally:
        after.close()
