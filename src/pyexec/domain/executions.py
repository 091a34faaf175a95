"""An execution: one run of code, its states and its outcome."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from pyexec.domain.strategies import Strategy

State = Literal["pending", "running", "completed", "failed", "cancelled", "timed_out", "lost"]
OutcomeKind = Literal[
    "exited",
    "signalled",
    "out_of_memory",
    "start_failed",
    "environment_failed",
    "returned",
    "raised",
    "cancelled",
    "timed_out",
    "lost",
]
StreamName = Literal["stdout", "stderr"]

STATES: tuple[State, ...] = get_args(State)
OUTCOME_KINDS: tuple[OutcomeKind, ...] = get_args(OutcomeKind)
STREAMS: tuple[StreamName, ...] = get_args(StreamName)

TRANSITIONS: Mapping[State, frozenset[State]] = {
    "pending": frozenset({"running", "failed", "cancelled", "lost"}),
    "running": frozenset({"completed", "failed", "cancelled", "timed_out", "lost"}),
    "completed": frozenset(),
    "failed": frozenset(),
    "cancelled": frozenset(),
    "timed_out": frozenset(),
    "lost": frozenset(),
}
"""Which state may follow which. A keeper may pass through `running` unseen, so an observer may also step from
`pending` to whatever `running` leads to; see `may_follow`."""

TERMINAL: frozenset[State] = frozenset(state for state, following in TRANSITIONS.items() if not following)
ACTIVE: frozenset[State] = frozenset(STATES) - TERMINAL


def may_follow(old: State, new: State) -> bool:
    """Tell whether an observer that last saw `old` may record `new`."""
    seen: set[State] = set()
    frontier: set[State] = {old}
    while frontier:
        following: set[State] = {step for state in frontier for step in TRANSITIONS[state]}
        frontier = following - seen
        seen |= frontier
    return new in seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process that outlived the program that started it."""

    pid: int
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What happened to the user's code. Times are seconds since the epoch (UTC), durations seconds, sizes bytes.

    `exit_code` follows the shell: the program's own code, or 128 + n when signal n ended it (`signal` names it).
    Work inside a server has none: it has `returned` or `raised`.
    `stopped_by` is the last signal that was sent to end the program, whoever asked. `reason` is a sentence, `detail`
    what a tool said that could not do its part.
    """

    kind: OutcomeKind
    exit_code: int | None = None
    signal: str | None = None
    stopped_by: str | None = None
    reason: str | None = None
    detail: str | None = None
    started_at: float | None = None
    ended_at: float
    user_cpu_seconds: float = 0.0
    system_cpu_seconds: float = 0.0
    peak_rss_bytes: int = 0
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    leftover_processes: tuple[Process, ...] = ()

    @property
    def state(self) -> State:
        """The state an execution with this outcome is in."""
        match self.kind:
            case "exited":
                return "completed" if self.exit_code == 0 else "failed"
            case "returned":
                return "completed"
            case "signalled" | "out_of_memory" | "start_failed" | "environment_failed" | "raised":
                return "failed"
            case "cancelled" | "timed_out" | "lost":
                return self.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Harness:
    """What a tool of ours puts around the program: the command becomes `*before, python, *options, program, *args`.

    An execution with one has a folder for what the tool makes, in the variable `PYEXEC_ARTIFACTS`.

    Attributes:
        before: What runs the program, if it does not run by itself.
        options: Of the interpreter.
        instructions: What to tell the tool on standard input, which then gives the programs theirs: a JSON object with
            these `instructions`, the path of `artifacts`, and the `programs`, this one first, then its companions.
        companions: Programs that the tool runs besides; what they need is made before the tool starts.
        packages: What the tool needs, installed apart for the Python that the program runs on: the variable
            `PYEXEC_TOOLS` names a link to the folder they lie in, and nothing puts it on the program's path.
        lacking: What to say first when they cannot be had.
        guest: Whether the options start the guest, whose one turn the program is.
    """

    before: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    instructions: Mapping[str, Any] | None = None
    companions: tuple["ExecutionRequest", ...] = ()
    packages: tuple[str, ...] = ()
    lacking: str = ""
    guest: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionRequest:
    """What a caller asks for: one of `script_path`, `script_content` and `module` (as for `python -m`), and how.

    Values of `env_vars` and `stdin` are secret, and so are credentials in requirements and in `index_url`: they are
    never stored or shown. `environment` names one to run in, `keep_as` gives a name to the one that is made.
    `session_id` names the session whose interpreter runs it.
    """

    directory: str | None = None
    script_path: str | None = None
    script_content: str | None = None
    module: str | None = None
    args: tuple[str, ...] = ()
    use_uv: bool = True
    python_version: str | None = None
    dependencies: tuple[str, ...] | None = field(default=None, repr=False)
    constraints: tuple[str, ...] = field(default=(), repr=False)
    index_url: str | None = field(default=None, repr=False)
    environment: str | None = None
    keep_as: str | None = None
    timeout_seconds: float = 0.0
    env_vars: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    env_file: str | None = None
    stdin: str | None = field(default=None, repr=False)
    label: str | None = None
    request_id: str | None = None
    kind: str = "script"
    stream: bool = False
    harness: Harness | None = None
    sandboxed: bool = False
    session_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """The record of one execution, as last observed. Times are seconds since the epoch (UTC)."""

    id: str
    owner: str
    state: State
    kind: str
    label: str | None
    request_id: str | None
    directory: str
    source: str
    strategy: Strategy
    python: str
    python_version: str | None
    notes: tuple[str, ...] = ()
    dependencies: tuple[str, ...] | None
    timeout_seconds: float
    stream: bool
    session: str | None = None
    created_at: float
    started_at: float | None = None
    pid: int | None = None
    outcome: Outcome | None = None

    @property
    def ended(self) -> bool:
        """Whether the state is final."""
        return self.state in TERMINAL

    def elapsed(self, now: float) -> float:
        """Seconds the program has run, or ran; 0 before it started."""
        if self.started_at is None:
            return 0.0
        end = self.outcome.ended_at if self.outcome else now
        return max(0.0, end - self.started_at)
