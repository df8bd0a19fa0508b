"""What is known of the models to choose from, beside each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from litesmith.evidence.choosing import (
    MEASURED,
    PUBLISHED,
    CandidateRow,
    ScoredModel,
    TimedModel,
)
from litesmith.passes.quantizing.integer_graph import integer_tensors
from litesmith.search.choosing.candidates import ModelCandidate
from litesmith.search.choosing.pick import Option, Requirements, find_as_good, find_front
from litesmith.search.choosing.shared_data import worse_beyond_noise
from litesmith.timing.statistics import MARGIN


@dataclass(frozen=True, eq=False)
class CandidateTable:
    """Candidates with their measurements, by name; what is not there is not known yet.

    basis   where accuracy comes from: measured here, published, or nowhere
    scores  the accuracy of each, and `each` what it scored on every sample
    """

    candidates: Sequence[ModelCandidate]
    basis: str
    metric: str = ""
    times: Mapping[str, TimedModel] = field(default_factory=dict[str, TimedModel])
    scores: Mapping[str, ScoredModel] = field(default_factory=dict[str, ScoredModel])
    each: Mapping[str, tuple[float, ...]] = field(default_factory=dict[str, tuple[float, ...]])

    @property
    def options(self) -> list[Option]:
        return [self._option(candidate) for candidate in self.candidates]

    def _option(self, candidate: ModelCandidate) -> Option:
        times, score = self.times.get(candidate.name), self.scores.get(candidate.name)
        value, unit, better = None, "", 1
        if score is not None:
            value, unit = score.accuracy.value, score.accuracy.unit
            better = score.accuracy.better or 1
        if self.basis == PUBLISHED and candidate.published is not None:
            value, unit, better = candidate.published.value, "share", 1
        return Option(
            name=candidate.name,
            merit=None if value is None else value * better,
            value=value,
            unit=unit,
            p50_us=times and times.p50_us,
            bytes=times and times.bytes,
            gzip_bytes=times and times.gzip_bytes,
            peak_bytes=times and times.peak_bytes,
        )

    def is_worse(self, a: Option, b: Option) -> bool:
        """True where a is worse than b in something, beyond the noise."""
        if a.bytes is not None and b.bytes is not None and a.bytes > b.bytes:
            return True
        return self._is_slower(a, b) or self._is_less_accurate(a, b)

    def _is_slower(self, a: Option, b: Option) -> bool:
        if a.p50_us is None or b.p50_us is None:
            return False
        digests = {c.name: c.digest for c in self.candidates}
        _, low, _ = self.times[a.name].ratios[digests[b.name]]
        return low is not None and low > 1 + MARGIN

    def _is_less_accurate(self, a: Option, b: Option) -> bool:
        if a.merit is None or b.merit is None:
            return False
        if self.basis != MEASURED:
            return a.merit < b.merit
        own, other = self.each.get(a.name, ()), self.each.get(b.name, ())
        told = worse_beyond_noise(self.metric, own, other)
        if told is not None:
            return told
        one, two = self.scores[a.name].accuracy, self.scores[b.name].accuracy
        if one.is_lower_better:
            one, two = two, one
        return one.high is not None and two.low is not None and one.high < two.low

    def rows(self, asked: Requirements) -> tuple[CandidateRow, ...]:
        """Every candidate by what is known of it."""
        options = self.options
        front = find_front(options)
        pairs = zip(self.candidates, options, strict=True)
        return tuple(
            self._row(candidate, option.misses(asked), self._as_good(option), name in front)
            for candidate, option in pairs
            for name in (candidate.name,)
        )

    def _as_good(self, option: Option) -> tuple[str, ...]:
        is_timed = option.name in self.times
        return find_as_good(option, self.options, self.is_worse) if is_timed else ()

    def _row(
        self,
        candidate: ModelCandidate,
        misses: tuple[str, ...],
        as_good: tuple[str, ...],
        on_front: bool,
    ) -> CandidateRow:
        name = candidate.name
        times, score = self.times.get(name), self.scores.get(name)
        accuracy = score and score.accuracy
        return CandidateRow(
            model=name,
            file=None if candidate.path is None else str(candidate.path),
            digest=candidate.digest,
            parent=candidate.parent or None,
            recipe=candidate.recipe,
            is_integer=bool(integer_tensors(candidate.model)),
            value=accuracy and accuracy.value,
            low=accuracy and accuracy.low,
            high=accuracy and accuracy.high,
            n=accuracy and accuracy.n,
            unit=accuracy and accuracy.unit,
            metric=accuracy and accuracy.metric,
            title=accuracy and accuracy.title,
            better=accuracy and accuracy.better,
            p50_us=times and times.p50_us,
            p50_low_us=times and times.p50_low_us,
            p50_high_us=times and times.p50_high_us,
            bytes=times and times.bytes,
            gzip_bytes=times and times.gzip_bytes,
            peak_bytes=times and times.peak_bytes,
            published=candidate.published,
            preparation=score and score.preparation,
            notes=candidate.notes or (score.notes if score else ()),
            on_front=on_front,
            as_good=as_good,
            fits=not misses if times else None,
            misses=misses if times else (),
        )
