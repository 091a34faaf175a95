"""Who hears what is run: the audit log, metrics, traces."""

from typing import Protocol

from pyexec.domain.executions import Execution, ExecutionRequest
from pyexec.domain.principals import Principal


class ExecutionObserver(Protocol):
    """Hears of executions, on any thread. What it does must be quick, and raise nothing."""

    def submitted(self, principal: Principal, execution: Execution, request: ExecutionRequest, /) -> None:
        """One was handed over; or the same call came again, and this is the execution of the first."""
        ...

    def refused(self, principal: Principal, request: ExecutionRequest, code: str, /) -> None:
        """One was refused."""
        ...

    def ended(self, execution: Execution, /) -> None:
        """One has ended; nobody else will say so."""
        ...
