"""What an operator may set about executions and environments. Sizes are bytes, durations seconds."""

from dataclasses import dataclass

from pyexec.domain.sizes import MEGABYTE

DAY = 24 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionLimits:
    """Limits of one owner's executions, with their defaults.

    Attributes:
        concurrent: How many run at once; the rest wait in order.
        queued: How many may wait or run altogether.
        kept_output: How much of each stream is kept on disk, half from its beginning, half from its end.
        answer_output: How much output an answer carries when the caller does not say: 20,000 tokens' worth at three
            bytes a token, which holds for prose, code, digits and Chinese alike.
        answer_output_ceiling: The most that a caller may ask for in one answer.
        timeout_ceiling: The longest time-out a caller may ask for; 0 (none) is always allowed.
        prepare_timeout: How long making the environment of one execution may take.
        source: The longest inline script, and the longest stdin text.
        arguments: The most bytes that a script's arguments may have together.
        artifact: The largest file of an execution that is handed out.
        free_disk: Below this much free disk no new work is taken.
        retention_age: How long ended executions are kept.
        retention_size: How much disk ended executions may take together.
        autosaved: How many sources of inline code are kept after that; 0: none.
        sweep_interval: How often what is too old or too much is removed.
    """

    concurrent: int = 8
    queued: int = 1000
    kept_output: int = 50 * MEGABYTE
    answer_output: int = 60_000
    answer_output_ceiling: int = 4 * MEGABYTE
    timeout_ceiling: float = 30 * DAY
    prepare_timeout: float = 900.0
    source: int = 16 * MEGABYTE
    arguments: int = 128 * 1024
    artifact: int = 64 * MEGABYTE
    free_disk: int = 64 * MEGABYTE
    retention_age: float = 14 * DAY
    retention_size: int = 2048 * MEGABYTE
    autosaved: int = 1000
    sweep_interval: float = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentLimits:
    """Limits of the environments that are kept, with their defaults.

    Attributes:
        environments_size: How much disk they may take together; those not used for the longest time go first.
        environments_age: How long one is kept that nobody uses.
        fresh: How old a resolution may be before the package index is asked again.
    """

    environments_size: int = 10 * 1024 * MEGABYTE
    environments_age: float = 30 * DAY
    fresh: float = DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxLimits:
    """Limits of one sandbox, with their defaults.

    Attributes:
        memory: All its processes together, what is in its folders included.
        cpu: Processors' worth of time.
        processes: How many there may be at once.
        open_files: How many descriptors one process may have.
        workspace: How much `/work` holds; also the largest file.
        temporary: How much `/tmp` holds, and `/dev/shm` likewise.
        files: How many files and folders `/work` holds; `/tmp` and `/dev/shm` a quarter of that each.
        memory_reserve: How much less one process may allocate than `memory`, so that code is told of the end of its
            memory before the kernel kills for it.
    """

    memory: int = 512 * MEGABYTE
    cpu: float = 0.5
    processes: int = 64
    open_files: int = 256
    workspace: int = 256 * MEGABYTE
    temporary: int = 64 * MEGABYTE
    files: int = 16_384
    memory_reserve: int = 32 * MEGABYTE


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLimits:
    """Limits of what is read from and written to the files of sessions in one call, with their defaults.

    Attributes:
        upload: The most that one call writes; more is appended by further ones.
        download: The most that one call reads; more is read from an offset on.
    """

    upload: int = 8 * MEGABYTE
    download: int = 8 * MEGABYTE
