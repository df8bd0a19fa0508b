"""The state of a search: what is known of the candidates so far, and what follows from it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from litesmith.calibration.quantize_effort import cures, plan, tidying
from litesmith.evidence.tune_record import FITS, FLOAT
from litesmith.ir.ops import OPS, op_macs
from litesmith.ir.types import Model
from litesmith.passes.core.layers import Layer, layers_of
from litesmith.passes.core.recipe import parse, text_of
from litesmith.passes.core.schemes import SCHEMES
from litesmith.passes.core.step import Step
from litesmith.passes.quantizing.qat import Qat
from litesmith.passes.quantizing.quantize import Quantize
from litesmith.phrases import phrase
from litesmith.precision.fastest_forms import FastestForms, apply_forms, before_quantize
from litesmith.search.trial.budget import PROVEN, Limits, verdict
from litesmith.search.trial.tried_model import TIE, TriedModel

# Goals for which the file, or its archive, should become smaller than the fastest file is.
_SMALL = ("size", "download")

# The candidates in 8-bit integers: throughout, or except for ops that are faster in float.
_EIGHTS = ("int8", "int8-fastest")

# Fewer weights than this stay in a core's own cache between two runs.
_MANY_WEIGHTS = 1 << 18

# The branches that end in 8-bit integers.
EIGHT_BITS = ("int8", "blocks", "ranges", "equalize", "round", "qat")


class Candidate(NamedTuple):
    """A recipe to try.

    name          unique; also the name of the file
    why           the hope behind the recipe
    predicted_us  the predicted time of a run, from the times of the ops
    """

    name: str
    branch: str
    recipe: str
    why: str
    predicted_us: float | None = None


@dataclass(frozen=True)
class PlaceNeeds:
    """What the place where the result will run demands of a candidate.

    integer_io    True where inputs and outputs must be integers too
    is_wide_slow  True where time counts and int16 has only reference kernels
    arrange       the step that arranges the memory of a microcontroller; "" elsewhere
    on            the target on which ops can be timed; "" where they cannot
    """

    integer_io: bool = False
    is_wide_slow: bool = False
    arrange: str = ""
    on: str = ""


@dataclass(frozen=True)
class FromTrials:
    """Recipes that depend on trials and times, computed on demand; None where nothing is known.

    mixtures  further recipes in mixed precision
    blocks    makes the recipe whose wider forms spare sums and normalizations; "" for other
              networks
    fastest   says which ops of a recipe had better stay float, where ops can be timed
    """

    mixtures: "Callable[[State], Iterator[Candidate]] | None" = None
    blocks: Callable[[str], str] | None = None
    fastest: Callable[[str], FastestForms | None] | None = None


@dataclass
class State:
    """What is known during the walk through the tree.

    why_fixed  why nothing can be trained; "" where training is possible
    limits     the ceilings
    records    the tried models, by name
    """

    model: Model
    minimize: str
    why_fixed: str = ""
    limits: Limits = field(default_factory=Limits)
    needs: PlaceNeeds = PlaceNeeds()
    from_trials: FromTrials = FromTrials()
    records: dict[str, TriedModel] = field(default_factory=dict[str, TriedModel])

    def fit(self, candidate: Candidate) -> Candidate:
        """Adapts inputs, outputs and memory layout of a candidate to the place."""
        if not candidate.recipe:
            return candidate
        recipe = parse(candidate.recipe)
        if self.needs.integer_io:
            recipe = tuple(map(_with_integers, recipe))
        return candidate._replace(recipe=text_of((*recipe, *parse(self.needs.arrange))))

    @property
    def tidy(self) -> str:
        """The first steps of every recipe, followed by a bar."""
        return f"{text_of(tidying(self.model, (), dense=True))} | "

    @property
    def is_small_wanted(self) -> bool:
        """True where size is minimized, or int8 exceeds the ceiling on size."""
        sizes = (self.records[name].cost("size") for name in _EIGHTS if name in self.records)
        size, most = next(sizes, None), self.limits.max_bytes
        is_above = size is not None and most is not None and size > most
        return self.minimize in _SMALL or is_above

    @property
    def is_read_bound(self) -> bool:
        """True where time counts and reading weights that are used once takes most of it."""
        if self.from_trials.fastest is None or self.minimize != "latency" or self.needs.integer_io:
            return False
        graph = before_quantize(self.model, tidying(self.model, (), dense=True)).main
        macs, layers = sum(map(op_macs, graph.ops)), layers_of(graph).values()
        read = sum(one.weight.elements for one in layers if _is_one_row(one))
        return read >= _MANY_WEIGHTS and 2 * read >= macs

    def find_fitting(self, *branches: str) -> list[TriedModel]:
        """The models of some branches within the allowed loss, whether or not they exceed a
        ceiling: a remedy for accuracy cannot help with ceilings."""
        return [r for r in self.records.values() if r.branch in branches and r.room.estimate >= 0]

    @property
    def why_settled(self) -> str:
        """Names what is under every ceiling with room to spare; "" where nothing is, or where a
        cost is to be minimized."""
        known = self.records.values() if self.limits.ceilings else ()
        for record in known:
            if record.name != FLOAT and record.status == FITS and record.has_room_to_spare:
                return phrase("{name} fits, and loses less", record.name)
        return ""

    def is_above(self, cost: str) -> bool:
        """True where int8 exceeds the ceiling on a cost, or where that cost is minimized."""
        most = self.limits.ceilings.get(cost)
        eights = (self.records[name].cost(cost) for name in _EIGHTS if name in self.records)
        size = next(eights, None)
        return self.minimize == cost or (most is not None and (size is None or size > most))

    @property
    def fastest_spare(self) -> TriedModel | None:
        """The fastest model that loses at most half of the allowed loss; None where there
        is none."""
        own = (r for r in self.records.values() if r.branch not in ("channels", FLOAT))
        spare = [r for r in own if r.p50_us and r.room.estimate >= 0 and r.has_room_to_spare]
        return min(spare, key=lambda r: r.p50_us or 0.0, default=None)

    @property
    def why_enough(self) -> str:
        """Why int8 needs no remedy: int8 fits with room to spare, or cannot win; "" where a remedy
        is needed. The held-out samples play no part, so the sentence says nothing about them."""
        ample = [r for r in self.find_fitting(*EIGHT_BITS) if r.has_room_to_spare]
        if any(verdict(r.room) == PROVEN for r in ample):
            return phrase("int8 fits with room to spare on the samples to choose by")
        if ample:
            return phrase(
                "int8 fits by its estimate on the samples to choose by, though its interval "
                "reaches beyond the budget; the held-out samples decide"
            )
        return self.why_beaten

    @property
    def why_beaten(self) -> str:
        """Names a fitting model that costs no more than a rescued int8 could; "" where there is
        none."""
        eights = (self.records[name] for name in _EIGHTS if name in self.records)
        least = min(filter(None, (one.cost(self.minimize) for one in eights)), default=None)
        for record in self.records.values():
            cost = record.cost(self.minimize)
            others = record.status == FITS and record.branch not in EIGHT_BITS
            if others and least is not None and cost is not None and cost <= least * (1 + TIE):
                return phrase("{name} fits, and costs no more than int8 would", record.name)
        return ""

    def usual(self, to: str) -> str:
        """The recipe of `quantize --to`."""
        return text_of(plan(self.model, Quantize(to=to), "default", has_data=True).recipes[0])

    def by_kernels(self, to: str) -> FastestForms | None:
        """The ops that are better left float; None where time does not count."""
        if self.from_trials.fastest is None or self.minimize != "latency" or self.needs.integer_io:
            return None
        return self.from_trials.fastest(self.usual(to))

    def eight(self, text: str) -> str:
        """A recipe for int8 in which each op has its fastest form."""
        found = self.by_kernels("int8")
        recipe = (*tidying(self.model, (), dense=True), *cures(self.model, "int8"), *parse(text))
        return text_of(apply_forms(recipe, found) if found and found.is_other else recipe)

    @property
    def eight_us(self) -> float | None:
        """The predicted time of a run of that recipe."""
        found = self.by_kernels("int8")
        return found and (found.predicted_us if found.is_other else found.integer_us)


def _is_one_row(layer: Layer) -> bool:
    """True for a dense layer that uses each weight once."""
    made = layer.op.outputs[0].elements
    return OPS[layer.op.kind].is_dense and made == layer.channels


def _with_integers(step: Step) -> Step:
    """The step with integer inputs and outputs, if it makes integers."""
    if not isinstance(step, Quantize | Qat) or not SCHEMES[step.to].is_integer or step.only:
        return step
    return replace(step, io=SCHEMES[step.to].data)


def float_candidate() -> Candidate:
    """The original model, the reference for all others."""
    return Candidate(FLOAT, FLOAT, "", phrase("what all others are compared with"))
