"""Programs that are hard to end, as source text."""

# Prints one line of JSON, name -> pid, then a number every 20 ms on stdout; each number is also noted in the file
# `ticks` of its directory once it is printed, so that a test can tell what must have been kept.
FAMILY = r"""
import json, os, signal, sys, time

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
pids = {"itself": os.getpid()}

def stay():
    while True:
        time.sleep(60)

def child(name, do):
    read, write = os.pipe()
    if os.fork() == 0:
        try:
            os.close(read)
            do(lambda: os.write(write, b"%d" % os.getpid()))
        finally:
            os._exit(0)
    os.close(write)
    pids[name] = int(os.read(read, 20))
    os.close(read)

def plain(ready):
    ready()
    stay()

def deaf(ready):
    for number in NUMBERS:
        signal.signal(number, signal.SIG_IGN)
    ready()
    stay()

def stopped(ready):
    ready()
    os.kill(os.getpid(), signal.SIGSTOP)
    stay()

def busy(ready):
    deaf_numbers = [signal.signal(number, signal.SIG_IGN) for number in NUMBERS]
    ready()
    while True:
        pass

def in_a_session(ready):
    os.setsid()
    deaf(ready)

def daemon(ready):
    os.setsid()
    if os.fork() == 0:
        os.chdir("/")
        deaf(ready)

def without_environment(ready):
    os.setsid()
    if os.fork() == 0:
        for number in NUMBERS:
            signal.signal(number, signal.SIG_IGN)
        ready()
        nothing = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(nothing, fd)
        os.execve("/bin/sleep", ["sleep", "300"], {})

for do in (plain, deaf, stopped, busy, in_a_session, daemon, without_environment):
    child(do.__name__, do)
for number in NUMBERS:
    signal.signal(number, signal.SIG_IGN)
ticks = os.open("ticks", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
os.write(1, json.dumps(pids).encode() + b"\n")
number = 0
while True:
    os.write(1, b"%d\n" % number)
    os.write(ticks, b"%d\n" % number)
    number += 1
    time.sleep(0.02)
"""

# Reacts to each signal in the list as an ordinary program that ignores it.
DEAF_TO = """
import signal, sys, time
for number in {numbers}:
    signal.signal(number, signal.SIG_IGN)
print("ready", flush=True)
while True:
    time.sleep(60)
"""

FOUR_BUSY_LOOPS = """
import os
print(os.getpid(), flush=True)
for _ in range(4):
    pid = os.fork()
    if pid == 0:
        while True:
            pass
    print(pid, flush=True)
while True:
    pass
"""
