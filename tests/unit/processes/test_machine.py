"""How much memory there is."""

from pathlib import Path

import pytest

from pyexec.processes import machine

MB = 1024 * 1024


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, "proc/meminfo", "MemTotal:        8388608 kB\nMemFree:         1 kB\n")
    write(tmp_path, "proc/self/cgroup", "0::/\n")
    return tmp_path


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def test_what_this_machine_has_is_told() -> None:
    assert 128 * MB < machine.memory() < 1 << 50


def test_without_limits_it_is_all_that_the_machine_has(root: Path) -> None:
    assert machine.memory(root) == 8192 * MB
    write(root, "sys/fs/cgroup/memory.max", "max\n")
    assert machine.memory(root) == 8192 * MB


@pytest.mark.parametrize("place", ["memory/docker/1/memory.stat", "memory/memory.stat"])
def test_a_control_group_of_version_1_allows_less(root: Path, place: str) -> None:
    write(root, "proc/self/cgroup", "9:cpu,cpuacct:/x\n4:memory:/docker/1\n0::/\n")
    write(root, f"sys/fs/cgroup/{place}", f"cache 1\nhierarchical_memory_limit {512 * MB}\ntotal_cache 1\n")
    assert machine.memory(root) == 512 * MB


def test_no_limit_of_version_1_is_a_very_large_one(root: Path) -> None:
    write(root, "proc/self/cgroup", "4:memory:/\n")
    write(root, "sys/fs/cgroup/memory/memory.stat", "hierarchical_memory_limit 9223372036854771712\n")
    assert machine.memory(root) == 8192 * MB


def test_the_smallest_limit_on_the_way_up_counts_with_version_2(root: Path) -> None:
    write(root, "proc/self/cgroup", "0::/user.slice/app.scope\n")
    write(root, "sys/fs/cgroup/user.slice/app.scope/memory.max", f"{4096 * MB}\n")
    write(root, "sys/fs/cgroup/user.slice/memory.max", f"{1024 * MB}\n")
    write(root, "sys/fs/cgroup/memory.max", "max\n")
    assert machine.memory(root) == 1024 * MB
