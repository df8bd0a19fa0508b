"""A model that a search tried, by what later decisions ask of it; and which is best."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from litesmith.evidence.measurement import Trial
from litesmith.evidence.records import Score, Speed
from litesmith.evidence.tuning import FITS, FLOAT, MISSES, Tried
from litesmith.search.trial.budget import MICRO, Limits, Room
from litesmith.timing.statistics import FASTER, MARGIN, UNCLEAR, UNKNOWN, judge

# Costs that differ by less are the same: files of one kind differ by a few bytes, times by noise.
TIE = 0.02

# Room to spare: this part of what may be lost at all. Less may be gone on other samples.
_TO_SPARE = 0.5


@dataclass(frozen=True)
class TriedModel:
    """One trial of a search; None is what was not measured."""

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
        """The metric of the task."""
        return self.accuracy and self.accuracy.value

    @property
    def ratio(self) -> float | None:
        """Its time as a part of the float model's."""
        return self.latency and self.latency.ratio

    @property
    def p50_us(self) -> float | None:
        return self.latency and self.latency.p50_us

    @property
    def left(self) -> int:
        """Ops that the place it is for leaves to the CPU; 0 where that is a CPU."""
        return self.details.placed.left if self.details.placed else 0

    @property
    def room(self) -> Room:
        return Room.of(self.details.room)

    @property
    def has_room_to_spare(self) -> bool:
        """True where chance is not likely to take it out of the budget on other samples."""
        allowed = self.details.room.allowed if self.details.room else None
        return self.room.estimate >= _TO_SPARE * (allowed or 0.0)

    def row(self) -> dict[str, object]:
        """What a table tells of it."""
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
        """What is to be small."""
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
    """Those that fit, the one to ship first: what its place takes whole, or leaves least of, and of
    these the least cost.

    Of those that cost the same, one with room to spare, of integers throughout, and the plainest
    of these, which was tried first; where none has room to spare, the one that loses least. The
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
    """Whether a model has less of what is to be small than the model as it came, beyond the noise;
    None where the machine was too busy to tell."""
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
    """The one that misses by least, of those that are not the float model: in what it loses, or
    where enough lose little enough, in how far it is above the ceilings."""
    scored = [r for r in records if r.name != FLOAT and not math.isnan(r.room.estimate)]
    within = [r for r in scored if r.room.estimate >= 0]
    if within:
        return min(within, key=lambda r: _excess(r, limits))
    return max(scored, key=lambda r: r.room.estimate) if scored else None


def _excess(record: TriedModel, limits: Limits) -> float:
    """How many times above a ceiling a model is; its time beside the float model's without any."""
    costs = {cost: record.cost(cost) for cost in limits.ceilings} | {"latency": record.p50_us}
    over = [(costs[cost] or math.inf) / most for cost, most in limits.ceilings.items()]
    return max(over, default=0.0) or record.cost("latency") or math.inf


def find_front(records: Iterable[TriedModel]) -> list[TriedModel]:
    """Those that no other beats: in ops that stay behind, time, bytes and accuracy at once."""
    scored = [r for r in records if r.value is not None and r.latency is not None]
    return [one for one in scored if not any(_beats(other, one) for other in scored)]


def _beats(a: TriedModel, b: TriedModel) -> bool:
    """True where a is nowhere worse than b; of two that are as good, the first by its name."""
    ours, theirs = _standing(a), _standing(b)
    if any(x > y for x, y in zip(ours, theirs, strict=True)):
        return False
    return ours != theirs or (*_costs(a), a.name) < (*_costs(b), b.name)


def _standing(record: TriedModel) -> tuple[float, ...]:
    """What counts, less is better; costs in steps of a tie, so that there are no rings of them."""
    steps = (round(math.log(max(cost, 1e-9)) / math.log1p(TIE)) for cost in _costs(record))
    is_lower_better = record.accuracy is not None and record.accuracy.is_lower_better
    value = record.value or 0.0
    return (record.left, *steps, value if is_lower_better else -value)


def _costs(record: TriedModel) -> tuple[float, float]:
    return record.cost("latency") or 0.0, record.cost("size") or 0.0
