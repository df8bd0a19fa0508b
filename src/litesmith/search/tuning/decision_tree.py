"""The decision tree: which recipes are tried, in which order, and why."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import NamedTuple

from litesmith.blocks.structure import structure_of
from litesmith.calibration.quantize_effort import plan, tidying, with_slow_kinds
from litesmith.evidence.tune_record import FITS, SET_ASIDE
from litesmith.passes.core.recipe import is_float, parse, text_of
from litesmith.passes.core.step import Step
from litesmith.passes.quantizing.integer_graph import computes_in_float
from litesmith.passes.quantizing.qat import Qat
from litesmith.passes.quantizing.quantize import Quantize
from litesmith.passes.quantizing.round import Round
from litesmith.passes.shrinking.prune import Prune
from litesmith.phrases import phrase
from litesmith.precision.fastest_forms import apply_forms
from litesmith.search.tuning.search_state import EIGHT_BITS, Candidate, State
from litesmith.units import time_text


class Branch(NamedTuple):
    """A part of the tree: a question, and the candidates that may answer it.

    why_not  says why the branch proposes nothing; "" where it proposes something
    """

    name: str
    question: str
    why_not: Callable[[State], str]
    candidates: Callable[[State], Iterator[Candidate]]


def _always(state: State) -> str:
    return ""


def why_not_float(state: State) -> str:
    return "" if computes_in_float(state.model) else phrase("the model is quantized already")


def _if_wide_pays(state: State) -> str:
    vain = phrase("the runtime's int16 kernels are many times slower than float")
    return why_not_float(state) or (vain if state.needs.is_wide_slow else "")


def why_not_needed(state: State) -> str:
    return why_not_float(state) or state.why_enough


def _if_blocks_are_ruined(state: State) -> str:
    other = phrase("the model is no transformer and no recurrent network")
    is_one = state.from_trials.blocks is not None and structure_of(state.model).is_sequential
    return why_not_needed(state) or ("" if is_one else other)


def _if_trainable(state: State) -> str:
    is_enough = phrase("int8 fits without") if state.find_fitting(*EIGHT_BITS) else ""
    return why_not_float(state) or is_enough or state.why_beaten or state.why_fixed


def _if_four_bits_pay(state: State) -> str:
    other = phrase("{minimize} is to be small, not the file", state.minimize)
    return why_not_float(state) or ("" if state.is_small_wanted or state.is_read_bound else other)


def _cleaned(state: State) -> Iterator[Candidate]:
    why = phrase("removes what does nothing, folds constants, fuses what a kernel does at once")
    yield Candidate("cleaned", "clean-up", text_of(tidying(state.model, ())), why)
    if not is_float(state.model):
        why = phrase("makes integers of an old kind those that today's kernels are made for")
        yield Candidate("upgraded", "clean-up", f"{state.tidy}upgrade", why)


def _one(branch: str, why: str) -> Callable[[State], Iterator[Candidate]]:
    def candidates(state: State) -> Iterator[Candidate]:
        yield Candidate(branch, branch, state.usual(branch), why)

    return candidates


def _fastest(branch: str, why: str) -> Callable[[State], Iterator[Candidate]]:
    """Proposes a scheme throughout, and with those ops in float that are faster in float."""

    def candidates(state: State) -> Iterator[Candidate]:
        usual, found = state.usual(branch), state.by_kernels(branch)
        if not found or not found.is_other:
            yield Candidate(branch, branch, usual, why, found and found.integer_us)
        else:
            recipe = text_of(apply_forms(parse(usual), found))
            told = phrase(
                "in integers throughout a run would take {time}, and in float {time2}",
                time_text(found.integer_us),
                time_text(found.float_us),
            )
            yield Candidate(f"{branch}-fastest", branch, recipe, told, found.predicted_us)
        if found and (other := found.by_kind) is not None:
            recipe = text_of(apply_forms(parse(usual), other))
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
    by_blocks = state.from_trials.blocks
    recipe = by_blocks(state.usual("int8")) if by_blocks is not None else ""
    if recipe:
        why = phrase("normalizations, sums between blocks and recurrent state stay float")
        yield Candidate("int8-blocks", "blocks", recipe, why)


def _mixed(state: State) -> Iterator[Candidate]:
    return state.from_trials.mixtures(state) if state.from_trials.mixtures is not None else iter(())


def _trained(state: State) -> Iterator[Candidate]:
    why = phrase("training under the rounding wins back what int8 loses")
    yield Candidate("int8-trained", "qat", state.eight("qat"), why, state.eight_us)


def _small(state: State) -> Iterator[Candidate]:
    why = phrase("weights of 4 bits take half the room of 8")
    if not state.is_small_wanted:
        why = phrase("weights of 4 bits are read in half the time of 8, and each is used once")
    on_cpu = not state.needs.integer_io and not state.needs.arrange
    step = Quantize(to="w4a8")
    integer = plan(state.model, step, "default", has_data=True, on_cpu=on_cpu)
    if state.from_trials.fastest is not None and on_cpu:
        integer = with_slow_kinds(state.model, integer)
    recipe = integer.recipes[0]
    yield Candidate("int4-w4a8", "int4", text_of(recipe), why)
    yield Candidate("int4-dynamic", "int4", state.usual("dynamic-int4"), why)
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
    if why := why_not_float(state):
        return why
    if state.limits.max_latency_us is None or not state.needs.on:
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
    step = Prune(block="channels", speedup=speedup, on=state.needs.on, tune=tune)
    recipe = list(parse(base.recipe))
    places = [n for n, one in enumerate(recipe) if isinstance(one, Quantize | Qat)]
    recipe.insert(places[0] if places else len(recipe), step)
    why = phrase("channels go where they cost least for the time that they save")
    yield Candidate(f"channels-{base.name}", "channels", text_of(tuple(recipe)), why)


def _if_download(state: State) -> str:
    other = phrase("only a compressed download gains by it")
    return why_not_float(state) or ("" if state.minimize == "download" else other)


BRANCHES = (
    Branch("clean-up", phrase("Does the float model without waste fit?"), _always, _cleaned),
    Branch(
        "float16",
        phrase("Do float16 weights fit?"),
        why_not_float,
        _one("float16", phrase("half the size, and hardly any loss")),
    ),
    Branch(
        "dynamic",
        phrase("Do 8-bit weights with float data fit?"),
        why_not_float,
        _fastest("dynamic", phrase("a quarter of the size, with no look at the data's ranges")),
    ),
    Branch(
        "int8",
        phrase("Does int8 throughout fit?"),
        why_not_float,
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
        why_not_needed,
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
        why_not_needed,
        _until_it_fits(
            "equalize",
            {"int8-equalized": "equalize | quantize | correct"},
            phrase("channels of very different ranges share one scale"),
        ),
    ),
    Branch(
        "round",
        phrase("Does rounding that looks at the data save it?"),
        why_not_needed,
        _until_it_fits(
            "round",
            {
                "int8-rounded": "quantize | round(samples=64)",
                "int8-equalized-rounded": "equalize | quantize | round(samples=64)",
            },
            phrase("errors of a layer's weights are made to cancel"),
        ),
    ),
    Branch("mixed", phrase("Does int8 with some ops in float fit?"), why_not_needed, _mixed),
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


def foresee(branches: Sequence[Branch], state: State) -> Iterator[Candidate]:
    """The candidates of these branches, in order, as far as they depend on nothing that is still
    unknown. Mixtures depend on earlier trials, and forms of blocks on the ranges of tensors."""
    for branch in branches:
        if branch.candidates not in (_by_blocks, _mixed) and not branch.why_not(state):
            yield from map(state.fit, branch.candidates(state))
