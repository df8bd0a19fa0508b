"""What is said of a model wherever it turns up: how good, how fast, how large it is, and where."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from litesmith.evidence.codec import Count, Mark, Omitted, Positive
from litesmith.phrases import phrase
from litesmith.units import total_text

# A machine by name and value; see `timing.host.Host`.
Environment = Mapping[str, str | int | float | None]


@dataclass(frozen=True)
class PairedScore:
    """A score against the float model's on the same samples; None is what could not be told."""

    reference: float | None
    reference_low: float | None
    reference_high: float | None
    difference: float | None
    difference_low: float | None
    difference_high: float | None
    agreement: float | None
    snr_db: float | None


@dataclass(frozen=True)
class Score:
    """A metric on `n` samples with its 95 % interval; None is a number that is infinite or none.

    better       1 where more of the metric is better, −1 where less is
    against      the same beside the float model
    independent  how many of the samples are no copies of others; None where that is not on record
    """

    metric: str
    title: str
    unit: str
    value: float | None
    low: float | None
    high: float | None
    n: Count
    better: Omitted[int] = None
    against: Annotated[PairedScore | None, Mark.FLAT] = None
    independent: Omitted[int] = None

    @property
    def held_out_text(self) -> str:
        """`480 held-out samples`, and how many are independent where copies are among them."""
        if self.independent is None or self.independent == self.n:
            return phrase("{count} held-out samples", total_text(self.n))
        return phrase(
            "{count} held-out samples, {independent} independent",
            total_text(self.n),
            total_text(self.independent),
        )

    @property
    def is_lower_better(self) -> bool:
        return (self.better or 0) < 0

    @property
    def known_value(self) -> float:
        """The value, of a score that has one."""
        assert self.value is not None
        return self.value

    @property
    def reference(self) -> float | None:
        return self.against and self.against.reference

    @property
    def difference(self) -> float | None:
        return self.against and self.against.difference

    @property
    def paired_ends(self) -> tuple[float, float] | None:
        """The interval of the paired difference, laid around the float model's value."""
        found = self.against
        if found is None or found.reference is None:
            return None
        if found.difference_low is None or found.difference_high is None:
            return None
        return found.reference + found.difference_low, found.reference + found.difference_high


@dataclass(frozen=True)
class CompilerEstimate:
    """What a compiler works out of a model: the time of its own part, in cycles too."""

    part_us: float | None
    cycles: float | None


@dataclass(frozen=True)
class Speed:
    """How long a run takes, beside the float model in the same interleaved run.

    how      measured or estimated; "" where no time is known
    ratio    of the float model's time; with `low` and `high`, its 95 % interval
    verdict  faster, slower or no difference; "" for the float model
    """

    target: str
    how: str
    p50_us: Positive | None
    float_us: Positive | None
    ratio: Positive | None
    low: float | None
    high: float | None
    verdict: str
    estimate: Annotated[CompilerEstimate | None, Mark.FLAT] = None

    @property
    def cost(self) -> float | None:
        """The part of the float model's time, or an estimate in µs: one search has times of one
        kind only."""
        part = self.estimate.part_us if self.estimate else None
        return next((one for one in (self.ratio, self.p50_us, part) if one is not None), None)

    def beside(self, float_us: float | None) -> "Speed":
        """The same ratio beside another time of the float model: what the machine was busy with
        when each of two was measured cancels."""
        if self.ratio is None or float_us is None:
            return self
        return replace(self, p50_us=self.ratio * float_us, float_us=float_us)


@dataclass(frozen=True)
class TakenOps:
    """How many ops of a model a target takes, in how many parts, and why not the others.

    how  measured by its compiler, or predicted by rules
    """

    target: str
    how: str
    taken: Count
    ops: Count
    partitions: Count
    why: str

    @property
    def left(self) -> int:
        return self.ops - self.taken

    @property
    def is_whole(self) -> bool:
        return bool(self.ops) and not self.left


@dataclass(frozen=True)
class Taker:
    """What one accelerator makes of a model, with a time where its compiler tells one."""

    placed: Annotated[TakenOps, Mark.FLAT]
    latency_us: Positive | None
    latency_how: str
    cycles: float | None
