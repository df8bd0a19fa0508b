"""What is asked of a search, and whether what was measured is that."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

from litesmith.accuracy.evaluate import Evaluation
from litesmith.phrases import phrase
from litesmith.search.trial.budget import MISSED, Budget, Limits, verdict
from litesmith.search.trial.target_place import Place, left_text
from litesmith.search.trial.trial_facts import Json, evaluation_of, room_facts, told
from litesmith.search.trial.trial_record import FITS, FLOAT, MISSES
from litesmith.timing.latency import Rule
from litesmith.training.settings import Training
from litesmith.units import ratio_text, time_text


@dataclass(frozen=True)
class Asked:
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

    def judged(self, details: Json, reason: str) -> tuple[Json, str]:
        """What was measured, with whether it fits; and what came out."""
        if "accuracy" not in details:
            return details, reason
        found = evaluation_of(cast(Json, details["accuracy"]))
        room = self.budget.room(found)
        latency = cast(Json, details["latency"])
        size, time_us = cast(int, details["bytes"]), cast("float | None", latency["p50_us"])
        over = self.limits.misses(size, time_us)
        fits = not self.is_missed(found) and not over
        facts: Json = {
            **details,
            "room": room_facts(room, self.allowed(found)),
            "status": FITS if fits else MISSES,
        }
        if details["name"] == FLOAT:
            found = replace(found, against=None)
        left = left_text(cast("Json | None", details.get("placed")))
        words = ", ".join(filter(None, (told(found, room), _time_text(latency))))
        return facts, "; ".join((words, *filter(None, (left,)), *over))

    def is_in_vain(self, latency: Mapping[str, object]) -> bool:
        """True for a time that is above the float model's beyond doubt, where time counts."""
        low = cast("float | None", latency["low"])
        return self.minimize == "latency" and low is not None and low > 1


def _time_text(latency: Mapping[str, object]) -> str:
    """`0.42 × the time`, or what a compiler estimates; "" where no time is known."""
    ratio, us = (cast("float | None", latency.get(key)) for key in ("ratio", "p50_us"))
    if ratio is not None:
        return phrase("{ratio} the time", ratio_text(ratio))
    return (
        ""
        if us is None
        else phrase(
            "{time} on {target} by its compiler's estimate", time_text(us), latency["target"]
        )
    )
