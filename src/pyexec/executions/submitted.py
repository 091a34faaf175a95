"""An execution and what its keeper still says to the process that has submitted it."""

from collections.abc import Mapping
from typing import Any

from pyexec.domain.executions import Execution
from pyexec.environments.orders import Answer
from pyexec.sandbox.keepers import KeeperConnection


class Submitted:
    """One of those. Whoever has it closes it.

    Attributes:
        execution: As it was last seen.
        keeper: The conversation with its keeper, as long as that is open.
        environment: What it runs in, where that is known to this process.
        ended: What the keeper said when it had ended.
    """

    def __init__(
        self, execution: Execution, keeper: KeeperConnection | None = None, environment: Answer | None = None
    ) -> None:
        self.execution = execution
        self.keeper = keeper
        self.environment = environment
        self.ended: Mapping[str, Any] | None = None

    def close(self) -> None:
        """Hang up; the execution goes on."""
        if self.keeper is not None:
            self.keeper.close()
            self.keeper = None
