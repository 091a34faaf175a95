"""The keeper's one loop: descriptors, signals and moments, on one thread."""

import os
import selectors
import signal
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

LONGEST_WAIT_SECONDS = 3600.0


class Loop:
    """Waits for whatever happens next and calls whoever asked to hear of it.

    Args:
        selector: What waits; None: the one that is best for many descriptors.
        lock: Held while a reader or writer is called. Who holds it may add and remove some from another thread, and
            those that were removed are not called any more.
    """

    def __init__(
        self,
        selector: "selectors.BaseSelector | None" = None,
        lock: "AbstractContextManager[object] | None" = None,
    ) -> None:
        self._lock = nullcontext() if lock is None else lock
        self.selector = selectors.DefaultSelector() if selector is None else selector
        self._timers: list[Callable[[float], float | None]] = []
        self._on_signal: dict[int, Callable[[], None]] = {}

    def add_reader(self, fd: int, callback: "Callable[[], object]") -> None:
        """Call `callback` whenever `fd` can be read."""
        self.selector.register(fd, selectors.EVENT_READ, callback)

    def remove_reader(self, fd: int) -> None:
        """Stop listening to `fd`."""
        self.selector.unregister(fd)

    def close(self) -> None:
        """Let go of the kernel's part of it."""
        self.selector.close()

    def add_writer(self, fd: int, callback: "Callable[[], None]") -> None:
        """Call `callback` whenever `fd` can be written to; it must not be one that is read from here as well."""
        self.selector.register(fd, selectors.EVENT_WRITE, callback)

    def remove_writer(self, fd: int) -> None:
        """Stop waiting to write to `fd`."""
        self.selector.unregister(fd)

    def add_timer(self, timer: "Callable[[float], float | None]") -> None:
        """Call `timer` with the time at each turn; it does what is due and returns when it wants the next look."""
        self._timers.append(timer)

    def watch_signals(self, callbacks: "dict[int, Callable[[], None]]") -> None:
        """Call these, from the loop, when their signal came."""
        read, write = os.pipe()
        os.set_blocking(read, False)
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        self._on_signal = callbacks
        for number in callbacks:
            signal.signal(number, _note_only)
        self.add_reader(read, lambda: self._serve_signals(read))

    def run_until(
        self, done: "Callable[[], bool]", deadline: "float | None", look_every: "float | None" = None
    ) -> bool:
        """Serve everything until `done`, or until the deadline (monotonic); tell whether it is done."""
        while True:
            now = time.monotonic()
            moments = [moment for timer in self._timers if (moment := timer(now)) is not None]
            if done():
                return True
            if deadline is not None:
                if now >= deadline:
                    return False
                moments.append(deadline)
            if look_every is not None:
                moments.append(now + look_every)
            # The kernel counts in milliseconds and in 32 bits, so a wait of weeks is made of shorter ones.
            wait = min(max(0.0, min(moments) - now), LONGEST_WAIT_SECONDS) if moments else None
            registered = self.selector.get_map()
            for key, _events in self.selector.select(wait):
                with self._lock:
                    if registered.get(key.fd) is key:  # One that was called before it may have taken it out.
                        key.data()

    def _serve_signals(self, fd: int) -> None:
        try:
            numbers = set(os.read(fd, 4096))
        except BlockingIOError:
            return
        for number in numbers & set(self._on_signal):
            self._on_signal[number]()


def _note_only(_number: int, _frame: object) -> None:
    """The wakeup descriptor is what tells the loop; Python asks for a handler all the same."""
