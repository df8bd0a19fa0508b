"""Threads that help: started once, each waits for a call and makes it without the interpreter."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue

Call = tuple[Callable[..., None], tuple[int, ...], object]


class Crew:
    """Some threads; they end when the crew is collected."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._process = os.getpid()
        self._calls: SimpleQueue[Call | None] = SimpleQueue()
        self._done = threading.Semaphore(0)
        self._pending = 0
        for _ in range(count):
            work = (self._calls, self._done)
            threading.Thread(target=_work, args=work, daemon=True, name="litesmith").start()
        weakref.finalize(self, _dismiss, self._calls, count)

    @property
    def is_here(self) -> bool:
        """Threads do not go along into a forked process."""
        return self._process == os.getpid()

    def start(self, function: Callable[..., None], *arguments: int, owner: object) -> None:
        """Some thread calls the function as soon as it can; the owner of its memory lives on."""
        self._pending += 1
        self._calls.put((function, arguments, owner))

    def wait(self) -> None:
        """Until every call that was started has ended."""
        while self._pending:
            self._done.acquire()
            self._pending -= 1


def _work(calls: SimpleQueue[Call | None], done: threading.Semaphore) -> None:
    while (call := calls.get()) is not None:
        call[0](*call[1])
        del call
        done.release()


def _dismiss(calls: SimpleQueue[Call | None], count: int) -> None:
    for _ in range(count):
        calls.put(None)
