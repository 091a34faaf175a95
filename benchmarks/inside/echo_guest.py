"""What the sandboxes of the benchmark run: it sends back what it gets, having used what was imported ahead."""

import socket
import sys


def run(fd: int) -> int:
    with socket.socket(fileno=fd) as connection:
        while data := connection.recv(100):
            frame = sys.modules["pandas"].DataFrame({"a": [1, 2]})
            connection.sendall(data if int(frame.a.sum()) == 3 else b"")
    return 0
