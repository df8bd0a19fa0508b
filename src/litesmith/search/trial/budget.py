"""The goal of a search (the allowed loss, the cost to minimize, the ceilings), and whether a
measurement meets it."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import NamedTuple, TypeVar

from litesmith.arguments import argument
from litesmith.errors import BadInput
from litesmith.evidence.codec import finite
from litesmith.evidence.records import Score, Speed
from litesmith.evidence.tune_record import FITS, FLOAT, MISSES, NEAR, RoomLeft, Tried
from litesmith.micro.boards import Room as MicroRoom
from litesmith.phrases import phrase
from litesmith.search.trial.target_place import Place, describe_left
from litesmith.timing.latency import Rule
from litesmith.timing.statistics import (
    FASTER,
    SLOWER,
    UNCLEAR,
    judge,
    speed_words,
    times_words,
)
from litesmith.training.settings import Training
from litesmith.units import (
    bytes_text,
    gain_text,
    number_text,
    score_text,
    time_text,
    typed_bytes,
    typed_decibels,
    typed_number,
    typed_share,
    typed_time,
)

MINIMIZE = ("latency", "size", "download", "memory")

# The scarce resources of a microcontroller: the arena, and flash for the file and its kernels.
MICRO = ("ram", "flash")

# Verdicts of a search. PROVEN: the result meets the goal beyond doubt. LIKELY: its estimate does.
# UNSURE: it meets the budget, but the machine was too busy to tell how fast it is. KEPT: nothing
# beats the original model. MISSED: nothing meets the goal.
PROVEN, LIKELY, UNSURE, KEPT, MISSED = "proven", "likely", "unclear", "keep", "missed"

# Fewer samples than this say nothing about a model, whatever the goal.
LEAST_SAMPLES = 30

_Z = 1.959963984540054  # the normal distribution's 97.5 % point

# The rounding error by which a sum of differences may miss a bound that it reaches.
_ROUNDING = 1e-12

# From this factor on, two digits tell a gain; 1.0 × faster would tell none.
_TENTH_MORE = 1.095

Value = TypeVar("Value")

# A bound as the user typed it, or as a number.
Typed = str | float


@dataclass(frozen=True)
class Drop:
    """How much of a metric may be lost: in points, relative to the float model's value, or in the
    unit of a metric such as an error."""

    share: float
    is_relative: bool = False
    in_units: bool = False

    @staticmethod
    def parse(given: Typed) -> "Drop":
        """Parses `1pt` or `1%`, or a bare `0.05` for a metric that is not a share."""
        relative, points = (typed_number(str(given), {unit: 0.01}) for unit in ("%", "pt"))
        share = points if relative is None else relative
        if share is not None:
            return Drop(share, relative is not None)
        units = typed_number(str(given), {"": 1.0})
        if units is None:
            raise BadInput(
                "{max_drop}: give 1pt or 1%, points of the metric (from 70 % to 69 %) or a share "
                "of the float model's value (from 70 % to 69.3 %), or a number alone for an error, "
                "in its unit",
                argument("max_drop", given),
            )
        return Drop(units, in_units=True)

    def __post_init__(self) -> None:
        if self.in_units:
            if not 0 <= self.share < math.inf:
                raise BadInput("a drop of {what}: give a number from 0 on, as in 0.05", self.text)
        elif not 0 <= self.share < 1:
            raise BadInput(
                "a drop of {what}: give 0 or more and less than 100, as in 1pt", self.text
            )

    @property
    def text(self) -> str:
        if self.in_units:
            return number_text(self.share)
        return f"{number_text(100 * self.share)} {'%' if self.is_relative else 'pt'}"

    def allowed(self, reference: float, *, title: str, unit: str = "share") -> float:
        """The allowed loss in the metric's unit, where the float model scores `reference`."""
        if self.is_relative:
            return self.share * abs(reference)
        if self.in_units and unit == "share":
            raise BadInput(
                "a drop of {what}: {title} is a share; give 1pt or 1%, points of the metric (from "
                "70 % to 69 %) or a share of the float model's value (from 70 % to 69.3 %)",
                self.text,
                title,
            )
        if not self.in_units and unit != "share":
            raise BadInput(
                "a drop of {what}: {title} is not a share and has no points; give a number in its "
                "own unit, as in 0.05, or a drop relative to the float model's value, as in 1%",
                self.text,
                title,
            )
        return self.share


class Room(NamedTuple):
    """The distance of a model from its bound, with the 95 % interval; negative outside the bound.

    reason  why the distance is unknown, where all three numbers are NaN
    """

    estimate: float
    low: float
    high: float
    reason: str = ""

    @staticmethod
    def of(left: RoomLeft | None) -> "Room":
        """Reads the room from a record."""
        if left is None:
            return _unknown("")
        ends = (left.estimate, left.low, left.high)
        estimate, low, high = (math.nan if end is None else end for end in ends)
        return Room(estimate, low, high, left.reason)

    @property
    def is_near(self) -> bool:
        """True where the estimate is outside the bound by at most one standard error."""
        return 0 > self.estimate >= -(self.high - self.low) / (2 * _Z)


def at_look(room: Room, look: int) -> Room:
    """The room with the interval for the `look`-th model judged on the same samples.

    Each further model makes a lucky pass likelier and must therefore pass by more, so that all
    intervals together hold with 95 %.
    """
    wider = NormalDist().inv_cdf(1 - 0.025 / look) / _Z
    low = room.estimate - wider * (room.estimate - room.low)
    high = room.estimate + wider * (room.high - room.estimate)
    return room._replace(low=low, high=high)


def verdict(room: Room) -> str:
    """Proven where the whole interval is inside the bound, likely where the estimate is."""
    if room.low >= -_ROUNDING and room.estimate >= -_ROUNDING:
        return PROVEN
    return LIKELY if room.estimate >= -_ROUNDING else MISSED


@dataclass(frozen=True)
class Budget:
    """The bound on quality; one of the three is given.

    max_drop       the allowed loss in the task's metric
    min_agreement  the least share of samples with the float model's class
    min_snr        the least SNR of the outputs against the float model's, in decibels
    """

    max_drop: Drop | None = None
    min_agreement: float | None = None
    min_snr: float | None = None

    def __post_init__(self) -> None:
        asked = (self.max_drop, self.min_agreement, self.min_snr)
        if sum(bound is not None for bound in asked) != 1:
            raise BadInput(
                "give one of {max_drop}, {min_agreement} and {min_snr}",
                argument("max_drop"),
                argument("min_agreement"),
                argument("min_snr"),
            )
        if self.min_agreement is not None and not 0 <= self.min_agreement <= 1:
            raise BadInput(
                "an agreement of {min_agreement}: give a share from 0 to 1", self.min_agreement
            )
        if self.min_snr is not None and not math.isfinite(self.min_snr):
            raise BadInput("an SNR of {min_snr}: give a number of decibels, as in 20", self.min_snr)

    @staticmethod
    def parse(
        max_drop: Typed | None = None,
        min_agreement: Typed | None = None,
        min_snr: Typed | None = None,
    ) -> "Budget":
        """Parses `1pt`, `1%` or `0.05`; `98%` or `0.98`; `20dB` or `20`."""
        return Budget(
            None if max_drop is None else Drop.parse(max_drop),
            read_bound("min_agreement", min_agreement, typed_share, "98% or 0.98"),
            read_bound("min_snr", min_snr, typed_decibels, "20dB"),
        )

    @property
    def metric(self) -> str:
        """The metric that the evaluation must measure."""
        if self.max_drop is not None:
            return "auto"
        return "snr" if self.min_agreement is None else "agreement"

    @property
    def text(self) -> str:
        if self.max_drop is not None:
            return (
                phrase("a drop of at most {what}", self.max_drop.text)
                if self.max_drop.share
                else phrase("no drop")
            )
        if self.min_agreement is not None:
            share = number_text(100 * self.min_agreement)
            return phrase("agreement with the float model of at least {share} %", share)
        return phrase("an SNR of at least {number} dB", number_text(self.min_snr or 0.0))

    def room(self, found: Score) -> Room:
        """The room of a model that was scored against the float model."""
        if self.max_drop is not None:
            return _drop_room(self.max_drop, found)
        bound = self.min_snr if self.min_agreement is None else self.min_agreement
        if found.metric != self.metric:
            return _unknown(phrase("{title} was measured, not {metric}", found.title, self.metric))
        if bound is None or found.value is None:
            return _unknown(phrase("the {title} is not a number", found.title))
        ends = (found.value, found.low, found.high)
        estimate, low, high = (math.nan if end is None else end - bound for end in ends)
        return Room(estimate, low, high)

    def needed_samples(self, reference: float, unit: str = "share") -> int:
        """The least number of samples that can tell whether a model is inside the bound.

        A drop of d, where all changes are for the worse, is beyond chance once d > z·√(d / n). An
        agreement of a, where all samples agree, is proven once n / (n + z²) ≥ a.
        """
        needed = 0.0
        if self.max_drop is not None and unit == "share":
            allowed = self.max_drop.allowed(reference, title="")
            needed = _Z**2 / allowed if allowed > 0 else 0.0
        elif self.min_agreement is not None and self.min_agreement < 1:
            needed = _Z**2 * self.min_agreement / (1 - self.min_agreement)
        return max(LEAST_SAMPLES, math.ceil(needed))


def _drop_room(drop: Drop, found: Score) -> Room:
    against = found.against
    if against is None or (against.reference is None and found.value is not None):
        return _unknown(
            phrase("{title} is itself a comparison and cannot drop; give labels", found.title)
        )
    ends = (against.difference, against.difference_low, against.difference_high)
    difference = [end for end in ends if end is not None]
    if against.reference is None or len(difference) < len(ends):
        return _unknown(
            phrase("{title} is infinite or not a number, so that no drop can be told", found.title)
        )
    allowed = drop.allowed(against.reference, title=found.title, unit=found.unit)
    better = 1 if found.better is None else found.better
    estimate, low, high = _gain(better, *difference)
    return Room(estimate + allowed, low + allowed, high + allowed)


def _gain(better: int, difference: float, low: float, high: float) -> tuple[float, float, float]:
    """Turns a difference into a gain; where neither direction is better, every difference is a
    loss."""
    if better > 0:
        return difference, low, high
    if better < 0:
        return -difference, -high, -low
    nearest = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
    return -abs(difference), -max(abs(low), abs(high)), -nearest


def _unknown(reason: str) -> Room:
    return Room(math.nan, math.nan, math.nan, reason)


def read_bound(
    name: str, given: Typed | None, read: Callable[[str], Value | None], example: str
) -> Value | None:
    """Reads the bound of an argument, typed or a number; raises where `read` does not understand
    it."""
    value = None if given is None else read(str(given))
    if given is not None and value is None:
        raise BadInput("{option}: give {example}", argument(name, given), example)
    return value


def read_ceiling(
    name: str, given: Typed | None, read: Callable[[str], float | None], example: str
) -> float | None:
    """Reads a bound that must be above 0."""
    value = read_bound(name, given, read, example)
    if value is not None and value <= 0:
        raise BadInput("{option}: nothing is so little; give more than 0", argument(name, given))
    return value


@dataclass(frozen=True)
class Limits:
    """The ceilings for a file; None where none is given."""

    max_bytes: int | None = None
    max_latency_us: float | None = None
    max_ram: int | None = None
    max_flash: int | None = None

    @staticmethod
    def parse(
        max_size: Typed | None = None,
        max_latency: Typed | None = None,
        chip: MicroRoom | None = None,
    ) -> "Limits":
        """Parses `4MB`, `500kB` or `1.5MiB`, and `10ms`, `800us` or `1.2s`; `chip` holds the memory
        of a microcontroller."""
        size = read_ceiling("max_size", max_size, typed_bytes, "4MB, 500kB or 1.5MiB")
        latency = read_ceiling("max_latency", max_latency, typed_time, "10ms, 800us or 1.2s")
        most = (None, None) if chip is None else (chip.ram, chip.flash)
        return Limits(None if size is None else int(size), latency, *most)

    @property
    def texts(self) -> tuple[str, ...]:
        """Each given ceiling in words, as in `at most 4.00 MB`."""
        found: list[str] = []
        if self.max_bytes is not None:
            found.append(phrase("at most {size}", bytes_text(self.max_bytes)))
        if self.max_latency_us is not None:
            found.append(phrase("at most {time}", time_text(self.max_latency_us)))
        if self.max_ram is not None:
            found.append(phrase("at most {size} of RAM", bytes_text(self.max_ram)))
        if self.max_flash is not None:
            found.append(phrase("at most {size} of flash", bytes_text(self.max_flash)))
        return tuple(found)

    @property
    def ceilings(self) -> dict[str, float]:
        """The ceilings by the cost they limit, in bytes and microseconds."""
        given = {
            "size": self.max_bytes,
            "latency": self.max_latency_us,
            "ram": self.max_ram,
            "flash": self.max_flash,
        }
        return {cost: float(limit) for cost, limit in given.items() if limit is not None}

    def misses(self, details: Tried, latency_us: float | None) -> tuple[str, ...]:
        """A sentence for each ceiling that a file exceeds."""
        found = list(self._too_large(details))
        most = self.max_latency_us
        if most is None:
            return tuple(found)
        if latency_us is None or math.isnan(latency_us):
            found.append(phrase("its time is not known, and the limit is {time}", time_text(most)))
        elif latency_us > most:
            excess = time_text(latency_us - most)
            found.append(
                phrase("{excess} above the {time} that a run may take", excess, time_text(most))
            )
        return tuple(found)

    def _too_large(self, details: Tried) -> Iterator[str]:
        file_bytes, ram, flash = details.bytes or 0, details.ram_bytes, details.flash_bytes
        if self.max_bytes is not None and file_bytes > self.max_bytes:
            excess = bytes_text(file_bytes - self.max_bytes)
            most = bytes_text(self.max_bytes)
            yield phrase("{excess} above the {size} that a file may have", excess, most)
        if self.max_ram is not None and ram is not None and ram > self.max_ram:
            excess, most = bytes_text(ram - self.max_ram), bytes_text(self.max_ram)
            yield phrase("it lacks {excess} of RAM: {most} are there", excess, most)
        if self.max_flash is not None and flash is not None and flash > self.max_flash:
            excess, most = bytes_text(flash - self.max_flash), bytes_text(self.max_flash)
            yield phrase("it lacks {excess} of flash: {most} are there", excess, most)


@dataclass(frozen=True)
class Goal:
    """The goal of a search.

    place     where the result is to run
    metric    the metric of the budget
    training  how to train; None where nothing is trained
    runs      the number of timed runs; None times until the result is steady
    """

    minimize: str
    budget: Budget
    limits: Limits
    place: Place
    metric: str
    training: Training | None = None
    runs: int | None = None

    def rule(self, usual: Rule) -> Rule:
        """The user's rule for when timing stops, or the usual rule where the user gave none."""
        if self.runs is None:
            return usual
        return Rule(runs=self.runs, warmup_runs=1, look_seconds=usual.look_seconds)

    def allowed(self, found: Score) -> float:
        """The allowed loss in the unit of the metric."""
        drop, reference = self.budget.max_drop, found.reference
        if drop is not None and reference is not None:
            return drop.allowed(reference, title=found.title, unit=found.unit)
        return 0.0 if self.budget.min_agreement is None else 1 - self.budget.min_agreement

    def is_missed(self, found: Score) -> bool:
        """True where the estimated loss exceeds the allowed loss."""
        return verdict(self.budget.room(found)) == MISSED

    def judge(self, details: Tried, reason: str) -> tuple[Tried, str]:
        """Adds to the measurements whether they meet the goal, and a sentence about the outcome."""
        if details.accuracy is None:
            return details, reason
        found = details.accuracy
        room, latency = self.budget.room(found), details.latency
        over = self.limits.misses(details, latency and latency.p50_us)
        missed = NEAR if room.is_near else MISSES
        status = MISSES if over else missed if self.is_missed(found) else FITS
        left = RoomLeft(*map(finite, room[:3]), reason=room.reason, allowed=self.allowed(found))
        judged = replace(details, room=left, status=status)
        if details.name == FLOAT:
            found = replace(found, against=None)
        told = describe_score(found, room), describe_time(latency), describe_memory(details)
        words = ", ".join(filter(None, told))
        return judged, "; ".join(filter(None, (words, describe_left(details.placed), *over)))

    def is_in_vain(self, latency: Speed) -> bool:
        """True where time counts and the candidate is slower than the float model beyond doubt."""
        is_slower = latency.low is not None and latency.low > 1 and latency.verdict != UNCLEAR
        return self.minimize == "latency" and is_slower


def describe_score(found: Score, room: Room) -> str:
    """A score and its room in a few words."""
    if room.reason:
        return room.reason
    paired = found.against
    if paired is None or paired.difference is None:
        return f"{found.title} {score_text(found.known_value, found.unit, found.low, found.high)}"
    value = f"{found.title} {score_text(found.known_value, found.unit)}"
    low, high = paired.difference_low, paired.difference_high
    if low is None or high is None:
        return value
    return f"{value}, {gain_text(paired.difference, found.unit, low, high)}"


def describe_memory(details: Tried) -> str:
    """The memory on a microcontroller, as in `63.9 KB of RAM, 384 KB of flash`; "" elsewhere."""
    if details.ram_bytes is None or details.flash_bytes is None:
        return ""
    ram, flash = bytes_text(details.ram_bytes), bytes_text(details.flash_bytes)
    return phrase("{ram} of RAM, {flash} of flash", ram, flash)


def _about(latency: Speed) -> str:
    """A first look in words, as in `about 2.4 × faster`; the proof measures the speed again."""
    ratio, verdict = latency.ratio or 1.0, latency.verdict or judge(latency.low, latency.high)
    if verdict not in (FASTER, SLOWER):
        return speed_words(ratio, latency.low, latency.high, verdict)
    factor = ratio if verdict == SLOWER else 1 / ratio
    digits = 2 if factor >= _TENTH_MORE else 3
    return phrase("about {factor} × {word}", number_text(float(f"{factor:.{digits}g}")), verdict)


def speed_and_times(latency: Speed) -> tuple[str, str]:
    """A measured ratio in words, as in `2.38 × faster` and `1.90 ms → 798 µs`."""
    words = speed_words(latency.ratio or 1.0, latency.low, latency.high, latency.verdict)
    return words, times_words(latency.float_us, latency.p50_us)


def describe_time(latency: Speed | None) -> str:
    """A first look at the time, or a compiler's estimate, in words; "" where no time is known."""
    if latency is None or (latency.ratio is None and latency.p50_us is None):
        return ""
    if latency.ratio == 1 and not latency.verdict:  # the float model itself
        return time_text(latency.p50_us or 0.0)
    if latency.ratio is not None:
        return _about(latency)
    return phrase(
        "{time} on {target} by its compiler's estimate",
        time_text(latency.p50_us or 0.0),
        latency.target,
    )
