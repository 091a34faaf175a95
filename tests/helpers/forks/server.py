"""Runs commands of pyexec in forks of itself, until its standard input ends."""

import gc
import importlib
import io
import json
import os
import select
import signal
import socket
import sys
from typing import Any

from pyexec.cli.main import COMMANDS, main


def serve(path: str) -> None:
    """Fork for each that comes. Returns in a fork that is to run the command."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # Nobody waits for those who wait.
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{path}.new")
    listener.listen(16)
    os.rename(f"{path}.new", path)
    while True:
        ready, _, _ = select.select([0, listener], [], [])
        if 0 in ready:
            sys.exit()
        connection, _ = listener.accept()
        try:
            request, streams = receive(connection)
        except (ConnectionError, ValueError):
            connection.close()
            continue
        load(request["argv"][1:])
        gc.freeze()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            if become(connection, request, streams):
                return
        connection.close()
        for stream in streams:
            os.close(stream)


def receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    head, streams, _, _ = socket.recv_fds(connection, 8, 3)
    left = int.from_bytes(head, "big")
    body = b""
    while len(body) < left:
        part = connection.recv(left - len(body))
        if not part:
            raise ConnectionError
        body += part
    return json.loads(body), streams


def load(words: list[str]) -> None:
    """Import here what the command would import by itself."""
    for name in words[:1]:
        if name in COMMANDS:
            importlib.import_module(f"pyexec.cli.{name}")
        if name == "serve":
            importlib.import_module("pyexec.app.server")
            importlib.import_module("pyexec.app.services")
        if "--http" in words:
            importlib.import_module("pyexec.app.service")


def become(connection: socket.socket, request: dict[str, Any], streams: list[int]) -> bool:
    """Fork the command and return true in it; the other one waits for it, tells how it ended and ends too."""
    pid = os.fork()
    if pid == 0:
        connection.close()
        put_on(request, streams)
        return True
    for stream in (0, 1, 2, *streams):
        os.close(stream)
    connection.sendall(f"{pid}\n".encode())
    ended = os.pidfd_open(pid)
    ready, _, _ = select.select([ended, connection], [], [])
    if ended not in ready:  # Whoever asked for it has been killed.
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    try:
        connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    finally:
        os.kill(os.getpid(), signal.SIGKILL)  # Nothing of ours is to be done twice at exit.
    return False


def put_on(request: dict[str, Any], streams: list[int]) -> None:
    """Be as a process that was started so."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environ"])
    sys.argv[:] = request["argv"]
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), encoding="utf-8")
    sys.stdout = sys.__stdout__ = io.TextIOWrapper(
        io.BufferedWriter(io.FileIO(1, "wb", closefd=False)), encoding="utf-8"
    )
    sys.stderr = sys.__stderr__ = io.TextIOWrapper(
        io.BufferedWriter(io.FileIO(2, "wb", closefd=False)),
        encoding="utf-8",
        errors="backslashreplace",
        line_buffering=True,
    )


if __name__ == "__main__":
    serve(sys.argv[1])
    main()
