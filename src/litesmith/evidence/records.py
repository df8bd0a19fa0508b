"""Scores, speeds, sizes and placements of a model, as every command stores them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from litesmith.evidence.codec import Count, Mark, Omitted, Positive
from litesmith.phrases import phrase
from litesmith.units import total_text

# A machine, as values by name; see `timing.host.Host`.
Environment = Mapping[str, str | int | float | None]


@dataclass(frozen=True)
class PairedScore:
    """A score paired with the float model's on the same samples; None where a value is unknown."""

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
    """A metric on `n` samples with its 95 % interval; None stands for infinity and NaN.

    better       1 where a higher metric is better, −1 where a lower one is
    against      the comparison with the float model
    independent  the number of samples without copies; None where that is not on record
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
        """The held-out samples in words, as in `480 held-out samples`, with the number of
        independent ones where there are copies."""
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
        """The value of a score that has one."""
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
        """The interval of the paired difference, centred on the float model's value."""
        found = self.against
        if found is None or found.reference is None:
            return None
        if found.difference_low is None or found.difference_high is None:
            return None
        return found.reference + found.difference_low, found.reference + found.difference_high


@dataclass(frozen=True)
class CompilerEstimate:
    """A compiler's estimate for its part of a model, in time and cycles."""

    part_us: float | None
    cycles: float | None


@dataclass(frozen=True)
class Speed:
    """The time of a run, beside the float model's in the same interleaved run.

    how      measured or estimated; "" where no time is known
    ratio    the time relative to the float model's; `low` and `high` are its 95 % interval
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
        """The time relative to the float model's, or an estimate in µs; all times of a search are
        of one kind."""
        part = self.estimate.part_us if self.estimate else None
        return next((one for one in (self.ratio, self.p50_us, part) if one is not None), None)

    def beside(self, float_us: float | None) -> "Speed":
        """The same ratio applied to another time of the float model, so that other load on the
        machine cancels."""
        if self.ratio is None or float_us is None:
            return self
        return replace(self, p50_us=self.ratio * float_us, float_us=float_us)


@dataclass(frozen=True)
class TakenOps:
    """How many ops of a model a target takes, in how many parts, and why not the others.

    how  measured by the target's compiler, or predicted by rules
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
    """The placement of a model on one accelerator, with a time where the compiler estimates one."""

    placed: Annotated[TakenOps, Mark.FLAT]
    latency_us: Positive | None
    latency_how: str
    cycles: float | None
