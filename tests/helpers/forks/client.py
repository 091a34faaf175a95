"""Stands for a command that another process runs: hands over its streams, passes signals on, ends as the other does."""

import array
import json
import os
import signal
import socket
import sys
from pathlib import Path

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def main() -> int:
    path, *argv = sys.argv[1:]
    asked: list[int] = []
    pid = 0

    def pass_on(number: int, _frame: object) -> None:
        if pid:
            os.kill(pid, number)
        else:
            asked.append(number)

    for number in PASSED_ON:
        signal.signal(number, pass_on)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        body = json.dumps({"argv": argv, "cwd": os.getcwd(), "environ": dict(os.environ)}).encode()
        streams = array.array("i", [0, 1, 2])
        connection.sendmsg([len(body).to_bytes(8, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
        connection.sendall(body)
        for stream in streams:
            os.close(stream)
        answers = connection.makefile("r", encoding="ascii")
        pid = int(answers.readline())
        Path(path).with_name(str(os.getpid())).write_text(str(pid), "ascii")
        for number in asked:
            os.kill(pid, number)
        status = int(answers.readline())
    if status < 0:
        signal.signal(-status, signal.SIG_DFL) if -status not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    sys.exit(main())
