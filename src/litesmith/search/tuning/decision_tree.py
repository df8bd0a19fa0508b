"""The decision tree: which recipes are tried, in which order, and why."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import NamedTuple

from litesmith.blocks.structure import structure_of
from litesmith.calibration.quantize_effort import cures, plan, tidying, with_slow_kinds
from litesmith.evidence.tune_record import FITS, FLOAT, SET_ASIDE
from litesmith.ir.ops import OPS, op_macs
from litesmith.ir.types import Model
from litesmith.passes.core.layers import Layer, layers_of
from litesmith.passes.core.recipe import is_float, parse, text_of
from litesmith.passes.core.schemes import SCHEMES
from litesmith.passes.core.step import Step
from litesmith.passes.quantizing.integer_graph import computes_in_float
from litesmith.passes.quantizing.qat import Qat
from litesmith.passes.quantizing.quantize import Quantize
from litesmith.passes.quantizing.round import Round
from litesmith.passes.shrinking.prune import Prune
from litesmith.phrases import phrase
from litesmith.precision.fastest_forms import FastestForms, before_quantize, with_forms
from litesmith.search.trial.budget import PROVEN, Limits, verdict
from litesmith.search.trial.tried_model import TIE, TriedModel
from litesmith.units import time_text

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


@dataclass
class State:
    """What is known during the walk through the tree.

    records       the tried models, by name
    why_fixed     why nothing can be trained; "" where training is possible
    mixtures      further recipes in mixed precision, computed on demand
    blocks        makes the recipe whose wider forms spare sums and normalizations; "" for other
                  networks
    fastest       says which ops of a recipe had better stay float, where ops can be timed
    integer_io    True where inputs and outputs must be integers too
    is_wide_slow  True where time counts and int16 has only reference kernels
    limits        the ceilings
    arrange       the step that arranges the memory of a microcontroller; "" elsewhere
    on            the target on which ops can be timed; "" where they cannot
    """

    model: Model
    minimize: str
    why_fixed: str = ""
    mixtures: "Callable[[State], Iterator[Candidate]] | None" = None
    blocks: Callable[[str], str] | None = None
    fastest: Callable[[str], FastestForms | None] | None = None
    limits: Limits = field(default_factory=Limits)
    records: dict[str, TriedModel] = field(default_factory=dict[str, TriedModel])
    integer_io: bool = False
    is_wide_slow: bool = False
    arrange: str = ""
    on: str = ""

    def fit(self, candidate: Candidate) -> Candidate:
        """Adapts inputs, outputs and memory layout of a candidate to the place."""
        if not candidate.recipe:
            return candidate
        recipe = parse(candidate.recipe)
        if self.integer_io:
            recipe = tuple(map(_with_integers, recipe))
        return candidate._replace(recipe=text_of((*recipe, *parse(self.arrange))))

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
        if self.fastest is None or self.minimize != "latency" or self.integer_io:
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

    def by_kernels(self, to: str) -> FastestForms | None:
        """The ops that are better left float; None where time does not count."""
        if self.fastest is None or self.minimize != "latency" or self.integer_io:
            return None
        return self.fastest(_usual(self, to))

    def eight(self, text: str) -> str:
        """A recipe for int8 in which each op has its fastest form."""
        found = self.by_kernels("int8")
        recipe = (*tidying(self.model, (), dense=True), *cures(self.model, "int8"), *parse(text))
        return text_of(with_forms(recipe, found) if found and found.is_other else recipe)

    @property
    def eight_us(self) -> float | None:
        """The predicted time of a run of that recipe."""
        found = self.by_kernels("int8")
        return found and (found.predicted_us if found.is_other else found.integer_us)


def _is_one_row(layer: Layer) -> bool:
    """True for a dense layer that uses each weight once."""
    made = layer.op.outputs[0].elements
    return OPS[layer.op.kind].is_dense and made == layer.channels


class Branch(NamedTuple):
    """A part of the tree: a question, and the candidates that may answer it.

    why_not  says why the branch proposes nothing; "" where it proposes something
    """

    name: str
    question: str
    why_not: Callable[[State], str]
    candidates: Callable[[State], Iterator[Candidate]]


def _with_integers(step: Step) -> Step:
    """The step with integer inputs and outputs, if it makes integers."""
    if not isinstance(step, Quantize | Qat) or not SCHEMES[step.to].is_integer or step.only:
        return step
    return replace(step, io=SCHEMES[step.to].data)


def _usual(state: State, to: str) -> str:
    """The recipe of `quantize --to`."""
    return text_of(plan(state.model, Quantize(to=to), "default", has_data=True).recipes[0])


def _always(state: State) -> str:
    return ""


def _if_float(state: State) -> str:
    return "" if computes_in_float(state.model) else phrase("the model is quantized already")


def _if_wide_pays(state: State) -> str:
    vain = phrase("the runtime's int16 kernels are many times slower than float")
    return _if_float(state) or (vain if state.is_wide_slow else "")


def _if_int8_misses(state: State) -> str:
    return _if_float(state) or state.why_enough


def _if_blocks_are_ruined(state: State) -> str:
    other = phrase("the model is no transformer and no recurrent network")
    is_one = state.blocks is not None and structure_of(state.model).is_sequential
    return _if_int8_misses(state) or ("" if is_one else other)


def _if_trainable(state: State) -> str:
    is_enough = phrase("int8 fits without") if state.find_fitting(*EIGHT_BITS) else ""
    return _if_float(state) or is_enough or state.why_beaten or state.why_fixed


def _if_four_bits_pay(state: State) -> str:
    other = phrase("{minimize} is to be small, not the file", state.minimize)
    return _if_float(state) or ("" if state.is_small_wanted or state.is_read_bound else other)


def _cleaned(state: State) -> Iterator[Candidate]:
    why = phrase("removes what does nothing, folds constants, fuses what a kernel does at once")
    yield Candidate("cleaned", "clean-up", text_of(tidying(state.model, ())), why)
    if not is_float(state.model):
        why = phrase("makes integers of an old kind those that today's kernels are made for")
        yield Candidate("upgraded", "clean-up", f"{state.tidy}upgrade", why)


def _one(branch: str, why: str) -> Callable[[State], Iterator[Candidate]]:
    def candidates(state: State) -> Iterator[Candidate]:
        yield Candidate(branch, branch, _usual(state, branch), why)

    return candidates


def _fastest(branch: str, why: str) -> Callable[[State], Iterator[Candidate]]:
    """Proposes a scheme throughout, and with those ops in float that are faster in float."""

    def candidates(state: State) -> Iterator[Candidate]:
        usual, found = _usual(state, branch), state.by_kernels(branch)
        if not found or not found.is_other:
            yield Candidate(branch, branch, usual, why, found and found.integer_us)
        else:
            recipe = text_of(with_forms(parse(usual), found))
            told = phrase(
                "in integers throughout a run would take {time}, and in float {time2}",
                time_text(found.integer_us),
                time_text(found.float_us),
            )
            yield Candidate(f"{branch}-fastest", branch, recipe, told, found.predicted_us)
        if found and (other := found.by_kind) is not None:
            recipe = text_of(with_forms(parse(usual), other))
            told = phrase("only kinds of ops that are slower in integers stay float")
            yield Candidate(f"{branch}-by-kind", branch, recipe, told, other.predicted_us)

    return candidates


def _until_it_fits(
    branch: str, texts: dict[str, str], why: str
) -> Callable[[State], Iterator[Candidate]]:
    def candidates(state: State) -> Iterator[Candidate]:
        equalized = state.records.get("int8-equalized")
        is_vain = equalized is not None and equalized.status == SET_ASIDE  # nothing was uneven
        for name, text in texts.items():
            if not state.why_enough and not (is_vain and text.startswith("equalize")):
                yield Candidate(name, branch, state.eight(text), why, state.eight_us)

    return candidates


def _by_blocks(state: State) -> Iterator[Candidate]:
    recipe = state.blocks(_usual(state, "int8")) if state.blocks is not None else ""
    if recipe:
        why = phrase("normalizations, sums between blocks and recurrent state stay float")
        yield Candidate("int8-blocks", "blocks", recipe, why)


def _mixed(state: State) -> Iterator[Candidate]:
    return state.mixtures(state) if state.mixtures is not None else iter(())


def _trained(state: State) -> Iterator[Candidate]:
    why = phrase("training under the rounding wins back what int8 loses")
    yield Candidate("int8-trained", "qat", state.eight("qat"), why, state.eight_us)


def _small(state: State) -> Iterator[Candidate]:
    why = phrase("weights of 4 bits take half the room of 8")
    if not state.is_small_wanted:
        why = phrase("weights of 4 bits are read in half the time of 8, and each is used once")
    on_cpu = not state.integer_io and not state.arrange
    step = Quantize(to="w4a8")
    integer = plan(state.model, step, "default", has_data=True, on_cpu=on_cpu)
    if state.fastest is not None and on_cpu:
        integer = with_slow_kinds(state.model, integer)
    recipe = integer.recipes[0]
    yield Candidate("int4-w4a8", "int4", text_of(recipe), why)
    yield Candidate("int4-dynamic", "int4", _usual(state, "dynamic-int4"), why)
    if state.is_small_wanted and not state.why_fixed:
        learned = tuple(map(_with_learning, recipe))
        told = phrase("codes of 4 bits learned on unlabelled samples, block by block")
        yield Candidate("int4-learned", "int4", text_of(learned), told)
        front = takewhile(lambda step: not isinstance(step, Quantize), learned)
        yield Candidate("int4-trained", "int4", text_of((*front, Qat(to="w4a8"))), why)


def _with_learning(step: Step) -> Step:
    return replace(step, learn=True) if isinstance(step, Round) else step


def _packed(branch: str, texts: dict[str, str]) -> Callable[[State], Iterator[Candidate]]:
    """Proposes weights that compress well for a download, with training where it is possible."""
    why = phrase("zeros and repeated weights vanish in a compressed download")

    def candidates(state: State) -> Iterator[Candidate]:
        for name, text in texts.items():
            if not state.why_fixed:
                yield Candidate(name, branch, f"{state.tidy}{text} | qat", why)
            else:
                fixed = text.replace(")", ", tune=false)")
                yield Candidate(name, branch, f"{state.tidy}{fixed} | quantize | correct", why)

    return candidates


# The largest speed-up for which channels are removed.
_MOST_SPEEDUP = 3.0

# A margin: a quantized model gains a little less speed than its float model.
_SAFELY = 1.05


def _if_too_slow(state: State) -> str:
    if why := _if_float(state):
        return why
    if state.limits.max_latency_us is None or not state.on:
        return phrase("no time is asked for that channels could be removed for")
    if any(r.status == FITS for r in state.records.values()):
        return phrase("a model is fast enough with all its channels")
    base = state.fastest_spare
    if base is None:
        return phrase("nothing has accuracy to spare that could be given for time")
    if (base.p50_us or 0.0) > _MOST_SPEEDUP * state.limits.max_latency_us:
        return phrase("the time asked for is out of reach: {name} misses it by far", base.name)
    return ""


def _fewer_channels(state: State) -> Iterator[Candidate]:
    """Proposes the fastest model with accuracy to spare, with enough channels removed to meet the
    time."""
    base = state.fastest_spare
    if base is None or not base.p50_us or not state.limits.max_latency_us:
        return
    speedup = round(max(base.p50_us / state.limits.max_latency_us * _SAFELY, 1.05), 2)
    tune = False if state.why_fixed else None
    step = Prune(block="channels", speedup=speedup, on=state.on, tune=tune)
    recipe = list(parse(base.recipe))
    places = [n for n, one in enumerate(recipe) if isinstance(one, Quantize | Qat)]
    recipe.insert(places[0] if places else len(recipe), step)
    why = phrase("channels go where they cost least for the time that they save")
    yield Candidate(f"channels-{base.name}", "channels", text_of(tuple(recipe)), why)


def _if_download(state: State) -> str:
    other = phrase("only a compressed download gains by it")
    return _if_float(state) or ("" if state.minimize == "download" else other)


BRANCHES = (
    Branch("clean-up", phrase("Does the float model without waste fit?"), _always, _cleaned),
    Branch(
        "float16",
        phrase("Do float16 weights fit?"),
        _if_float,
        _one("float16", phrase("half the size, and hardly any loss")),
    ),
    Branch(
        "dynamic",
        phrase("Do 8-bit weights with float data fit?"),
        _if_float,
        _fastest("dynamic", phrase("a quarter of the size, with no look at the data's ranges")),
    ),
    Branch(
        "int8",
        phrase("Does int8 throughout fit?"),
        _if_float,
        _fastest("int8", phrase("a quarter of the size; its trial tells whether it is faster")),
    ),
    Branch(
        "int16x8",
        phrase("Does int16 data with 8-bit weights fit?"),
        _if_wide_pays,
        _one("int16x8", phrase("the accuracy of float with weights of 8 bits")),
    ),
    Branch(
        "blocks",
        phrase("Do sums and normalizations in float save int8?"),
        _if_blocks_are_ruined,
        _by_blocks,
    ),
    Branch(
        "ranges",
        phrase("Do other ranges save int8?"),
        _if_int8_misses,
        _until_it_fits(
            "ranges",
            {
                "int8-percentile": "quantize(ranges=percentile) | correct",
                "int8-mse": "quantize(ranges=mse) | correct",
            },
            phrase("a few outliers may have taken the codes from all others"),
        ),
    ),
    Branch(
        "equalize",
        phrase("Does evening out the channels save it?"),
        _if_int8_misses,
        _until_it_fits(
            "equalize",
            {"int8-equalized": "equalize | quantize | correct"},
            phrase("channels of very different ranges share one scale"),
        ),
    ),
    Branch(
        "round",
        phrase("Does rounding that looks at the data save it?"),
        _if_int8_misses,
        _until_it_fits(
            "round",
            {
                "int8-rounded": "quantize | round(samples=64)",
                "int8-equalized-rounded": "equalize | quantize | round(samples=64)",
            },
            phrase("errors of a layer's weights are made to cancel"),
        ),
    ),
    Branch("mixed", phrase("Does int8 with some ops in float fit?"), _if_int8_misses, _mixed),
    Branch("qat", phrase("Does training save int8?"), _if_trainable, _trained),
    Branch(
        "channels",
        phrase("Is a model with fewer channels fast enough?"),
        _if_too_slow,
        _fewer_channels,
    ),
    Branch("int4", phrase("Do 4-bit weights fit?"), _if_four_bits_pay, _small),
    Branch(
        "cluster",
        phrase("Do few different weights fit?"),
        _if_download,
        _packed("cluster", {"clustered": "cluster(k=32)"}),
    ),
    Branch(
        "prune",
        phrase("Do weights fit of which half are zero?"),
        _if_download,
        _packed(
            "prune",
            {
                "pruned": "prune(sparsity=0.5)",
                "pruned-clustered": "prune(sparsity=0.5) | cluster(k=16)",
            },
        ),
    ),
)


def _still(why_not: Callable[[State], str]) -> Callable[[State], str]:
    """The same question, asked only while nothing fits."""
    return lambda state: state.why_settled or why_not(state)


def _if_flash(state: State) -> str:
    enough = phrase("the flash is large enough for int8")
    return _if_float(state) or ("" if state.is_above("flash") else enough)


def _quartered(state: State) -> Iterator[Candidate]:
    why = phrase("weights of 4 bits take half the room of 8")
    yield Candidate("int4", "int4", f"{state.tidy}quantize{_FOUR_BITS} | round", why)
    if not state.why_fixed:
        yield Candidate("int4-trained", "int4", f"{state.tidy}qat{_FOUR_BITS}", why)


# Fully connected layers keep 8 bits: the kernels take one scale for all of a layer's 4-bit weights.
_FOUR_BITS = "(to=w4a8, keep=[FULLY_CONNECTED]) | quantize"


def _encoded(state: State) -> Iterator[Candidate]:
    """Proposes weights that the kernels decode, the least lossy first."""
    why = phrase("few different weights, or many zeros, are decoded when a layer needs them")
    texts = {
        "clustered-32": "cluster(k=32)",
        "pruned-60": "prune(sparsity=0.6)",
        "clustered-16": "cluster(k=16)",
        "pruned-75": "prune(sparsity=0.75)",
    }
    for name, text in texts.items():
        if not state.why_settled:
            yield Candidate(name, "encode", f"{_trained_or_not(state, text)} | encode", why)


def _narrowed(state: State) -> Iterator[Candidate]:
    """Proposes fewer and fewer channels while the loss is within the budget."""
    why = phrase("fewer channels take less of everything")
    for share in (25, 40, 55, 70):
        last = state.records.get(f"channels-{share - 15}")
        if state.why_settled or (last is not None and last.room.estimate < 0):
            return
        text = f"prune(sparsity={share / 100}, block=channels)"
        name = f"channels-{share}"
        yield Candidate(name, "channels", _trained_or_not(state, text), why)
        if state.is_above("flash") and not state.why_settled:
            recipe = _trained_or_not(state, text, _FOUR_BITS)
            yield Candidate(f"{name}-int4", "channels", recipe, why)


def _trained_or_not(state: State, text: str, integers: str = "") -> str:
    """A step that shrinks weights, followed by integers, with training where it is possible."""
    if not state.why_fixed:
        return f"{state.tidy}{text} | qat{integers}"
    shrunk = f"{state.tidy}{text.replace(')', ', tune=false)')}"
    return f"{shrunk} | quantize{integers} | {'round' if integers else 'correct'}"


_ROWS = {branch.name: branch for branch in BRANCHES}


def _asked_while_nothing_fits(name: str) -> Branch:
    row = _ROWS[name]
    return row._replace(why_not=_still(row.why_not))


# For microcontrollers, in the order of what is lost: the same outputs in rearranged memory, then 8
# bits with their remedies, then smaller weights, then a smaller network.
MICRO_BRANCHES = (
    _ROWS["clean-up"]._replace(question=phrase("Does the model fit, its memory arranged?")),
    _asked_while_nothing_fits("int8"),
    _ROWS["int16x8"]._replace(why_not=_still(_if_int8_misses)),
    *map(_asked_while_nothing_fits, ("ranges", "equalize", "round", "qat")),
    Branch("int4", phrase("Do 4-bit weights fit?"), _still(_if_flash), _quartered),
    Branch("encode", phrase("Do weights fit that are decoded?"), _still(_if_flash), _encoded),
    Branch("channels", phrase("Do fewer channels fit?"), _still(_if_float), _narrowed),
)


def foresee(branches: Sequence[Branch], state: State) -> Iterator[Candidate]:
    """The candidates of these branches, in order, as far as they depend on nothing that is still
    unknown. Mixtures depend on earlier trials, and forms of blocks on the ranges of tensors."""
    for branch in branches:
        if branch.candidates not in (_by_blocks, _mixed) and not branch.why_not(state):
            yield from map(state.fit, branch.candidates(state))


def float_candidate() -> Candidate:
    """The original model, the reference for all others."""
    return Candidate(FLOAT, FLOAT, "", phrase("what all others are compared with"))
