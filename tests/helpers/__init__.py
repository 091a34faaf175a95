"""What the tests of the whole product share: waiting for a condition, state folders, servers with a client."""

from tests.helpers.waiting import eventually

__all__ = ["eventually"]
