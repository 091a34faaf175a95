"""Talking with a keeper: nobody else waits for it, and what it has said counts whatever it says next."""

import socket
from collections.abc import Iterator

import anyio
import anyio.to_thread
import pytest

from pyexec.sandbox.keepers import KeeperConnection
from pyexec_guest.protocol import encode


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.settimeout(20)  # As one that orders have just been sent on.
    with ours, theirs:
        yield ours, theirs


async def test_others_go_on_while_a_keeper_says_nothing(ends: tuple[socket.socket, socket.socket]) -> None:
    keeper = KeeperConnection(ends[0])
    heard: list[object] = []

    async def hear() -> None:
        heard.append(await keeper.next())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hear)
        for _turn in range(10):  # They would not come to this if one of them waited for the keeper.
            await anyio.lowlevel.checkpoint()
        assert heard == []
        ends[1].sendall(encode({"t": "hello"}))
    assert heard == [{"t": "hello"}]


async def test_what_came_before_what_is_no_message_counts_and_then_it_is_over(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    ends[1].sendall(encode({"t": "hello"}) + b"\0\0\0\x0d" + b'{"n": 1e9999}')
    keeper = KeeperConnection(ends[0])
    assert [await keeper.next(), await keeper.next(), await keeper.next()] == [{"t": "hello"}, None, None]
    keeper.close()


def test_a_thread_waits_for_a_keeper_as_long_as_it_wants_to(ends: tuple[socket.socket, socket.socket]) -> None:
    keeper = KeeperConnection(ends[0])
    with pytest.raises(TimeoutError):
        keeper.next_within(0.01)
    ends[1].sendall(encode({"t": "phase"}))
    assert keeper.next_within(60) == {"t": "phase"}
    assert keeper.said("phase") is None


async def test_what_a_keeper_does_not_read_at_once_is_told_when_it_does(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    keeper, message = KeeperConnection(ends[0]), {"files": [["execution.json", "x" * 2**20]]}
    keeper.tell(message)
    read = bytearray()

    def listen() -> None:
        while len(read) < len(encode(message)):
            read.extend(ends[1].recv(2**16))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(anyio.to_thread.run_sync, listen)
        await keeper.all_told()
    assert bytes(read) == encode(message)


async def test_telling_one_that_has_gone_ends(ends: tuple[socket.socket, socket.socket]) -> None:
    keeper = KeeperConnection(ends[0])
    keeper.tell({"files": []})  # Which it has not read.
    ends[1].sendall(encode({"t": "later"}))
    ends[1].close()
    keeper.tell({"files": []})
    await keeper.all_told()
    assert await keeper.next() == {"t": "later"}


async def test_a_note_is_heard_whenever_it_comes(ends: tuple[socket.socket, socket.socket]) -> None:
    keeper = KeeperConnection(ends[0])
    ends[1].sendall(encode({"t": "out"}) + encode({"t": "noted", "again": True}))
    assert await keeper.noted() == {"t": "noted", "again": True}
    heard: list[object] = []

    async def hear() -> None:
        heard.append(await keeper.noted())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hear)
        for _turn in range(10):
            await anyio.lowlevel.checkpoint()
        assert heard == []
        ends[1].close()
    assert heard == [{}]
