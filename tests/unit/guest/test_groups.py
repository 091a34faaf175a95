"""Which control groups are found, in folders that look like those of machines that are not this one."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from pyexec_guest.outside.groups import choice, delegation, files, version1, version2, watched
from pyexec_guest.outside.groups.model import GroupLimits, NoGroupsError, NoRoomError
from pyexec_guest.outside.groups.mounts import OwnGroups, own_groups

ALL = "cpuset cpu io memory pids"
LIMITS = GroupLimits(memory=100, processes=5, cpu=0.5)
HYBRID = (
    "9:name=systemd:/\n8:pids:/\n4:memory:/owner/one\n2:cpu,cpuacct:/\n0::/user.slice/mine\n",
    """\
30 24 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755
31 30 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
33 30 0:29 /owner /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
34 30 0:30 / /sys/fs/cgroup/pi\\040ds rw - cgroup cgroup rw,pids
35 30 0:31 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd
""",
)


def process(folder: Path, cgroup: str, mountinfo: str) -> str:
    (folder / "cgroup").write_text(cgroup)
    (folder / "mountinfo").write_text(mountinfo)
    return str(folder)


def group(folder: Path, *, controllers: str = ALL, handed: str = "", kind: str | None = "domain") -> str:
    """Return a folder that looks like a group of version 2."""
    folder.mkdir(parents=True)
    (folder / "cgroup.controllers").write_text(f"{controllers}\n")
    (folder / "cgroup.subtree_control").write_text(f"{handed}\n")
    (folder / "cgroup.procs").write_text("")
    if kind is not None:
        (folder / "cgroup.type").write_text(f"{kind}\n")
    return str(folder)


@pytest.fixture
def marks(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The marks of systemd, by folder."""
    found: dict[str, str] = {}

    def read(folder: str, name: str) -> bytes:
        if found.get(folder) != name:
            raise OSError
        return b"1"

    monkeypatch.setattr(delegation.os, "getxattr", read)
    return found


def test_on_a_hybrid_machine_both_trees_are_found(tmp_path: Path) -> None:
    own = own_groups(process(tmp_path, *HYBRID))
    both = "/sys/fs/cgroup/cpu,cpuacct"
    assert {name: own.version1[name] for name in ("memory", "pids", "cpu", "cpuacct")} == {
        "memory": "/sys/fs/cgroup/memory/one",
        "pids": "/sys/fs/cgroup/pi ds",
        "cpu": both,
        "cpuacct": both,
    }
    assert own.version2 == "/sys/fs/cgroup/unified/user.slice/mine"
    assert own.version2_top == "/sys/fs/cgroup/unified"


def test_a_group_above_what_is_mounted_is_not_found(tmp_path: Path) -> None:
    mountinfo = "31 30 0:27 /other /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
    assert own_groups(process(tmp_path, "0::/mine\n", mountinfo)) == OwnGroups()
    assert own_groups(process(tmp_path, "0::/../mine\n", mountinfo.replace("/other", "/"))).version2 != "/mine"


def test_a_machines_whole_tree_in_a_container_with_a_namespace_of_its_own_is_not_taken_for_the_containers(
    tmp_path: Path,
) -> None:
    mountinfo = "31 30 0:27 /../.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
    assert own_groups(process(tmp_path, "0::/\n", mountinfo)) == OwnGroups()


def test_the_machines_own_group_hands_on_what_it_has(tmp_path: Path) -> None:
    top = group(tmp_path / "top", handed="cpu", kind=None)
    (tmp_path / "top/cgroup.procs").write_text("1\n")  # It may keep them.
    assert delegation.divisible(top, top, root=True, systemd=False) == top
    assert files.read(top, "cgroup.subtree_control").startswith("+memory +pids")


def test_a_group_whose_controllers_are_elsewhere_is_none(tmp_path: Path) -> None:
    top = group(tmp_path / "top", controllers="hugetlb", kind=None)
    with pytest.raises(NoGroupsError, match="controllers memory, pids, cpu are not handed on to"):
        delegation.divisible(top, top, root=True, systemd=False)


def test_a_threaded_group_is_none(tmp_path: Path) -> None:
    top = group(tmp_path / "top", kind="domain threaded")
    with pytest.raises(NoGroupsError, match="is domain threaded, not domain"):
        delegation.divisible(top, top, root=True, systemd=False)


def test_a_group_that_cannot_be_written_is_none(tmp_path: Path) -> None:
    own = group(tmp_path / "top")
    (tmp_path / "top/cgroup.subtree_control").unlink()
    with pytest.raises(NoGroupsError, match="subtree_control: No such file"):
        delegation.divisible(own, own, root=False, systemd=False)


def test_whoever_comes_after_the_processes_were_moved_finds_the_group_above(tmp_path: Path) -> None:
    top = group(tmp_path / "top", handed="cpu memory pids")
    leaf = group(tmp_path / "top" / delegation.LEAF, controllers="memory pids cpu")
    assert delegation.divisible(leaf, str(tmp_path), root=False, systemd=True) == top


@pytest.mark.parametrize("root", [True, False])
@pytest.mark.parametrize("mark", ["user.delegate", "trusted.delegate"])
def test_what_systemd_delegates_is_taken(tmp_path: Path, marks: dict[str, str], mark: str, *, root: bool) -> None:
    unit = group(tmp_path / "unit", handed=ALL)
    below = group(tmp_path / "unit/below", handed=ALL)
    marks[unit] = mark
    assert delegation.divisible(unit, str(tmp_path), root=root, systemd=True) == unit
    # `DelegateSubgroup=`
    assert delegation.divisible(below, str(tmp_path), root=root, systemd=True) == unit


def test_what_systemd_keeps_to_itself_is_left_alone(tmp_path: Path, marks: dict[str, str]) -> None:
    own = group(tmp_path / "user@1000.service/app.slice/app.scope", handed=ALL)
    top = str(tmp_path)
    # An older systemd does not tell ordinary users; what they may write is then theirs.
    assert delegation.divisible(own, top, root=False, systemd=True) == own
    marks[str(tmp_path / "user@1000.service")] = "user.delegate"
    for root in (True, False):
        with pytest.raises(NoGroupsError, match=r"systemd has not delegated .*app\.scope"):
            delegation.divisible(own, top, root=root, systemd=True)
    marks.clear()
    with pytest.raises(NoGroupsError, match="systemd has not delegated"):
        delegation.divisible(own, top, root=True, systemd=True)


@pytest.mark.parametrize(
    ("root", "remedy"),
    [(True, "`systemd-run --scope -p Delegate=yes pyexec …`"), (False, "`systemd-run --user --scope -p Delegate=yes")],
)
def test_without_any_groups_both_reasons_and_the_remedy_are_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, remedy: str, *, root: bool
) -> None:
    top = group(tmp_path / "unified", controllers="hugetlb", kind=None)
    monkeypatch.setattr(choice, "own_groups", lambda: OwnGroups({"memory": "/nowhere"}, top, top))
    monkeypatch.setattr(choice.os, "geteuid", lambda: 0 if root else 1000)
    with pytest.raises(NoGroupsError) as refused:
        choice.find_groups("test", 1)
    assert str(refused.value) == (
        f"version 2: the controllers memory, pids, cpu are not handed on to {top}; "
        "version 1: the controllers pids, cpu of version 1 are not mounted here"
    )
    assert remedy in refused.value.remedy


def test_the_counters_of_version_2_are_read(tmp_path: Path) -> None:
    def write(**values: str) -> None:
        for name, text in values.items():
            (tmp_path / name.replace("_", ".", 1)).write_text(text)

    write(memory_current="70\n", memory_events="low 0\nmax 9\noom_kill 0\n", pids_current="3\n")
    write(cpu_stat="usage_usec 3000000\nuser_usec 2000000\nsystem_usec 1000000\nnr_throttled 4\n")
    one = version2.Group(str(tmp_path), LIMITS)
    usage = one.usage()
    assert (usage.memory, usage.peak_memory, usage.out_of_memory, usage.processes) == (70, 70, 0, 3)
    assert (usage.cpu_seconds, usage.user_seconds, usage.system_seconds, usage.throttled) == (3.0, 2.0, 1.0, 4)
    # Without a peak of the kernel's own: what was seen, and the limit once that was reached.
    write(memory_current="40\n")
    assert one.usage().peak_memory == 70
    write(memory_events="oom_kill 1\n")
    assert (one.usage().peak_memory, one.usage().out_of_memory) == (100, 1)
    write(memory_peak="96\n")
    assert one.usage().peak_memory == 96


def test_the_counters_of_version_1_are_read_where_there_are_any_for_processor_time(tmp_path: Path) -> None:
    values: Mapping[str, str] = {
        "memory.usage_in_bytes": "1\n",
        "memory.max_usage_in_bytes": "2\n",
        "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
        "pids.current": "4\n",
        "cpu.stat": "nr_periods 9\nnr_throttled 5\n",
        "cpuacct.usage": "3000000000\n",
        "cpuacct.usage_user": "2000000000\n",
    }
    for name, text in values.items():
        (tmp_path / name).write_text(text)
    folders: dict[str, str] = dict.fromkeys(version1.CONTROLLERS, str(tmp_path))
    usage = version1.Group(folders | {version1.ACCOUNTING: str(tmp_path)}, LIMITS).usage()
    assert (usage.memory, usage.peak_memory, usage.out_of_memory, usage.processes) == (1, 2, 3, 4)
    assert (usage.cpu_seconds, usage.user_seconds, usage.system_seconds, usage.throttled) == (3.0, 2.0, 0.0, 5)
    assert version1.Group(folders, LIMITS).usage().cpu_seconds == 0.0


def test_watched_sandboxes_are_not_promised_more_than_there_is_either() -> None:
    groups = watched.Groups(250)
    first = groups.create(LIMITS)
    groups.create(LIMITS)
    with pytest.raises(NoRoomError):
        groups.create(LIMITS)
    assert not groups.remove()
    assert first.remove()
    assert groups.promised() == 100


def test_what_cannot_be_seen_is_not_watched() -> None:
    gone = os.fork()
    if gone == 0:
        os._exit(0)
    fd = os.pidfd_open(gone)
    os.waitpid(gone, 0)
    one = watched.Groups(250).create(LIMITS)
    try:
        with pytest.raises(ProcessLookupError):
            one.watch(fd)
        assert one.usage().memory == 0
        assert one.members() == []
    finally:
        os.close(fd)
