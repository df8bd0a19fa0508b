"""A machine that times are taken on: one trial at a time, each on record in its own log."""

import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir
from time import time
from typing import TextIO

from litesmith.native.user_cache import folder
from litesmith.operating_system import take_lock
from litesmith.workers.engine import host_name

# What a node declares to be a device, in `ray start --resources`.
RESOURCE = "litesmith_device"
DECLARE = f"""ray start --address=HEAD:6379 --num-cpus=0 --resources='{{"{RESOURCE}": 1}}'"""

# Names another file than the one in the cache.
VARIABLE = "LITESMITH_DEVICE_LOG"


def log_file() -> Path:
    """Where a device notes when it was timing what."""
    given = os.environ.get(VARIABLE)
    if given:
        return Path(given)
    place = folder() or Path(gettempdir()) / "litesmith"
    return place / "device.jsonl"


@contextmanager
def timed_alone(node: str, what: str, models: tuple[str, ...]) -> Generator[None]:
    """A time while nothing else is timed on this machine; a line of the log tells when it was."""
    place = log_file()
    place.parent.mkdir(parents=True, exist_ok=True)
    with _held(place.with_suffix(".lock")):
        line = {"host": host_name(), "node": node, "pid": os.getpid(), "what": what}
        start = time()
        try:
            yield
        finally:
            _append(place, {**line, "models": models, "start": start, "end": time()})


def _append(place: Path, line: dict[str, object]) -> None:
    with _appending(place) as file:
        file.write(f"{json.dumps(line)}\n")


@contextmanager
def _held(place: Path) -> Generator[None]:
    """A lock between processes, which ends with the one that has it, however that ends."""
    with _appending(place) as file:
        take_lock(file.fileno(), wait=True)
        yield


def _appending(place: Path) -> TextIO:
    """A file to add to; no link, which in a temporary folder could be laid by anyone."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    return os.fdopen(os.open(place, flags, 0o666), "a", encoding="utf-8")
