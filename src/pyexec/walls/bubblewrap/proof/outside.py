"""Attempts to reach, see or change what is outside."""

import os
import secrets
import socket
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from pyexec.walls.bubblewrap.contents import DEVICES
from pyexec.walls.bubblewrap.proof.subject import Attempt, Outcome, Subject, held, judge, not_held

WRITABLE = ["/dev/shm", "/tmp", "/work"]  # noqa: S108 - inside
METADATA = "169.254.169.254"
NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
OTHER_FAMILIES = (3, 5, 9, 15, 16, 17, 21, 29, 30, 31, 38, 39, 40, 41, 44)
"""Among them netlink, packets, Bluetooth, the kernel's ciphers, virtual machines' sockets and XDP."""

_FILES = ("/etc/shadow", "/etc/hostname", "/proc/sys", "/proc/kcore")
_FOLDERS = ("/root", "/home", "/var", "/run", "/sys", "/boot", "/srv", "/var/lib")
_MOST_ENTRIES = 40
_MOST_NAMED = 5


def _network(subject: Subject) -> Outcome:
    with socket.create_server(("127.0.0.1", 0)) as listener, subject.sandbox() as asked:
        listener.setblocking(False)
        port = listener.getsockname()[1]
        targets = {
            "a listener on this machine": ("AF_INET", "SOCK_STREAM", ["127.0.0.1", port]),
            f"the metadata address {METADATA}": ("AF_INET", "SOCK_STREAM", [METADATA, 80]),
            "a name server": ("AF_INET", "SOCK_DGRAM", ["192.0.2.1", 53]),
            "the machine by IPv6": ("AF_INET6", "SOCK_STREAM", ["::1", port]),
        }
        answers = asked.ask("connect", targets=list(targets.values()))
        reached = [name for name, answer in zip(targets, answers, strict=True) if answer == "connected"]
        if _was_called(listener) and not reached:
            reached = ["a listener on this machine"]
    return _nothing_but(reached, f"nothing answers: {', '.join(sorted(set(answers)))}", "reached")


def _was_called(listener: socket.socket) -> bool:
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def _unix_sockets(subject: Subject) -> Outcome:
    name = f"pyexec-{secrets.token_hex(8)}"
    with (
        tempfile.TemporaryDirectory(prefix="pyexec-doctor-") as folder,
        socket.socket(socket.AF_UNIX) as by_path,
        socket.socket(socket.AF_UNIX) as abstract,
        subject.sandbox() as asked,
    ):
        path = f"{folder}/socket"
        by_path.bind(path)
        by_path.listen()
        for place in (folder, path):
            os.chmod(place, 0o777)  # noqa: S103 - nothing but the wall shall be in the way
        abstract.bind(f"\0{name}")
        abstract.listen()
        targets = {"one by its path": path, "one by its abstract name": f"@{name}"}
        answers = asked.ask("connect", targets=[("AF_UNIX", "SOCK_STREAM", address) for address in targets.values()])
    reached = [name for name, answer in zip(targets, answers, strict=True) if answer == "connected"]
    return _nothing_but(reached, f"neither is reached: {', '.join(answers)}", "reached")


def _families(subject: Subject) -> Outcome:
    with subject.sandbox() as asked:
        made = asked.ask("make_sockets", families=list(OTHER_FAMILIES))
    return _nothing_but(list(map(str, made)), f"none of {len(OTHER_FAMILIES)} families can be had", "made: family")


def _namespaces(subject: Subject) -> Outcome:
    with subject.sandbox() as one, subject.sandbox() as other:
        first, second = one.ask("namespaces"), other.ask("namespaces")
    outside = {name: os.readlink(f"/proc/self/ns/{name}") for name in NAMESPACES}
    shared = [name for name in NAMESPACES if first[name] == outside[name]]
    common = [name for name in NAMESPACES if first[name] == second[name] and name not in shared]
    if shared:
        return not_held(f"the machine's own: {', '.join(shared)}")
    if common:
        return not_held(f"the same in two sandboxes: {', '.join(common)}")
    return held(f"all {len(NAMESPACES)} are its own")


def _processes(subject: Subject) -> Outcome:
    with subject.sandbox() as asked:
        saw = asked.ask("processes")
    wrong = [str(pid) for pid in saw["pids"] if pid not in (1, saw["own"])]
    wrong += [f"/proc/1/{name}" for name in saw["read"]] + [f"/proc/{name}" for name in saw["more"]]
    return _nothing_but(wrong, f"/proc has {len(saw['pids'])} processes, its own, and nothing else", "seen")


def _writing(subject: Subject) -> Outcome:
    with subject.sandbox() as asked:
        written = asked.ask("write_everywhere")
        changed = asked.ask("change_system")
    wrong = [place for place in [*written, *changed] if place not in WRITABLE]
    return _nothing_but(wrong, "only /work, /tmp and /dev/shm can be written", "written")


def _files(subject: Subject) -> Outcome:
    hidden = list(_machines_files(subject))
    with subject.sandbox() as asked:
        seen = asked.ask("present", paths=hidden)
    return _nothing_but(seen[:_MOST_NAMED], f"none of {len(hidden)} that were looked for is there", "there:")


def _machines_files(subject: Subject) -> Iterator[str]:
    """Return what is on this machine and must not be inside: but folders on the way to what must be."""
    bound = [Path(inside) for _, inside in subject.plan.binds]
    for folder in (*_FOLDERS, os.path.expanduser("~"), str(subject.home)):
        with suppress(OSError):
            for name in sorted(os.listdir(folder))[:_MOST_ENTRIES]:
                path = Path(folder) / name
                if not any(path in place.parents for place in bound):
                    yield str(path)
    yield from (path for path in _FILES if os.path.exists(path))


def _devices(subject: Subject) -> Outcome:
    usual = {Path(device).name for device in DEVICES} | {"shm"}
    with subject.sandbox() as asked:
        saw = asked.ask("devices")
    wrong = [f"/dev/{name}" for name in saw["there"] if name not in usual]
    wrong += [f"a new one in {folder}" for folder in saw["made"]]
    return _nothing_but(wrong, f"only {', '.join(sorted(usual - {'shm'}))}; none can be made", "had")


def _neighbours(subject: Subject) -> Outcome:
    name = f"trace-{secrets.token_hex(4)}"
    with subject.sandbox() as one, subject.sandbox() as other:
        one.ask("leave_traces", name=name)
        own = one.ask("find_traces", name=name)
        found = other.ask("find_traces", name=name)
    if len(own) < len(WRITABLE):
        return not_held("the first one cannot find what it has left, so that nothing could be shown")
    return _nothing_but(found, "another sandbox finds none of it", "found by another")


def _environment(subject: Subject) -> Outcome:
    with subject.sandbox() as asked:
        saw = asked.ask("environment", needle=subject.secret.value)
    wrong = list(saw["found"])
    if subject.secret.name in saw["names"]:
        wrong.append(subject.secret.name)
    return _nothing_but(wrong, f"{len(saw['names'])} variables, all made up; a secret of ours is in none", "found in")


def _nothing_but(wrong: Sequence[str], good: str, verb: str) -> Outcome:
    return judge(good=not wrong, happened=good if not wrong else f"{verb} {', '.join(wrong)}")


OUTSIDE_ATTEMPTS = (
    Attempt(id="network", name="network", tries="Addresses are connected to", make=_network),
    Attempt(id="unix-sockets", name="unix sockets", tries="Sockets of this machine are tried", make=_unix_sockets),
    Attempt(id="socket-families", name="other sockets", tries="Sockets of other kinds are made", make=_families),
    Attempt(id="namespaces", name="namespaces", tries="They are compared", make=_namespaces),
    Attempt(id="processes-seen", name="/proc", tries="Other processes are looked for", make=_processes),
    Attempt(id="writing", name="writing", tries="Every folder is written to", make=_writing),
    Attempt(id="files", name="files", tries="This machine's files are looked for", make=_files),
    Attempt(id="devices", name="devices", tries="Devices are looked for and made", make=_devices),
    Attempt(id="neighbours", name="neighbours", tries="Files and sockets are left behind", make=_neighbours),
    Attempt(id="environment", name="environment", tries="Variables of ours are looked for", make=_environment),
)
