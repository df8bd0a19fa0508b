"""What `bench` and `export` print of a model on a microcontroller."""

from typing import TypedDict

from litesmith.micro.boards import Room


class ArenaFacts(TypedDict):
    """The memory of an interpreter on a microcontroller, by kind and by op."""

    total: int
    needed: int
    planned: int
    scratch: int
    lasting: int
    lasting_by_kind: dict[str, int]
    lasting_by_op: dict[str, int]
    unknown: list[str]


class ToldArena(TypedDict):
    total: int
    head: int


class HostArenaFacts(ArenaFacts):
    """The same on this machine, beside what the interpreter itself reports."""

    interpreter: ToldArena | None


class FlashFacts(TypedDict):
    """Bytes of flash, estimated: the model, the interpreter, and the kernels that it needs."""

    total: int
    model: int
    interpreter: int
    kernels: dict[str, int]
    unknown: list[str]
    how: str


class PeakFacts(TypedDict):
    op: str
    bytes: int
    buffers: list[str]


class PlannedBuffer(TypedDict):
    name: str
    bytes: int
    at: int
    ticks: list[int]


class MicroFacts(TypedDict):
    model: str
    arena: ArenaFacts
    arena_on_host: HostArenaFacts
    flash: FlashFacts
    peak: PeakFacts
    plan: list[PlannedBuffer]
    room: Room | None
    fits: bool
