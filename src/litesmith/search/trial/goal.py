"""The goal of a search, and whether a measurement meets it."""

from dataclasses import dataclass, replace

from litesmith.accuracy.evaluate import Evaluation
from litesmith.evidence.records import Speed
from litesmith.evidence.tuning import FITS, FLOAT, MISSES, Tried
from litesmith.phrases import phrase
from litesmith.search.trial.budget import MISSED, Budget, Limits, verdict
from litesmith.search.trial.measured_values import describe_score, evaluation_of, room_left
from litesmith.search.trial.target_place import Place, describe_left
from litesmith.timing.latency import Rule
from litesmith.training.settings import Training
from litesmith.units import ratio_text, time_text


@dataclass(frozen=True)
class Goal:
    """What is asked of a search.

    place     where the result is to run
    metric    the metric that the budget is about
    training  how to train; None where nothing is trained
    runs      times are taken in so many; None: until they are steady
    """

    minimize: str
    budget: Budget
    limits: Limits
    place: Place
    metric: str
    training: Training | None = None
    runs: int | None = None

    def rule(self, usual: Rule) -> Rule:
        """When timing stops, where the usual rule is this."""
        if self.runs is None:
            return usual
        return Rule(runs=self.runs, warmup_runs=1, look_seconds=usual.look_seconds)

    def allowed(self, found: Evaluation) -> float:
        """What may be lost at all, in the unit of the metric."""
        drop, reference = self.budget.max_drop, found.against and found.against.value
        if drop is not None and reference is not None:
            return drop.allowed(reference, title=found.title, unit=found.unit)
        return 0.0 if self.budget.min_agreement is None else 1 - self.budget.min_agreement

    def is_missed(self, found: Evaluation) -> bool:
        """True where more is lost than may be, as far as the samples tell."""
        return verdict(self.budget.room(found)) == MISSED

    def judge(self, details: Tried, reason: str) -> tuple[Tried, str]:
        """What was measured, with whether it fits; and what came out."""
        if details.accuracy is None:
            return details, reason
        found = evaluation_of(details.accuracy)
        room, latency = self.budget.room(found), details.latency
        over = self.limits.misses(details.bytes or 0, latency and latency.p50_us)
        fits = not self.is_missed(found) and not over
        judged = replace(
            details,
            room=room_left(room, self.allowed(found)),
            status=FITS if fits else MISSES,
        )
        if details.name == FLOAT:
            found = replace(found, against=None)
        words = ", ".join(filter(None, (describe_score(found, room), _describe_time(latency))))
        return judged, "; ".join(filter(None, (words, describe_left(details.placed), *over)))

    def is_in_vain(self, latency: Speed) -> bool:
        """True for a time that is above the float model's beyond doubt, where time counts."""
        return self.minimize == "latency" and latency.low is not None and latency.low > 1


def _describe_time(latency: Speed | None) -> str:
    """`0.42 × the time`, or what a compiler estimates; "" where no time is known."""
    if latency is None or (latency.ratio is None and latency.p50_us is None):
        return ""
    if latency.ratio is not None:
        return phrase("{ratio} the time", ratio_text(latency.ratio))
    return phrase(
        "{time} on {target} by its compiler's estimate",
        time_text(latency.p50_us or 0.0),
        latency.target,
    )
