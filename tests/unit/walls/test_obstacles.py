"""What is said to be in the way of the wall, on machines that are written down here."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from pyexec.sandbox.forks import Plan, Program, Users
from pyexec.walls.bubblewrap.obstacles import Obstacle, find_group_obstacles, find_obstacles

KERNEL = "proc/sys/kernel"
APPARMOR = "apparmor_restrict_unprivileged_userns"
VERSION_1 = "30 1 0:9 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
ROOT = "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\nSeccomp:\t0\n"
ORDINARY = "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\nSeccomp:\t0\n"
IN_DOCKER = "Uid:\t0\t0\t0\t0\nCapEff:\t00000000a80425fb\nSeccomp:\t2\n"
MOUNTS = "22 1 0:21 / /proc rw - proc proc rw\n23 22 0:30 / /proc/sys/fs/binfmt_misc rw - autofs systemd-1 rw\n"
MASKED = f"{MOUNTS}24 22 0:31 / /proc/kcore rw - tmpfs tmpfs rw\n"
WELL: Mapping[str, str] = {
    f"{KERNEL}/{APPARMOR}": "0\n",
    f"{KERNEL}/unprivileged_userns_clone": "1\n",
    "proc/sys/user/max_user_namespaces": "96000\n",
    "proc/self/status": ROOT,
    "proc/self/uid_map": "         0          0 4294967295\n",
    "proc/self/mountinfo": MOUNTS,
}
BWRAP = Program("/usr/bin", "none-such")


def machine(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def found(root: Path, **changes: str) -> dict[str, Obstacle]:
    files = {**WELL, **{name.replace("__", "/"): text for name, text in changes.items()}}
    return {one.id: one for one in find_obstacles(BWRAP, None, machine(root, files))}


def test_a_machine_that_is_well_has_nothing_in_the_way_and_neither_has_one_of_which_nothing_is_known(
    tmp_path: Path,
) -> None:
    assert found(tmp_path / "well") == {}
    assert find_obstacles(BWRAP, None, tmp_path / "nothing") == ()


@pytest.mark.parametrize(
    ("name", "value", "key", "remedy"),
    [
        (
            f"{KERNEL}/apparmor_restrict_unprivileged_userns",
            "1",
            "apparmor",
            "kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        (f"{KERNEL}/unprivileged_userns_clone", "0", "userns-clone", "kernel.unprivileged_userns_clone=1"),
        ("proc/sys/user/max_user_namespaces", "0", "max-user-namespaces", "user.max_user_namespaces=15000"),
        ("proc/sys/user/max_net_namespaces", "0", "max-net-namespaces", "user.max_net_namespaces=15000"),
    ],
)
def test_a_setting_of_the_kernel_is_named_with_the_command_that_changes_it_and_keeps_it(
    tmp_path: Path, name: str, value: str, key: str, remedy: str
) -> None:
    (only,) = find_obstacles(BWRAP, None, machine(tmp_path, {**WELL, name: f"{value}\n"}))
    assert only.id == key
    assert only.remedy.startswith(f"sudo sysctl -w {remedy}; ")
    assert f"echo {remedy} | sudo tee /etc/sysctl.d/" in only.remedy


@pytest.mark.parametrize(
    ("marker", "name", "seccomp", "masks"),
    [
        (".dockerenv", "Docker", "--security-opt seccomp=unconfined", "--security-opt systempaths=unconfined"),
        ("run/.containerenv", "Podman", "--security-opt seccomp=unconfined", "--security-opt unmask=ALL"),
        ("run/secrets/kubernetes.io/token", "Kubernetes", "seccompProfile.type: Unconfined", "procMount: Unmasked"),
        ("etc/none", "a container", "--security-opt seccomp=unconfined", "--security-opt systempaths=unconfined"),
    ],
)
def test_a_container_is_told_by_its_name_and_with_the_options_that_it_needs(
    tmp_path: Path, marker: str, name: str, seccomp: str, masks: str
) -> None:
    files = {**WELL, marker: "", "proc/self/status": IN_DOCKER, "proc/self/mountinfo": MASKED}
    obstacles = {one.id: one for one in find_obstacles(BWRAP, None, machine(tmp_path, files))}
    assert list(obstacles) == ["root-capabilities", "seccomp", "proc-masked"]
    assert f"{name} has one" in obstacles["seccomp"].what
    assert seccomp in obstacles["seccomp"].remedy
    assert "/proc/kcore" in obstacles["proc-masked"].what
    assert masks in obstacles["proc-masked"].remedy
    assert "SYS_ADMIN" in obstacles["root-capabilities"].what
    assert "--user 1000" in obstacles["root-capabilities"].remedy
    assert obstacles["root-capabilities"].remedy.endswith("with --cap-add SYS_ADMIN.")


def test_a_root_that_has_no_users_to_give_is_told_and_an_ordinary_user_needs_none(tmp_path: Path) -> None:
    small = "0 100000 65536\n"
    assert list(found(tmp_path / "a", proc__self__uid_map=small)) == ["root-users"]
    assert found(tmp_path / "b", proc__self__uid_map=small, proc__self__status=ORDINARY) == {}


def test_a_bubblewrap_that_is_setuid_is_told(tmp_path: Path) -> None:
    bwrap = tmp_path / "bwrap"
    bwrap.touch()
    bwrap.chmod(0o4755)
    (only,) = find_obstacles(Program(str(tmp_path), "bwrap"), None, machine(tmp_path / "root", WELL))
    assert (only.id, f"sudo chmod u-s {bwrap}" in only.remedy) == ("bwrap-setuid", True)


def test_files_that_the_users_of_sandboxes_may_not_read_are_told(tmp_path: Path) -> None:
    source = tmp_path / "src/pyexec_guest"
    (source / "forkserver").mkdir(parents=True)
    hidden = source / "forkserver/server.py"
    hidden.touch(0o600)
    plan = Plan(
        bwrap=BWRAP,
        binds=(("/usr", "/usr"), (str(source), "/opt/pyexec/guest/pyexec_guest")),
        devices=(),
        files=(),
        links=(),
        environment=(),
        command=("/opt/python/bin/python",),
        users=Users(1, 2),
        scratch_size=1,
    )
    root = machine(tmp_path / "root", WELL)
    (only,) = find_obstacles(BWRAP, plan, root)
    assert only.what.endswith(f"who may not read {hidden}.")
    assert only.remedy == f"chmod -R a+rX {source}"
    assert find_obstacles(BWRAP, replace(plan, users=None), root) == ()
    hidden.chmod(0o644)
    assert find_obstacles(BWRAP, plan, root) == ()


def test_what_the_system_hides_that_is_not_of_its_python_is_nobodys_business(tmp_path: Path) -> None:
    system, root = tmp_path / "usr", machine(tmp_path / "root", WELL)
    for folder in ("bin", "lib/python3.13/json", "lib/ssl"):
        (system / folder).mkdir(parents=True)
    (system / "lib/ssl/private").mkdir(0o700)
    (system / "lib/python3.13/linked").symlink_to(system / "lib/ssl/private")
    plan = Plan(
        bwrap=BWRAP,
        binds=((str(system), "/usr"),),
        devices=(),
        files=(),
        links=(),
        environment=(),
        command=("/usr/bin/python3.13",),
        users=Users(1, 2),
        scratch_size=1,
    )
    assert find_obstacles(BWRAP, plan, root) == ()
    hidden = system / "lib/python3.13/json/decoder.py"
    hidden.touch(0o600)
    (only,) = find_obstacles(BWRAP, plan, root)
    assert (str(hidden) in only.what, only.remedy) == (True, f"chmod -R a+rX {hidden.parent}")


@pytest.mark.parametrize(
    ("files", "key", "said"),
    [
        ({"sys/fs/cgroup/cgroup.controllers": "cpu io memory pids\n"}, "cgroup-delegation", "Delegate=yes"),
        ({"sys/fs/cgroup/cgroup.controllers": "cpu io pids\n"}, "cgroup-controllers", "cgroup_enable=memory"),
        (
            {"proc/self/mountinfo": VERSION_1},
            "cgroup-root",
            "as root",
        ),
        ({"proc/self/mountinfo": VERSION_1.replace(" rw - ", " ro,nosuid - ")}, "cgroup-read-only", "--user 0"),
        (
            {
                "proc/self/mountinfo": "30 1 0:9 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n",
                "sys/fs/cgroup/cgroup.controllers": "cpu io memory pids\n",
                ".dockerenv": "",
            },
            "cgroup-read-only",
            "PYEXEC_SANDBOX_WAIVE=memory,cpu",
        ),
        ({}, "cgroup-none", "/sys/fs/cgroup:rw"),
    ],
)
def test_why_there_are_no_control_groups_is_told(tmp_path: Path, files: Mapping[str, str], key: str, said: str) -> None:
    (only,) = find_group_obstacles(machine(tmp_path, files))
    assert only.id == key
    assert said in only.remedy
