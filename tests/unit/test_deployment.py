"""What is in deploy: that it names only what there is."""

import json
import re
from pathlib import Path

import pytest

from pyexec.settings import VARIABLES
from pyexec_idp.settings import VARIABLES as IDP_VARIABLES

DEPLOY = Path(__file__).parents[2] / "deploy"
FILES = sorted(path for path in DEPLOY.rglob("*") if path.is_file())
VARIABLE = re.compile(r"PYEXEC_[A-Z_]+")
KNOWN = {one.name for one in (*VARIABLES, *IDP_VARIABLES)}
NEEDED = {
    *("clone", "clone3", "unshare", "setns", "pivot_root", "sethostname", "setresuid", "setgroups", "capset"),
    *("mount", "umount2", "mount_setattr", "move_mount", "open_tree", "openat2"),
    *("execve", "pidfd_send_signal", "prctl", "seccomp"),
}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_only_settings_that_there_are_are_named(path: Path) -> None:
    assert set(VARIABLE.findall(path.read_text("utf-8"))) <= KNOWN


def test_what_the_compose_file_asks_of_its_user_is_in_the_example() -> None:
    asked = set(re.findall(r"\$\{([A-Z_]+):", (DEPLOY / "compose.yaml").read_text("utf-8")))
    given = re.findall(r"^([A-Z_]+)=", (DEPLOY / "compose.env.example").read_text("utf-8"), re.MULTILINE)
    assert sorted(asked) == sorted(given)


def test_the_compose_file_builds_and_mounts_what_is_there() -> None:
    text = (DEPLOY / "compose.yaml").read_text("utf-8")
    named = re.findall(r"dockerfile: deploy/(\S+)", text) + re.findall(r"seccomp:\./([a-z/.]+)", text)
    assert sorted(named) == ["identity-provider/Containerfile", "server/Containerfile", "server/seccomp.json"]
    assert all((DEPLOY / name).is_file() for name in named)


def test_the_filter_of_system_calls_refuses_what_leads_out_and_nothing_that_a_wall_takes() -> None:
    filtered = json.loads((DEPLOY / "server/seccomp.json").read_text("utf-8"))
    refused = {name for rule in filtered["syscalls"] if "args" not in rule for name in rule["names"]}
    assert {rule["action"] for rule in filtered["syscalls"]} == {"SCMP_ACT_ERRNO"}
    assert {"bpf", "io_uring_setup", "keyctl", "kexec_load", "perf_event_open", "userfaultfd"} <= refused
    assert refused.isdisjoint(NEEDED)
