"""What a search knows of a model that it tried, read from its trial; and which is best."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from litesmith.accuracy.evaluate import Evaluation
from litesmith.evidence import Trial
from litesmith.search.trial.budget import Limits, Room
from litesmith.search.trial.trial_facts import Json, evaluation_of

CANDIDATE, VERIFIED, TIMED = "candidate", "verified", "timed"
FITS, MISSES, REFUSED, SET_ASIDE = "fits", "misses", "refused", "set aside"
FLOAT = "float"

# Costs that differ by less are the same: files of one kind differ by a few bytes, times by noise.
TIE = 0.02

# Room to spare: this part of what may be lost at all. Less may be gone on other samples.
_TO_SPARE = 0.5


@dataclass(frozen=True)
class Record:
    """One trial, by what later decisions ask of it; None is what was not measured."""

    trial: Trial

    @property
    def _details(self) -> Json:
        return cast(Json, self.trial.details)

    def _number(self, *keys: str) -> float | None:
        found: object = self._details
        for key in keys:
            found = cast(Json, found).get(key) if isinstance(found, dict) else None
        return float(found) if isinstance(found, int | float) else None

    @property
    def name(self) -> str:
        return str(self._details["name"])

    @property
    def kind(self) -> str:
        return str(self._details["kind"])

    @property
    def key(self) -> str:
        return str(self._details.get("key", ""))

    @property
    def branch(self) -> str:
        return str(self._details.get("branch", ""))

    @property
    def status(self) -> str:
        return str(self._details.get("status", ""))

    @property
    def digest(self) -> str:
        return self.trial.model_digest

    @property
    def is_integer(self) -> bool:
        return bool(self._details.get("is_integer"))

    @property
    def held_out(self) -> str:
        """The digest of the held-out samples that it was proven on; "" for other trials."""
        return str(self._details.get("held_out", ""))

    @property
    def scored_on(self) -> str:
        """The target whose kernels the held-out samples were run by."""
        return str(self._details.get("scored_on", ""))

    @property
    def look(self) -> int:
        """How many models these samples had been asked about by then, itself among them."""
        return int(self._number("look") or 1)

    @property
    def evaluation(self) -> Evaluation:
        return evaluation_of(self.accuracy or {})

    @property
    def seconds(self) -> float:
        return self._number("seconds") or 0.0

    @property
    def accuracy(self) -> Json | None:
        return cast("Json | None", self._details.get("accuracy"))

    @property
    def latency(self) -> Json | None:
        return cast("Json | None", self._details.get("latency"))

    @property
    def value(self) -> float | None:
        """The metric of the task."""
        return self._number("accuracy", "value")

    @property
    def merit(self) -> float:
        """The metric, turned round where less of it is better."""
        return (self.value or 0.0) * (self._number("accuracy", "better") or 1.0)

    @property
    def ratio(self) -> float | None:
        """Its time as a part of the float model's."""
        return self._number("latency", "ratio")

    @property
    def p50_us(self) -> float | None:
        return self._number("latency", "p50_us")

    @property
    def left(self) -> int:
        """Ops that the place it is for leaves to the CPU; 0 where that is a CPU."""
        taken, ops = (self._number("placed", key) for key in ("taken", "ops"))
        return 0 if taken is None or ops is None else int(ops - taken)

    @property
    def room(self) -> Room:
        ends = [self._number("room", key) for key in ("estimate", "low", "high")]
        estimate, low, high = (math.nan if end is None else end for end in ends)
        return Room(estimate, low, high)

    @property
    def has_room_to_spare(self) -> bool:
        """True where chance is not likely to take it out of the budget on other samples."""
        allowed = self._number("room", "allowed") or 0.0
        return self.room.estimate >= _TO_SPARE * allowed

    def cost(self, minimize: str) -> float | None:
        """What is to be small; a time is the part of the float model's, or an estimate in µs: one
        search has times of one kind only."""
        keys = {
            "latency": (("latency", "ratio"), ("latency", "p50_us"), ("latency", "part_us")),
            "size": (("bytes",),),
            "download": (("gzip_bytes",),),
            "memory": (("peak_bytes",),),
        }
        found = (self._number(*one) for one in keys[minimize])
        return next((cost for cost in found if cost is not None), None)


def ranked(records: Iterable[Record], minimize: str) -> list[Record]:
    """Those that fit, the one to ship first: what its place takes whole, or leaves least of, and of
    these the least cost.

    Of those that cost the same, one with room to spare, of integers throughout, and the plainest
    of these, which was tried first; where none has room to spare, the one that loses least. The
    highest of a few noisy scores is often not the best.
    """
    left = [r for r in records if r.status == FITS and r.cost(minimize) is not None]
    order: list[Record] = []
    while left:
        fewest = min(r.left for r in left)
        able = [r for r in left if r.left == fewest]
        least = min(r.cost(minimize) or 0.0 for r in able)
        same = [r for r in able if (r.cost(minimize) or 0.0) <= least * (1 + TIE)]
        best = max(same, key=_preference)
        order.append(best)
        left.remove(best)
    return order


def _preference(record: Record) -> tuple[bool, bool, bool, float]:
    spare = record.has_room_to_spare
    estimate = 0.0 if spare else record.room.estimate
    return record.name != FLOAT, spare, spare and record.is_integer, estimate


def nearest(records: Iterable[Record], limits: Limits) -> Record | None:
    """The one that misses by least, of those that are not the float model: in what it loses, or
    where enough lose little enough, in how far it is above the ceilings."""
    scored = [r for r in records if r.name != FLOAT and not math.isnan(r.room.estimate)]
    within = [r for r in scored if r.room.estimate >= 0]
    if within:
        return min(within, key=lambda r: _excess(r, limits))
    return max(scored, key=lambda r: r.room.estimate) if scored else None


def _excess(record: Record, limits: Limits) -> float:
    """How many times above a ceiling a model is; its time beside the float model's without any."""
    latency_us = record.p50_us or math.inf
    over = [
        (record.cost("size") or math.inf) / limits.max_bytes if limits.max_bytes else 0.0,
        latency_us / limits.max_latency_us if limits.max_latency_us else 0.0,
    ]
    return max(over) or record.cost("latency") or math.inf


def front(records: Sequence[Record]) -> list[Record]:
    """Those that no other beats: in ops that stay behind, time, bytes and accuracy at once."""
    scored = [r for r in records if r.value is not None and r.latency is not None]
    return [one for one in scored if not any(_beats(other, one) for other in scored)]


def _beats(a: Record, b: Record) -> bool:
    """True where a is nowhere worse than b; of two that are as good, the first by its name."""
    ours, theirs = _standing(a), _standing(b)
    if any(x > y for x, y in zip(ours, theirs, strict=True)):
        return False
    return ours != theirs or (*_costs(a), a.name) < (*_costs(b), b.name)


def _standing(record: Record) -> tuple[float, ...]:
    """What counts, less is better; costs in steps of a tie, so that there are no rings of them."""
    steps = (round(math.log(max(cost, 1e-9)) / math.log1p(TIE)) for cost in _costs(record))
    return (record.left, *steps, -record.merit)


def _costs(record: Record) -> tuple[float, float]:
    return record.cost("latency") or 0.0, record.cost("size") or 0.0
