"""The decision tree for microcontrollers: which recipes are tried, in which order, and why."""

from collections.abc import Callable, Iterator

from litesmith.phrases import phrase
from litesmith.search.tuning.decision_tree import BRANCHES, Branch, why_not_float, why_not_needed
from litesmith.search.tuning.search_state import Candidate, State


def _still(why_not: Callable[[State], str]) -> Callable[[State], str]:
    """The same question, asked only while nothing fits."""
    return lambda state: state.why_settled or why_not(state)


def _if_flash(state: State) -> str:
    enough = phrase("the flash is large enough for int8")
    return why_not_float(state) or ("" if state.is_above("flash") else enough)


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
    _ROWS["int16x8"]._replace(why_not=_still(why_not_needed)),
    *map(_asked_while_nothing_fits, ("ranges", "equalize", "round", "qat")),
    Branch("int4", phrase("Do 4-bit weights fit?"), _still(_if_flash), _quartered),
    Branch("encode", phrase("Do weights fit that are decoded?"), _still(_if_flash), _encoded),
    Branch("channels", phrase("Do fewer channels fit?"), _still(why_not_float), _narrowed),
)
