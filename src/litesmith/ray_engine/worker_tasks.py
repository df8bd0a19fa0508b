"""What runs on the machines of a cluster, and the board that tells of it."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from litesmith._version import VERSION
from litesmith.ray_engine.device_log import timed_alone
from litesmith.ray_engine.ray_session import ray
from litesmith.run.litert.capi import installed_version
from litesmith.workers.engine import Worker, host_name

T = TypeVar("T")

# A call whose worker dies is made again so often, elsewhere where there is an elsewhere.
RETRIES = 3


def own_versions() -> tuple[str, ...]:
    return VERSION, installed_version()


def versions_text(versions: tuple[str, ...]) -> str:
    return f"litesmith {versions[0]} with LiteRT {versions[1]}"


def _node_id() -> str:
    return ray.get_runtime_context().get_node_id()


@ray.remote(num_cpus=0, max_retries=RETRIES)
def versions_task() -> tuple[str, ...]:
    return own_versions()


@ray.remote(num_cpus=1, max_retries=RETRIES)
def called_task(board: Any, what: str, work: Callable[..., T], *given: object) -> T:
    with _noted(board, what, False):
        return work(*given)


@ray.remote(max_retries=0)
def alone_task(
    board: Any, named: tuple[str, tuple[str, ...]], work: Callable[..., T], *given: object
) -> T:
    what, models = named
    with _noted(board, what, True), timed_alone(_node_id(), what, models):
        return work(*given)


@contextmanager
def _noted(board: Any, what: str, device: bool) -> Iterator[None]:
    """Tells the board what this process does, where there is one; nothing waits for it."""
    place = (_node_id()[:6], os.getpid(), host_name(), device)
    if board is not None:
        board.note.remote(*place, what)
    try:
        yield
    finally:
        if board is not None:
            board.note.remote(*place, "")


@ray.remote
class Board:
    """What each worker does, by node and process."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, int], Worker] = {}

    def note(self, node: str, pid: int, host: str, device: bool, doing: str) -> None:
        known = self._rows.get((node, pid))
        done = (known.done if known else 0) + (not doing)
        self._rows[node, pid] = Worker(f"{host} {node}", device, doing, done)

    def rows(self) -> list[Worker]:
        return [row for _, row in sorted(self._rows.items())]
