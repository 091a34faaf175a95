"""What is done while an answer is made."""

import contextvars

from pyexec.executions.submitted import Submitted
from tests.helpers.records import execution

_call: contextvars.ContextVar[str] = contextvars.ContextVar("call")


async def test_it_belongs_to_the_call_and_is_done_before_that_is_answered() -> None:
    seen: list[str] = []
    _call.set("this one")
    submitted = Submitted(execution(1))
    submitted.do_meanwhile(lambda: seen.append(_call.get("none")))
    assert not await submitted.noted()
    assert seen == ["this one"]
