"""Which system calls a sandbox may make.

An allow-list: what is not named here does not exist for a sandbox (ENOSYS, so that libraries fall back to what they
did before the call was invented). What is refused on purpose answers EPERM, which people understand.
"""

import errno
from collections.abc import Mapping
from dataclasses import dataclass, field

ALLOW = 0x7FFF0000
KILL_PROCESS = 0x80000000
_ERRNO = 0x00050000

Action = int
"""What the kernel does: a return value of a seccomp filter."""


def fail_with(number: int) -> Action:
    """Return the action that makes a call fail with that errno; with 0 it does nothing and succeeds."""
    return _ERRNO | number


DENY = fail_with(errno.EPERM)
ABSENT = fail_with(errno.ENOSYS)


@dataclass(frozen=True)
class Choice:
    """Decides by the value of one argument, of which the kernel looks at the lower 32 bits."""

    argument: int
    otherwise: Action
    cases: "Mapping[int, Action]" = field(default_factory=dict[int, Action])


@dataclass(frozen=True)
class Clear:
    """Allows a call when none of these bits is set in one argument (its lower 32 bits); denies it otherwise."""

    argument: int
    bits: int


Rule = Action | Choice | Clear

_NAMESPACES = 0x7E020000
_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
_MADV_MERGEABLE = 12
_ATTACH_PROGRAM = (26, 50, 51, 52)

_ALLOWED = """
read write open close stat fstat lstat newfstatat statx poll ppoll select pselect6 lseek mmap munmap mprotect
mremap msync mincore brk pread64 pwrite64 readv writev preadv pwritev preadv2 pwritev2 access faccessat faccessat2 pipe
pipe2 dup dup2 dup3 fcntl flock fsync fdatasync truncate ftruncate fallocate fadvise64 readahead sync_file_range
getdents getdents64 getcwd chdir fchdir rename renameat renameat2 mkdir mkdirat rmdir creat link linkat unlink unlinkat
symlink symlinkat readlink readlinkat chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat umask utime utimes
utimensat futimesat mknod mknodat openat openat2 close_range statfs fstatfs sendfile copy_file_range
getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr
rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_tgsigqueueinfo rt_sigsuspend
sigaltstack pause alarm setitimer getitimer kill tkill tgkill signalfd signalfd4 restart_syscall
nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday time times timer_create timer_settime timer_gettime
timer_getoverrun timer_delete timerfd_create timerfd_settime timerfd_gettime
sched_yield sched_getaffinity sched_setaffinity sched_getparam sched_getscheduler sched_get_priority_max
sched_get_priority_min sched_getattr sched_rr_get_interval getpriority setpriority getcpu
fork vfork execve execveat exit exit_group wait4 waitid getpid getppid gettid getpgrp setpgid getpgid setsid getsid
set_tid_address set_robust_list get_robust_list futex futex_waitv rseq membarrier arch_prctl
pidfd_open pidfd_send_signal
getuid geteuid getgid getegid getresuid getresgid getgroups setuid setgid setreuid setregid setresuid setresgid
setfsuid setfsgid capget
getrlimit setrlimit prlimit64 getrusage sysinfo uname
epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd eventfd2
inotify_init inotify_init1 inotify_add_watch inotify_rm_watch
connect accept accept4 sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg shutdown bind listen getsockname getpeername
getsockopt
getrandom memfd_create mlock mlock2 munlock mlockall munlockall
"""
"""As the widely used container profiles allow them, without what a Python program has no use for."""

_DENIED = """
ptrace process_vm_readv process_vm_writev process_madvise process_mrelease kcmp pidfd_getfd
mount umount2 pivot_root chroot fsopen fsconfig fsmount fspick move_mount open_tree open_tree_attr mount_setattr
statmount listmount
unshare setns keyctl add_key request_key bpf perf_event_open userfaultfd
io_uring_setup io_uring_enter io_uring_register seccomp modify_ldt
name_to_handle_at open_by_handle_at fanotify_init fanotify_mark lookup_dcookie quotactl quotactl_fd acct
swapon swapoff reboot kexec_load kexec_file_load init_module finit_module delete_module create_module
settimeofday clock_settime clock_adjtime adjtimex sethostname setdomainname syslog vhangup iopl ioperm
capset setgroups sched_setscheduler sched_setparam sched_setattr ioprio_set
mbind set_mempolicy set_mempolicy_home_node migrate_pages move_pages get_mempolicy
shmget shmat shmdt shmctl msgget msgsnd msgrcv msgctl semget semop semctl semtimedop
mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr
"""
"""A sandbox that asks for one of these shall read that it is not permitted."""

_UNSUPPORTED = "setxattr lsetxattr fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat"
"""What copies files leaves these out when the file system has no such thing."""

_HARMLESS = "sync syncfs"
"""They would write out what the whole machine has not written yet; a sandbox has no disk."""


def _only(argument: int, values: "tuple[int, ...]", otherwise: Action) -> Choice:
    return Choice(argument, otherwise, dict.fromkeys(values, ALLOW))


_PRCTL = (
    1, 2,  # PDEATHSIG
    3, 4,  # DUMPABLE
    15, 16,  # NAME
    21,  # GET_SECCOMP
    23,  # CAPBSET_READ
    29, 30,  # TIMERSLACK
    36, 37,  # CHILD_SUBREAPER
    38, 39,  # NO_NEW_PRIVS
    40,  # GET_TID_ADDRESS
    41, 42,  # THP_DISABLE
    0x53564D41,  # SET_VMA: allocators name their memory
)  # fmt: skip

_IOCTL = (
    0x5401, 0x5402, 0x5403, 0x5404,  # TCGETS, TCSETS, TCSETSW, TCSETSF
    0x540F, 0x5410,  # TIOCGPGRP, TIOCSPGRP
    0x5413, 0x5414,  # TIOCGWINSZ, TIOCSWINSZ
    0x541B, 0x5421,  # FIONREAD, FIONBIO
    0x5429,  # TIOCGSID
    0x5450, 0x5451, 0x5452,  # FIONCLEX, FIOCLEX, FIOASYNC
)  # fmt: skip

_SPECIAL: "Mapping[str, Rule]" = {
    "clone": Clear(0, _NAMESPACES),
    # Its flags lie in memory, where no filter can look; the C library falls back to clone.
    "clone3": ABSENT,
    "socket": Choice(
        0,
        fail_with(errno.EAFNOSUPPORT),
        {
            _AF_UNIX: ALLOW,
            _AF_INET: fail_with(errno.ENETUNREACH),
            _AF_INET6: fail_with(errno.ENETUNREACH),
        },
    ),
    "socketpair": _only(0, (_AF_UNIX,), fail_with(errno.EAFNOSUPPORT)),
    "setsockopt": Choice(2, ALLOW, dict.fromkeys(_ATTACH_PROGRAM, DENY)),
    "personality": _only(0, (0, 0xFFFFFFFF), DENY),
    "prctl": _only(0, _PRCTL, DENY),
    "ioctl": _only(1, _IOCTL, fail_with(errno.ENOTTY)),
    # Merging equal pages lets one sandbox find out what another has in memory.
    "madvise": Choice(2, ALLOW, {_MADV_MERGEABLE: fail_with(errno.EINVAL)}),
}

_REAPER = """
read write close wait4 waitid kill exit exit_group rt_sigprocmask rt_sigtimedwait rt_sigreturn rt_sigaction
brk mmap munmap mremap madvise futex getpid gettid sched_yield clock_gettime
"""


def sandbox_policy(numbers: "Mapping[str, int]") -> "dict[int, Rule]":
    """Return the rule of each system call that has one, by its number; all others are `ABSENT`."""
    by_name: dict[str, Rule] = dict.fromkeys(_ALLOWED.split(), ALLOW)
    by_name.update(dict.fromkeys(_DENIED.split(), DENY))
    by_name.update(dict.fromkeys(_UNSUPPORTED.split(), fail_with(errno.ENOTSUP)))
    by_name.update(dict.fromkeys(_HARMLESS.split(), fail_with(0)))
    by_name.update(_SPECIAL)
    return _by_number(by_name, numbers)


def reaper_policy(numbers: "Mapping[str, int]") -> "dict[int, Rule]":
    """Return the rules of a sandbox's first process, which only waits for the others."""
    return _by_number(dict.fromkeys(_REAPER.split(), ALLOW), numbers)


def _by_number(by_name: "Mapping[str, Rule]", numbers: "Mapping[str, int]") -> "dict[int, Rule]":
    return {numbers[name]: rule for name, rule in by_name.items() if name in numbers}
