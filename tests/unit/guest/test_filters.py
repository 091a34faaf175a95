"""The filters of system calls, run in a model of the kernel's machine: every number, on every architecture."""

import errno
from collections.abc import Sequence

import pytest

from pyexec_guest.confine import bpf, policy, seccomp
from pyexec_guest.confine.bpf import Instruction
from pyexec_guest.confine.policy import ABSENT, ALLOW, DENY, KILL_PROCESS, Choice, Clear, fail_with

MACHINES = list(seccomp.MACHINES.values())
HIGHEST = 700
MOST_INSTRUCTIONS = 4096

NEVER = (
    "ptrace process_vm_readv process_vm_writev pidfd_getfd kcmp mount umount2 pivot_root chroot fsopen fsmount "
    "move_mount open_tree mount_setattr unshare setns clone3 keyctl add_key request_key bpf perf_event_open "
    "userfaultfd io_uring_setup io_uring_enter io_uring_register seccomp name_to_handle_at open_by_handle_at "
    "fanotify_init quotactl acct swapon reboot kexec_load init_module finit_module delete_module settimeofday "
    "clock_settime sethostname syslog capset process_madvise io_setup vmsplice splice tee memfd_secret "
    "landlock_create_ruleset shmget msgget semget mq_open "
)

NEEDED = (
    "read write openat close mmap mprotect munmap brk clone execve exit_group futex rt_sigaction getrandom wait4 "
    "pipe2 epoll_create1 eventfd2 timerfd_create memfd_create statx newfstatat getdents64 prlimit64 "
    "sched_getaffinity set_robust_list rseq membarrier socketpair "
)


def run(program: Sequence[Instruction], audit: int, number: int, arguments: Sequence[int] = ()) -> int:
    """Return what a filter says to one call, as the kernel would run it."""
    words = {0: number, 4: audit}
    for index, argument in enumerate((*arguments, 0, 0, 0, 0, 0, 0)[:6]):
        words[16 + 8 * index] = argument & 0xFFFFFFFF
        words[20 + 8 * index] = argument >> 32
    at = accumulator = 0
    while True:
        code, yes, no, value = program[at]
        at += 1
        match code:
            case bpf.LOAD:
                accumulator = words[value]
            case bpf.RETURN:
                return value
            case bpf.JUMP:
                at += value
            case bpf.JUMP_EQUAL:
                at += yes if accumulator == value else no
            case bpf.JUMP_AT_LEAST:
                at += yes if accumulator >= value else no
            case bpf.JUMP_ANY_BIT:
                at += yes if accumulator & value else no
            case _:
                raise AssertionError(f"unknown instruction {code:#x}")


@pytest.fixture(params=MACHINES, ids=lambda machine: machine.name)
def machine(request: pytest.FixtureRequest) -> seccomp.Machine:
    return request.param


def say(machine: seccomp.Machine, name: str, *arguments: int) -> int:
    return run(seccomp.sandbox_program(machine), machine.audit, machine.numbers[name], arguments)


@pytest.mark.parametrize("whose", ["sandbox", "reaper"])
def test_the_program_says_of_every_call_what_the_policy_says(machine: seccomp.Machine, whose: str) -> None:
    rules = getattr(policy, f"{whose}_policy")(machine.numbers)
    program = getattr(seccomp, f"{whose}_program")(machine)
    assert len(program) < MOST_INSTRUCTIONS
    for number in range(HIGHEST):
        rule = rules.get(number, ABSENT)
        for value in _interesting(rule):
            at = rule.argument if isinstance(rule, Choice | Clear) else 0
            arguments = [0] * at + [value]
            assert run(program, machine.audit, number, arguments) == _expected(rule, value), (number, hex(value))


def _interesting(rule: policy.Rule) -> list[int]:
    if isinstance(rule, Choice):
        values = [0, 1, 0xFFFFFFFF, *rule.cases, *(value + 1 for value in rule.cases)]
    elif isinstance(rule, Clear):
        values = [0, *(1 << bit for bit in range(32))]
    else:
        values = [0]
    # What lies above 32 bits is not looked at by the kernel either, so it must not change the answer.
    return [*values, *(value | 1 << 32 for value in values)]


def _expected(rule: policy.Rule, value: int) -> int:
    seen = value & 0xFFFFFFFF
    if isinstance(rule, Choice):
        return rule.cases.get(seen, rule.otherwise)
    if isinstance(rule, Clear):
        return DENY if seen & rule.bits else ALLOW
    return rule


def test_what_leads_out_of_a_sandbox_is_never_allowed(machine: seccomp.Machine) -> None:
    assert {name for name in NEVER.split() if name in machine.numbers and say(machine, name) == ALLOW} == set()
    assert sum(name in machine.numbers for name in NEVER.split()) > 50


def test_what_every_program_needs_is_allowed(machine: seccomp.Machine) -> None:
    unix = 1
    assert {
        name for name in NEEDED.split() if say(machine, name, unix if name == "socketpair" else 0) != ALLOW
    } == set()


def test_a_call_that_nobody_knows_does_not_exist(machine: seccomp.Machine) -> None:
    assert run(seccomp.sandbox_program(machine), machine.audit, 10_000) == ABSENT


def test_a_call_of_another_architecture_ends_the_process(machine: seccomp.Machine) -> None:
    for other in (0x40000003, *(one.audit for one in MACHINES if one is not machine)):
        assert run(seccomp.sandbox_program(machine), other, 1) == KILL_PROCESS


def test_the_x32_variants_do_not_exist() -> None:
    machine = seccomp.MACHINES["x86_64"]
    for number in (*machine.numbers.values(), 512, 547):
        assert run(seccomp.sandbox_program(machine), machine.audit, number | bpf.X32_BIT) == ABSENT


def test_threads_and_processes_may_be_made_but_no_namespaces(machine: seccomp.Machine) -> None:
    thread, fork = 0x3D0F00, 0x01200011
    assert say(machine, "clone", thread) == ALLOW
    assert say(machine, "clone", fork) == ALLOW
    for kind in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert say(machine, "clone", fork | kind) == DENY
    assert say(machine, "clone3") == ABSENT


def test_sockets_are_for_the_sandbox_alone(machine: seccomp.Machine) -> None:
    assert say(machine, "socket", 1) == ALLOW
    assert {say(machine, "socket", family) for family in (2, 10)} == {fail_with(errno.ENETUNREACH)}
    for family in (0, 3, 9, 15, 16, 17, 29, 31, 38, 40, 44):
        assert say(machine, "socket", family) == fail_with(errno.EAFNOSUPPORT)


def test_typing_into_a_terminal_is_refused_whatever_the_upper_half_says(machine: seccomp.Machine) -> None:
    for request in (0x5412, 0x541C, 0x5412 | 1 << 32, 0x5412 | 0xFFFFFFFF << 32):
        assert say(machine, "ioctl", 0, request) == fail_with(errno.ENOTTY)


def test_a_filter_that_the_kernel_accepts_is_what_was_assembled() -> None:
    program = seccomp.sandbox_program(seccomp.this_machine())
    assert len(bpf.encode(program)) == 8 * len(program)


def test_there_is_no_filter_for_an_unknown_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seccomp, "MACHINES", {})
    with pytest.raises(LookupError, match="no filter of system calls"):
        seccomp.this_machine()
