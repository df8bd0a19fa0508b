"""Which of several measured models to take: the front, ties within the noise, and the pick."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from litesmith.accuracy.paired import Groups
from litesmith.errors import BadInput
from litesmith.evidence.choose_record import (
    MEASURED,
    PUBLISHED,
    CandidateRow,
    ScoredModel,
    TimedModel,
)
from litesmith.passes.quantizing.integer_graph import integer_tensors
from litesmith.phrases import Phrase, join, join_and, phrase
from litesmith.search.choosing.candidates import ModelCandidate
from litesmith.search.choosing.shared_data import worse_beyond_noise
from litesmith.search.trial.budget import MINIMIZE, Typed, read_bound, read_ceiling
from litesmith.timing.statistics import MARGIN, UNCLEAR
from litesmith.units import (
    bytes_text,
    gain_text,
    score_text,
    time_text,
    typed_bytes,
    typed_share,
    typed_time,
)

ACCURACY = "accuracy"


@dataclass(frozen=True)
class Cost:
    """One of the costs of a model.

    of      reads the cost from a model
    most    the superlative for the model with the lowest cost
    taken   the words for the cost in a sentence
    """

    of: "Callable[[Alternative], float | None]"
    text: Callable[[float], str]
    most: str
    taken: Phrase


def _bytes_words(count: float) -> str:
    return bytes_text(int(count))


COSTS = {
    "latency": Cost(
        lambda option: option.p50_us, time_text, phrase("the fastest"), phrase("takes {amount}")
    ),
    "size": Cost(
        lambda option: option.bytes, _bytes_words, phrase("the smallest"), phrase("has {amount}")
    ),
    "download": Cost(
        lambda option: option.gzip_bytes,
        _bytes_words,
        phrase("the smallest to download"),
        phrase("has {amount} gzipped"),
    ),
    "memory": Cost(
        lambda option: option.peak_bytes,
        _bytes_words,
        phrase("the least in memory"),
        phrase("takes {amount} of memory"),
    ),
}

# Each ceiling by its argument: the cost that it limits, its parser, and an example.
CEILINGS: dict[str, tuple[str, Callable[[str], float | None], str]] = {
    "max_latency": ("latency", typed_time, "10ms, 800us or 1.2s"),
    "max_size": ("size", typed_bytes, "4MB, 500kB or 1.5MiB"),
    "max_memory": ("memory", typed_bytes, "20MB or 16MiB"),
}


@dataclass(frozen=True)
class Requirements:
    """The user's requirements.

    ceilings      upper limits of costs, in microseconds or bytes
    min_accuracy  the least share of right answers
    minimize      the cost to minimize; None means the most accurate model, or, where only an
                  accuracy is required, the fastest that reaches it
    """

    ceilings: Mapping[str, float] = field(default_factory=dict[str, float])
    min_accuracy: float | None = None
    minimize: str | None = None

    def __post_init__(self) -> None:
        if self.minimize not in (None, *MINIMIZE):
            raise BadInput(
                "minimize {minimize}: there are {minimize2}", self.minimize, ", ".join(MINIMIZE)
            )

    @staticmethod
    def parse(
        typed: Mapping[str, Typed | None], min_accuracy: Typed | None, minimize: str | None
    ) -> "Requirements":
        """Parses `10ms`, `5MB`, `80%` or `0.8`; `typed` has the names of `CEILINGS` as keys."""
        ceilings: dict[str, float] = {}
        for name, (cost, read, example) in CEILINGS.items():
            limit = read_ceiling(name, typed.get(name), read, example)
            if limit is not None:
                ceilings[cost] = float(limit)
        share = read_bound(
            "min_accuracy", min_accuracy, typed_share, phrase("a share, as in 80% or 0.8")
        )
        return Requirements(ceilings, share, minimize)

    @property
    def texts(self) -> tuple[str, ...]:
        """Each bound in words, as in `at most 10.0 ms`."""
        found = [
            phrase("at most {what}", COSTS[cost].text(limit))
            for cost, limit in self.ceilings.items()
        ]
        if self.min_accuracy is not None:
            found.append(phrase("at least {score}", score_text(self.min_accuracy, "share")))
        return tuple(found)

    def goal(self, *, knows_accuracy: bool) -> str:
        """The criterion among models that fit: "accuracy", or a cost."""
        if self.minimize is not None:
            return self.minimize
        if not knows_accuracy or (self.min_accuracy is not None and not self.ceilings):
            return "latency"
        return ACCURACY


@dataclass(frozen=True)
class Alternative:
    """What a choice knows about a model; None where a value is unknown.

    merit       the accuracy, negated where a lower metric is better; `value` is the metric itself
    is_unclear  True where the machine was too busy to distinguish the model's time from another's
    """

    name: str
    merit: float | None = None
    value: float | None = None
    unit: str = "share"
    p50_us: float | None = None
    bytes: float | None = None
    gzip_bytes: float | None = None
    peak_bytes: float | None = None
    is_unclear: bool = False

    def cost(self, name: str) -> float | None:
        return COSTS[name].of(self)

    def misses(self, asked: Requirements) -> tuple[str, ...]:
        """The requirements that the model misses, in words, as in `takes 14.0 ms`."""
        found: list[str] = []
        for kind, limit in asked.ceilings.items():
            own, cost = self.cost(kind), COSTS[kind]
            if own is None:
                found.append(phrase("its {kind} is not known", kind))
            elif own > limit:
                found.append(cost.taken.format(amount=cost.text(own)))
        if asked.min_accuracy is not None:
            if self.merit is None:
                found.append(phrase("its accuracy is not known"))
            elif self.merit < asked.min_accuracy:
                found.append(phrase("has {score}", score_text(self.value or 0.0, self.unit)))
        return tuple(found)


Worse = Callable[[Alternative, Alternative], bool]  # True where the first is worse beyond the noise


def standing(option: Alternative) -> tuple[float, ...] | None:
    """The coordinates of a model for the front, less is better; None where one of them is
    unknown."""
    if option.p50_us is None or option.bytes is None:
        return None
    costs = (option.p50_us, option.bytes)
    return costs if option.merit is None else (*costs, -option.merit)


def find_front(options: Sequence[Alternative]) -> tuple[str, ...]:
    """Finds the models that no other beats in time, size and accuracy at once, by their estimates.

    Where some models have a known accuracy, models without one are left out.
    """
    known = [o for o in options if o.merit is not None] or list(options)
    placed = [(o.name, place) for o in known if (place := standing(o)) is not None]
    return tuple(name for name, own in placed if not any(_beats(other, own) for _, other in placed))


def _beats(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a != b and all(x <= y for x, y in zip(a, b, strict=True))


def find_as_good(
    option: Alternative, options: Sequence[Alternative], worse: Worse
) -> tuple[str, ...]:
    """For a model on the front, the models that equal it within the noise; for any other model, the
    models on the front that it equals within the noise."""
    names = find_front(options)
    others = [o for o in options if o.name != option.name and standing(o) is not None]
    if (own := standing(option)) is None:
        return ()
    others = [o for o in others if len(standing(o) or ()) == len(own)]
    if option.name in names:
        return tuple(o.name for o in others if not worse(o, option))
    return tuple(o.name for o in others if o.name in names and not worse(option, o))


class Pick(NamedTuple):
    """The model to take, or the nearest miss where none fits, and the reason. Both are absent where
    times count and the machine was too busy to distinguish them."""

    name: str | None
    nearest: str | None
    reason: str
    is_unclear: bool = False


def pick(options: Sequence[Alternative], asked: Requirements, worse: Worse) -> Pick:
    """Picks the fitting model that serves the goal best; among equals, the cheapest."""
    known = [o for o in options if o.merit is not None]
    goal = asked.goal(knows_accuracy=bool(known))
    able = known or [o for o in options if goal != ACCURACY and o.cost(goal) is not None]
    if "latency" in (goal, *asked.ceilings) and any(o.is_unclear for o in able):
        why = phrase("{unclear}, and the choice is by times; nothing is picked", UNCLEAR)
        return Pick(None, None, why, is_unclear=True)
    fitting = [o for o in able if not o.misses(asked)]
    if goal != ACCURACY:
        fitting = [o for o in fitting if o.cost(goal) is not None]
    if not fitting:
        return _none(able, asked)
    best = min(fitting, key=lambda o: _rank(o, goal))
    clauses = (
        phrase("{name}: {why}", best.name, _why(goal, fitting, able, asked)),
        _equal(best, fitting, goal),
        _outside(best, able, asked, goal),
        _cheaper(best, fitting, goal, worse),
    )
    return Pick(best.name, None, join(filter(None, clauses), "; "))


def _why(
    goal: str, fitting: Sequence[Alternative], able: Sequence[Alternative], asked: Requirements
) -> str:
    """The reason in words, as in `the most accurate of the 4 under 10.0 ms`."""
    what = phrase("the most accurate") if goal == ACCURACY else COSTS[goal].most
    within = _within(asked)
    if len(able) == 1:
        return phrase("there is no other to choose from")
    if len(fitting) == 1:
        return phrase("the only one {within}", within)
    if not asked.texts or len(fitting) == len(able):
        tail = phrase(" {within}", within) if within else ""
        return (
            phrase("{what} of the two{tail}", what, tail)
            if len(able) == 2
            else phrase("{what} of all {count}{tail}", what, len(able), tail)
        )
    return phrase("{what} of the {count} {within}", what, len(fitting), within)


def _rank(option: Alternative, goal: str) -> tuple[float, float, float, float, str]:
    """The sort key of a model, less is better; the name comes last, so that the result does not
    depend on the order of the input."""
    merit, size = option.merit or 0.0, option.bytes or 0.0
    time = 0.0 if option.is_unclear else option.p50_us or 0.0
    first = -merit if goal == ACCURACY else option.cost(goal) or 0.0
    return first, -merit, time, size, option.name


def _within(asked: Requirements) -> str | None:
    """The requirements in words, as in `under 10.0 ms with at least 80.00 %`."""
    listed = [COSTS[cost].text(limit) for cost, limit in asked.ceilings.items()]
    limits = join_and(listed) if listed else ""
    if asked.min_accuracy is None:
        return phrase("under {limits}", limits) if limits else None
    least = score_text(asked.min_accuracy, "share")
    return (
        phrase("under {limits} with at least {least}", limits, least)
        if limits
        else phrase("with at least {least}", least)
    )


def _outside(best: Alternative, able: Sequence[Alternative], asked: Requirements, goal: str) -> str:
    """Among the models that serve the goal better but do not fit, names the nearest miss and what
    it misses."""
    better = [o for o in able if o.misses(asked) and _serves(o, best, goal)]
    if not better:
        return ""
    rival = min(better, key=lambda o: (_excess(o, asked), o.name))
    what = phrase("{gain} better", _gain(rival, best)) if goal == ACCURACY else _taken(rival, goal)
    verb = phrase("is ") if goal == ACCURACY else ""
    return phrase(
        "{name} {verb}{what} but {misses}",
        rival.name,
        verb,
        what,
        join_and(rival.misses(asked)),
    )


def _equal(best: Alternative, fitting: Sequence[Alternative], goal: str) -> str:
    """Names an equally accurate model that is slower or larger, and what decided against it."""
    same = [o for o in fitting if o is not best and o.merit == best.merit]
    if goal != ACCURACY or not same:
        return ""
    rival = min(same, key=lambda o: _rank(o, goal))
    cost = "size" if rival.p50_us == best.p50_us else "latency"
    return phrase("{name} has the same accuracy and {taken}", rival.name, _taken(rival, cost))


def _serves(a: Alternative, b: Alternative, goal: str) -> bool:
    """True where a serves the goal better than b."""
    if goal == ACCURACY:
        return (a.merit or 0.0) > (b.merit or 0.0)
    own, other = a.cost(goal), b.cost(goal)
    return own is not None and other is not None and own < other


def _cheaper(best: Alternative, fitting: Sequence[Alternative], goal: str, worse: Worse) -> str:
    """Names a model that is far faster and as accurate within the noise; "" where accuracy is no
    goal."""
    if goal != ACCURACY:
        return ""
    clear = [o for o in fitting if not o.is_unclear]
    same = [o for o in clear if o.p50_us and best.p50_us and o.p50_us < 0.9 * best.p50_us]
    same = [o for o in same if not worse(_alone(o), _alone(best))]
    if not same:
        return ""
    rival = min(same, key=lambda o: (o.p50_us or 0.0, o.name))
    return phrase(
        "{name} is as accurate within the noise and {taken}", rival.name, _taken(rival, "latency")
    )


def _alone(option: Alternative) -> Alternative:
    """The model reduced to its accuracy."""
    return Alternative(option.name, option.merit, option.value, option.unit)


def _taken(option: Alternative, name: str) -> str:
    cost, own = COSTS[name], option.cost(name)
    return cost.taken.format(amount=cost.text(own or 0.0))


def _gain(a: Alternative, b: Alternative) -> str:
    """The difference in accuracy without a sign, as in `1.20 pt`."""
    difference = abs((a.merit or 0.0) - (b.merit or 0.0))
    return gain_text(difference, a.unit, 0.0, 0.0).split(" [")[0].lstrip("+")


def _none(able: Sequence[Alternative], asked: Requirements) -> Pick:
    """The result where nothing fits: the model that misses by the least."""
    within = _within(asked) or phrase("with what is asked")
    if not able:
        return Pick(None, None, phrase("nothing fits: no model is known {within}", within))
    near = min(able, key=lambda o: (_excess(o, asked), o.name))
    missed = join_and(near.misses(asked))
    return Pick(
        None,
        near.name,
        phrase("none is {within}; nearest is {name}, which {missed}", within, near.name, missed),
    )


def _excess(option: Alternative, asked: Requirements) -> float:
    """The largest ratio of a model's cost to its bound."""
    over = [(option.cost(cost) or float("inf")) / limit for cost, limit in asked.ceilings.items()]
    if asked.min_accuracy is not None:
        over.append(asked.min_accuracy / max(option.merit or 0.0, 1e-9))
    return max(over, default=0.0)


# What is known of the models, beside each other.


@dataclass(frozen=True, eq=False)
class CandidateTable:
    """Candidates with the measurements known so far, by name.

    basis   the origin of the accuracies: measured here, published, or none
    scores  the accuracy of each candidate; `each` has its result on every sample
    groups  the group of each sample; None where every sample is independent
    """

    candidates: Sequence[ModelCandidate]
    basis: str
    metric: str = ""
    times: Mapping[str, TimedModel] = field(default_factory=dict[str, TimedModel])
    scores: Mapping[str, ScoredModel] = field(default_factory=dict[str, ScoredModel])
    each: Mapping[str, tuple[float, ...]] = field(default_factory=dict[str, tuple[float, ...]])
    groups: Groups = None

    @property
    def options(self) -> list[Alternative]:
        return [self._option(candidate) for candidate in self.candidates]

    def _option(self, candidate: ModelCandidate) -> Alternative:
        times, score = self.times.get(candidate.name), self.scores.get(candidate.name)
        value, unit, better = None, "", 1
        if score is not None:
            value, unit = score.accuracy.value, score.accuracy.unit
            better = score.accuracy.better or 1
        if self.basis == PUBLISHED and candidate.published is not None:
            value, unit, better = candidate.published.value, "share", 1
        return Alternative(
            name=candidate.name,
            merit=None if value is None else value * better,
            value=value,
            unit=unit,
            p50_us=times and times.p50_us,
            bytes=times and times.bytes,
            gzip_bytes=times and times.gzip_bytes,
            peak_bytes=times and times.peak_bytes,
            is_unclear=times is not None and times.is_unclear,
        )

    def is_worse(self, a: Alternative, b: Alternative) -> bool:
        """True where a is worse than b in any respect, beyond the noise."""
        if a.bytes is not None and b.bytes is not None and a.bytes > b.bytes:
            return True
        return self._is_slower(a, b) or self._is_less_accurate(a, b)

    def _is_slower(self, a: Alternative, b: Alternative) -> bool:
        if a.p50_us is None or b.p50_us is None or (a.is_unclear and b.is_unclear):
            return False
        digests = {c.name: c.digest for c in self.candidates}
        _, low, _ = self.times[a.name].ratios[digests[b.name]]
        return low is not None and low > 1 + MARGIN

    def _is_less_accurate(self, a: Alternative, b: Alternative) -> bool:
        if a.merit is None or b.merit is None:
            return False
        if self.basis != MEASURED:
            return a.merit < b.merit
        own, other = self.each.get(a.name, ()), self.each.get(b.name, ())
        told = worse_beyond_noise(self.metric, own, other, self.groups)
        if told is not None:
            return told
        one, two = self.scores[a.name].accuracy, self.scores[b.name].accuracy
        if one.is_lower_better:
            one, two = two, one
        return one.high is not None and two.low is not None and one.high < two.low

    def rows(self, asked: Requirements) -> tuple[CandidateRow, ...]:
        """A row of known values for every candidate."""
        options = self.options
        front = find_front(options)
        pairs = zip(self.candidates, options, strict=True)
        return tuple(
            self._row(
                candidate, option.misses(asked), self._as_good(option), candidate.name in front
            )
            for candidate, option in pairs
        )

    def _as_good(self, option: Alternative) -> tuple[str, ...]:
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
