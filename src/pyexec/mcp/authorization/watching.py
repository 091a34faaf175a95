"""Looking again at the tokens of answers that take long."""

import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup

from pyexec.auth.refusals import InvalidTokenError, IssuerUnavailableError
from pyexec.auth.verification import Verifier
from pyexec.domain.identities import Identity

_log = logging.getLogger(__name__)


@dataclass(eq=False, slots=True, kw_only=True)
class Answer:
    """An answer that is under way, and the token in whose name."""

    token: str = field(repr=False)
    identity: Identity
    is_stream: bool
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    done: bool = False


class Watch:
    """Ends answers whose tokens no longer count.

    One task looks at all of them: most are done long before their turn comes, and a task each would cost them more than
    all else that is done for their tokens.
    """

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier
        # In the order in which their turns come, since all wait for the same time.
        self._due: OrderedDict[Answer, float] = OrderedDict()

    @asynccontextmanager
    async def watching(self) -> AsyncGenerator[None]:
        """Watch as long as this lasts."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch, tasks)
            yield
            tasks.cancel_scope.cancel()

    @contextmanager
    def over(self, answer: Answer) -> Generator[None]:
        """Give an answer, and end it here when its token no longer counts."""
        self._put_off(answer)
        try:
            with answer.scope:
                yield
        finally:
            answer.done = True
            self._due.pop(answer, None)

    def _put_off(self, answer: Answer) -> None:
        self._due[answer] = anyio.current_time() + self._verifier.recheck_seconds

    async def _watch(self, looks: TaskGroup) -> None:
        while True:
            now = anyio.current_time()
            first = next(iter(self._due.values()), now + self._verifier.recheck_seconds)
            if first > now:
                await anyio.sleep(first - now)
                continue
            for answer, due in [*self._due.items()]:
                if due > now:
                    break
                self._due.pop(answer)
                looks.start_soon(self._look, answer)

    async def _look(self, answer: Answer) -> None:
        """End an answer whose token was revoked, or has expired if it is a stream; a call is answered all the same."""
        try:
            await self._verifier.verify(answer.token)
        except InvalidTokenError:
            if answer.is_stream or not self._verifier.has_expired(answer.identity):
                _log.info("a token no longer counts: an answer ends")
                answer.scope.cancel()
                return
        except IssuerUnavailableError:
            pass
        if not answer.done:
            self._put_off(answer)
