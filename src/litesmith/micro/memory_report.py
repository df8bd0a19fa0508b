"""The whole answer for a model: arena and flash, by kind and by op, and whether there is room."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from litesmith.display import show_html, show_line
from litesmith.ir.types import Model
from litesmith.micro.arena import DEVICE, HOST, ArenaAccount, add_up_arena
from litesmith.micro.boards import Room
from litesmith.micro.buffers import Buffer, live_bytes, tick_labels
from litesmith.micro.flash import FlashAccount, add_up_flash
from litesmith.phrases import phrase
from litesmith.run.accelerators.tflite_micro import Arena
from litesmith.units import bytes_text, plain

Json = dict[str, object]

_MOST_LETTERS = 32


@dataclass(frozen=True, eq=False)
class MicroMemory:
    """The memory of a model on a microcontroller.

    device  the arena on a machine of 32 bits
    host    the arena in the wheel on this machine, which over-reports
    told    the report of the wheel's interpreter; None where it was not asked
    room    the memory that the model may use; None where no limit was given
    """

    name: str
    model: Model
    device: ArenaAccount
    host: ArenaAccount
    flash: FlashAccount
    told: Arena | None = None
    room: Room | None = None

    @property
    def missing_ram(self) -> int:
        """Bytes of RAM that are too few; 0 where there is room."""
        most = self.room and self.room.ram
        return 0 if most is None else max(0, self.device.needed - most)

    @property
    def missing_flash(self) -> int:
        most = self.room and self.room.flash
        return 0 if most is None else max(0, self.flash.total - most)

    @property
    def fits(self) -> bool:
        return not self.missing_ram and not self.missing_flash

    @cached_property
    def live(self) -> dict[int, int]:
        return live_bytes(self.device.plan.buffers)

    @cached_property
    def peak(self) -> int:
        """The tick at which most is live."""
        return max(self.live, key=self.live.__getitem__, default=0)

    @property
    def peak_place(self) -> str:
        """What runs at the peak: an op of the main graph, or none as the inputs are filled."""
        begun = [tick for tick in sorted(tick_labels(self.model)) if tick <= self.peak]
        if len(begun) < 2:
            return phrase("the inputs")
        return phrase("op {place}, {label}", len(begun) - 2, tick_labels(self.model)[begun[-1]])

    def peak_buffers(self) -> list[Buffer]:
        """The buffers at the peak, largest first."""
        found = [b for b in self.device.plan.buffers if b.first <= self.peak <= b.last]
        return sorted(found, key=lambda one: -one.bytes)

    @property
    def verdict(self) -> str:
        arena, flash = bytes_text(self.device.needed), bytes_text(self.flash.total)
        took = phrase(
            "{name} takes an arena of {arena} and about {flash} of flash", self.name, arena, flash
        )
        if self.room is None:
            return took
        if self.fits:
            return phrase("{took}; it fits {room}", took, self.room)
        lacks: list[str] = []
        if self.missing_ram:
            lacks.append(phrase("{bytes} of RAM", bytes_text(self.missing_ram)))
        if self.missing_flash:
            lacks.append(phrase("{bytes} of flash", bytes_text(self.missing_flash)))
        return phrase(
            "{took}; it does not fit {room}: it lacks {lacks}", took, self.room, ", ".join(lacks)
        )

    def to_json(self) -> Json:
        told = None if self.told is None else {"total": self.told.total, "head": self.told.head}
        return {
            "model": self.name,
            "arena": _account(self.device),
            "arena_on_host": {**_account(self.host), "interpreter": told},
            "flash": self.flash.to_json(),
            "peak": {
                "op": tick_labels(self.model).get(self.peak, ""),
                "bytes": self.live.get(self.peak, 0),
                "buffers": [buffer_name(b) for b in self.peak_buffers()],
            },
            "plan": [
                {"name": buffer_name(b), "bytes": b.bytes, "at": at, "ticks": [b.first, b.last]}
                for b, at in zip(self.device.plan.buffers, self.device.plan.offsets, strict=True)
            ],
            "room": None if self.room is None else self.room._asdict(),
            "fits": self.fits,
        }


def _account(found: ArenaAccount) -> Json:
    by_op = {f"{graph}:{op}": count for (graph, op), count in found.by_op().items()}
    return {
        "total": found.total,
        "needed": found.needed,
        "planned": found.planned_bytes,
        "scratch": found.scratch_bytes,
        "lasting": found.lasting_bytes,
        "lasting_by_kind": found.by_kind(),
        "lasting_by_op": by_op,
        "unknown": list(found.unknown),
    }


def buffer_name(one: Buffer) -> str:
    return (
        phrase("scratch of op {op}", one.op)
        if one.tensor is None
        else _short(plain(one.tensor.name))
    )


def _short(name: str) -> str:
    """The end of a name: converters join the names of all that they fused, and the end differs."""
    return name if len(name) <= _MOST_LETTERS else f"…{name[1 - _MOST_LETTERS :]}"


@dataclass(frozen=True, repr=False)
class MicroBench:
    """Models on a microcontroller: memory, not time."""

    models: tuple[MicroMemory, ...]

    __repr__ = show_line
    _repr_html_ = show_html

    @property
    def sentence(self) -> str:
        return "; ".join(one.verdict for one in self.models)

    @property
    def is_as_asked(self) -> bool:
        """False where a model exceeds the given room."""
        return all(one.fits for one in self.models)

    def to_rows(self) -> list[Mapping[str, object]]:
        return [
            {
                "model": one.name,
                "arena_bytes": one.device.needed,
                "planned_bytes": one.device.planned_bytes,
                "lasting_bytes": one.device.lasting_bytes,
                "flash_bytes": one.flash.total,
                "fits": one.fits,
            }
            for one in self.models
        ]

    def to_json(self) -> Json:
        return {"schema": 1, "models": [one.to_json() for one in self.models]}


def report_memory(
    name: str, model: Model, file_bytes: int, *, told: Arena | None = None, room: Room | None = None
) -> MicroMemory:
    """Arena and flash of a model, by the structures and the table of kernels."""
    device, host = add_up_arena(model, DEVICE), add_up_arena(model, HOST)
    return MicroMemory(name, model, device, host, add_up_flash(model, file_bytes), told, room)


def draw_plan(one: MicroMemory, width: int = 40) -> Sequence[str]:
    """The plan over time, a line a tick: each buffer a letter where it lies, a dot where nothing
    is."""
    plan, labels = one.device.plan, tick_labels(one.model)
    scale = max(1, plan.bytes)
    lines: list[str] = []
    peak = max((tick for tick in labels if tick <= one.peak), default=0)
    for op, tick in enumerate(sorted(labels), -1):  # the inputs come first, and are no op
        cells = ["·"] * width
        for number, (buffer, at) in enumerate(zip(plan.buffers, plan.offsets, strict=True)):
            if buffer.first <= tick <= buffer.last:
                start = at * width // scale
                end = max(start + 1, (at + buffer.bytes) * width // scale)
                for place in range(start, min(end, width)):
                    cells[place] = "*" if buffer.is_scratch else _LETTERS[number % len(_LETTERS)]
        mark = "◀" if tick == peak else " "
        size = bytes_text(one.live.get(tick, 0))
        lines.append(f"{'' if op < 0 else op:>4} {''.join(cells)} {size:>8} {mark} {labels[tick]}")
    return lines


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
