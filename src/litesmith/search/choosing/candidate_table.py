"""What is known of the models to choose from, beside each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from litesmith.passes.quantizing.integer_graph import integer_tensors
from litesmith.search.choosing.candidates import Candidate
from litesmith.search.choosing.pick import Asked, Option, as_good, front
from litesmith.search.choosing.shared_data import worse_beyond_noise
from litesmith.search.trial.trial_facts import Json, known
from litesmith.timing.statistics import MARGIN

MEASURED, PUBLISHED, NONE = "measured", "published", "none"

_TIMES = ("p50_us", "p50_low_us", "p50_high_us", "bytes", "gzip_bytes", "peak_bytes")
_SCORE = ("value", "low", "high", "n", "unit", "metric", "title", "better")


@dataclass(frozen=True, eq=False)
class Standings:
    """Candidates with their measurements, by name; what is not there is not known yet.

    basis   where accuracy comes from: measured here, published, or nowhere
    scores  the accuracy of each, and `each` what it scored on every sample
    """

    candidates: Sequence[Candidate]
    basis: str
    metric: str = ""
    times: Mapping[str, Json] = field(default_factory=dict[str, Json])
    scores: Mapping[str, Json] = field(default_factory=dict[str, Json])
    each: Mapping[str, tuple[float, ...]] = field(default_factory=dict[str, tuple[float, ...]])

    @property
    def options(self) -> list[Option]:
        return [self._option(candidate) for candidate in self.candidates]

    def _option(self, candidate: Candidate) -> Option:
        times, score = self.times.get(candidate.name, {}), self._accuracy(candidate.name)
        value, better, unit = score.get("value"), score.get("better", 1), score.get("unit")
        if self.basis == PUBLISHED and candidate.published is not None:
            value, better, unit = candidate.published.value, 1, "share"
        number = cast("float | None", value)
        return Option(
            candidate.name,
            None if number is None else number * (cast(int, better) or 1),
            number,
            str(unit or ""),
            *(
                cast("float | None", times.get(key))
                for key in ("p50_us", "bytes", "gzip_bytes", "peak_bytes")
            ),
        )

    def _accuracy(self, name: str) -> Json:
        return cast(Json, self.scores.get(name, {}).get("accuracy") or {})

    def worse(self, a: Option, b: Option) -> bool:
        """True where a is worse than b in something, beyond the noise."""
        if a.bytes is not None and b.bytes is not None and a.bytes > b.bytes:
            return True
        return self._is_slower(a, b) or self._is_less_accurate(a, b)

    def _is_slower(self, a: Option, b: Option) -> bool:
        if a.p50_us is None or b.p50_us is None:
            return False
        digests = {c.name: c.digest for c in self.candidates}
        ratios = cast("dict[str, list[float | None]]", self.times[a.name]["ratios"])
        low = ratios[digests[b.name]][1]
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
        one, two = self._accuracy(a.name), self._accuracy(b.name)
        if cast(int, one.get("better", 1)) < 0:
            one, two = two, one
        high, low = (cast("float | None", end) for end in (one.get("high"), two.get("low")))
        return high is not None and low is not None and high < low

    def rows(self, asked: Asked) -> list[Json]:
        """Every candidate by what is known of it."""
        options = self.options
        on_front = front(options)
        found: list[Json] = []
        for candidate, option in zip(self.candidates, options, strict=True):
            is_timed, misses = candidate.name in self.times, option.misses(asked)
            near = as_good(option, options, self.worse) if is_timed else ()
            found.append(
                {
                    **self._facts(candidate),
                    "on_front": candidate.name in on_front,
                    "as_good": list(near),
                    "fits": not misses if is_timed else None,
                    "misses": list(misses) if is_timed else [],
                }
            )
        return found

    def _facts(self, candidate: Candidate) -> Json:
        name, published = candidate.name, candidate.published
        times, score = self.times.get(name, {}), self.scores.get(name, {})
        accuracy = self._accuracy(name)
        return known(
            {
                "model": name,
                "file": None if candidate.path is None else str(candidate.path),
                "digest": candidate.digest,
                "parent": candidate.parent or None,
                "recipe": candidate.recipe,
                "is_integer": bool(integer_tensors(candidate.model)),
                **{key: accuracy.get(key) for key in _SCORE},
                **{key: times.get(key) for key in _TIMES},
                "published": None if published is None else published._asdict(),
                "preparation": score.get("preparation"),
                "notes": list(candidate.notes or cast(list[str], score.get("notes") or [])),
            }
        )
