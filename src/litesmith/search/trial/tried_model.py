"""What later decisions need to know about a tried model; and which model is best."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from litesmith.evidence.measurement import Trial
from litesmith.evidence.records import Score, Speed
from litesmith.evidence.tune_record import FITS, FLOAT, MISSES, Tried
from litesmith.search.trial.budget import MICRO, Limits, Room
from litesmith.timing.statistics import FASTER, MARGIN, UNCLEAR, UNKNOWN, judge

# Costs that differ by less count as equal: file sizes differ by a few bytes, times by noise.
TIE = 0.02

# Room to spare, as a part of the allowed loss: with less, other samples may use up the room.
_TO_SPARE = 0.5


@dataclass(frozen=True)
class TriedModel:
    """One trial of a search; None where a value was not measured."""

    trial: Trial[Tried]

    @property
    def details(self) -> Tried:
        return self.trial.details

    @property
    def name(self) -> str:
        return self.details.name

    @property
    def branch(self) -> str:
        return self.details.branch

    @property
    def status(self) -> str:
        return self.details.status

    @property
    def digest(self) -> str:
        return self.trial.model_digest

    @property
    def recipe(self) -> str:
        return self.trial.recipe

    @property
    def accuracy(self) -> Score | None:
        return self.details.accuracy

    @property
    def latency(self) -> Speed | None:
        return self.details.latency

    @property
    def value(self) -> float | None:
        """The value of the task's metric."""
        return self.accuracy and self.accuracy.value

    @property
    def ratio(self) -> float | None:
        """The model's time as a share of the float model's."""
        return self.latency and self.latency.ratio

    @property
    def p50_us(self) -> float | None:
        return self.latency and self.latency.p50_us

    @property
    def left(self) -> int:
        """The number of ops that the target leaves to the CPU; 0 where the target is a CPU."""
        return self.details.placed.left if self.details.placed else 0

    @property
    def room(self) -> Room:
        return Room.of(self.details.room)

    @property
    def has_room_to_spare(self) -> bool:
        """True where the model is unlikely to leave the budget on other samples by chance."""
        allowed = self.details.room.allowed if self.details.room else None
        return self.room.estimate >= _TO_SPARE * (allowed or 0.0)

    def row(self) -> dict[str, object]:
        """The model's row in a table."""
        return {
            "candidate": self.name,
            "status": self.status,
            "value": self.value,
            "time_ratio": self.ratio,
            "p50_us": self.p50_us,
            "bytes": self.details.bytes,
            "recipe": self.recipe,
        }

    def cost(self, minimize: str) -> float | None:
        """The cost to be minimized."""
        if minimize == "latency":
            return self.latency and self.latency.cost
        sizes = {
            "size": self.details.bytes,
            "download": self.details.gzip_bytes,
            "memory": self.details.peak_bytes,
            "ram": self.details.ram_bytes,
            "flash": self.details.flash_bytes,
        }
        return sizes[minimize]


def rank(records: Iterable[TriedModel], minimize: str) -> list[TriedModel]:
    """Sorts the models that fit, best first: fewest ops left to the CPU, then least cost.

    Among equal costs, models with room to spare come first: fully integer ones, then the plainest,
    which was tried first. Where none has room to spare, the model that loses least comes first: the
    highest of a few noisy scores is often not the best.
    """
    left = [r for r in records if r.status == FITS and r.cost(minimize) is not None]
    order: list[TriedModel] = []
    while left:
        fewest = min(r.left for r in left)
        able = [r for r in left if r.left == fewest]
        least = min(r.cost(minimize) or 0.0 for r in able)
        same = [r for r in able if (r.cost(minimize) or 0.0) <= least * (1 + TIE)]
        best = max(same, key=_preference)
        order.append(best)
        left.remove(best)
    return order


def _preference(record: TriedModel) -> tuple[bool, bool, bool, float]:
    spare = record.has_room_to_spare
    estimate = 0.0 if spare else record.room.estimate
    return record.name != FLOAT, spare, spare and bool(record.details.is_integer), estimate


def is_better(
    record: TriedModel, first: TriedModel, minimize: str, speed: Speed | None
) -> bool | None:
    """Whether a model costs less than the original, beyond the noise; None where the machine was
    too busy to tell."""
    if record.left != first.left:
        return record.left < first.left
    if minimize in MICRO and first.status == MISSES:  # the model as it came does not fit
        return True
    if minimize == "latency" and speed is not None and speed.ratio is not None:
        found = speed.verdict or judge(speed.low, speed.high)
        if found == UNKNOWN:  # as few runs as were asked for
            return speed.ratio < 1 - MARGIN
        return None if found == UNCLEAR else found == FASTER
    own, before = record.cost(minimize), first.cost(minimize)
    return own is not None and (before is None or own < before * (1 - MARGIN))


def find_nearest(records: Iterable[TriedModel], limits: Limits) -> TriedModel | None:
    """The nearest miss, the float model aside: by the loss, or, where enough models lose little
    enough, by the distance to the ceilings."""
    scored = [r for r in records if r.name != FLOAT and not math.isnan(r.room.estimate)]
    within = [r for r in scored if r.room.estimate >= 0]
    if within:
        return min(within, key=lambda r: _excess(r, limits))
    return max(scored, key=lambda r: r.room.estimate) if scored else None


def _excess(record: TriedModel, limits: Limits) -> float:
    """How many times a model exceeds a ceiling; without ceilings, its time relative to the float
    model's."""
    costs = {cost: record.cost(cost) for cost in limits.ceilings} | {"latency": record.p50_us}
    over = [(costs[cost] or math.inf) / most for cost, most in limits.ceilings.items()]
    return max(over, default=0.0) or record.cost("latency") or math.inf


def find_front(records: Iterable[TriedModel]) -> list[TriedModel]:
    """Finds the models that no other beats in ops left to the CPU, time, bytes and accuracy at
    once."""
    scored = [r for r in records if r.value is not None and r.latency is not None]
    return [one for one in scored if not any(_beats(other, one) for other in scored)]


def _beats(a: TriedModel, b: TriedModel) -> bool:
    """True where a is nowhere worse than b; the name decides between equals."""
    ours, theirs = _standing(a), _standing(b)
    if any(x > y for x, y in zip(ours, theirs, strict=True)):
        return False
    return ours != theirs or (*_costs(a), a.name) < (*_costs(b), b.name)


def _standing(record: TriedModel) -> tuple[float, ...]:
    """The coordinates of a model, less is better; costs are rounded to ties, so that no models beat
    each other in a ring."""
    steps = (round(math.log(max(cost, 1e-9)) / math.log1p(TIE)) for cost in _costs(record))
    is_lower_better = record.accuracy is not None and record.accuracy.is_lower_better
    value = record.value or 0.0
    return (record.left, *steps, value if is_lower_better else -value)


def _costs(record: TriedModel) -> tuple[float, float]:
    return record.cost("latency") or 0.0, record.cost("size") or 0.0
