"""`masks`: numbers such as −10000 that hide places from attention are cut to what suffices.

A softmax gives a place that lies 17 below the highest of its row no share that float32 could add to
the others. So a mask may end where it brings every score that far down, and the results stay as
they are; but a range that reaches to −10000 leaves int8 no steps for the scores themselves.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, isfinite
from typing import NamedTuple

import numpy as np

from litesmith.blocks.attention import Attention, attentions
from litesmith.blocks.wiring import Wiring, data_of, scalar
from litesmith.ir.edit import with_ops
from litesmith.ir.model_text import op_name
from litesmith.ir.types import Array, Model, Op, Tensor, constant_numbers, frozen
from litesmith.numeric.ranges import Seen
from litesmith.passes.core.step import Change, Context, Skip
from litesmith.passes.quantizing.attention_range import lowest_peaks
from litesmith.phrases import phrase
from litesmith.units import number_text

# e to the −17th is less than half a step of float32 at 1.
_NOTHING = 17.0

# Other data may have scores this many times as far apart as the samples.
_HEADROOM = 1.5

# A mask that ends nearer than this many times what suffices is left as it is.
_WORTH = 2.0

_NO_DATA = phrase("how far a mask may be cut is seen from scores; give data")
_UNKNOWN = phrase("its mask is no constant, and no product of integers with one")


class _Mask(NamedTuple):
    """An op that hides places: the scores it hides them in, the input it hides them with, and the
    input of the softmax behind it."""

    op: Op
    scores: Tensor
    place: int
    softmax: Tensor

    @property
    def hidden(self) -> Tensor:
        found = self.op.inputs[self.place]
        assert found is not None
        return found

    @property
    def sign(self) -> int:
        """−1 where the number is taken off the scores."""
        return -1 if self.op.kind == "SUB" else 1


@dataclass(frozen=True)
class Masks:
    """Cut the numbers that hide places from attention to what suffices for a softmax."""

    def apply(self, model: Model, context: Context) -> Change:
        wiring = Wiring.of(model.main)
        found = [mask for one in attentions(wiring) for mask in _masks(wiring, one)]
        if not found:
            return Change(model)
        if context.tools is None:
            return Change(model, skipped=(Skip(op_name(found[0].op), _NO_DATA),))
        computed = [m.hidden for m in found if not m.hidden.is_const]
        wanted = list(dict.fromkeys([*(m.scores for m in found), *computed]))
        seen = context.tools.observe(model, wanted, frozenset({"range"}))
        peaks = lowest_peaks(model, [m.softmax for m in found], context.tools.observe)
        work = _Cutting(wiring, peaks)
        for some in _by_hidden(found).values():
            work.cut(some, seen)
        return work.change(model)


def _masks(wiring: Wiring, one: Attention) -> Iterator[_Mask]:
    """The masks of an attention: sums with computed or constant numbers, and choices of one."""
    for op in one.masks:
        if op.kind == "MINIMUM":
            continue
        places = range(1, 3) if op.kind.startswith("SELECT") else range(2)
        leading = [place for place in places if _is_scores(wiring, one, op.inputs[place])]
        others = [place for place in places if place not in leading]
        scores = op.inputs[leading[0]] if leading else None
        if len(leading) == 1 and others and scores is not None and op.inputs[others[0]]:
            assert one.softmax.inputs[0] is not None
            yield _Mask(op, scores, others[0], one.softmax.inputs[0])


def _is_scores(wiring: Wiring, one: Attention, tensor: Tensor | None) -> bool:
    while tensor is not None and not tensor.is_const:
        op = wiring.maker(tensor)
        if op is None or op is one.scores:
            return op is not None
        between = {*one.masks, *one.scaling}
        given = [t for t in data_of(op) if op in between]
        leading = [t for t in given if wiring.maker(t) in {*between, one.scores}]
        tensor = leading[0] if leading else None
    return False


def _by_hidden(found: Sequence[_Mask]) -> dict[Tensor, list[_Mask]]:
    """Masks grouped by the tensor that hides, which attention after attention may share."""
    grouped: dict[Tensor, list[_Mask]] = {}
    for mask in found:
        grouped.setdefault(mask.hidden, []).append(mask)
    return grouped


class _Cutting:
    """The edits of a graph: constants in the place of others, and new ops before some."""

    def __init__(self, wiring: Wiring, peaks: Mapping[Tensor, float]) -> None:
        self._wiring, self._peaks = wiring, peaks
        self._replaced: dict[Op, Op] = {}
        self._touched: list[str] = []
        self._skipped: list[Skip] = []

    def cut(self, masks: Sequence[_Mask], seen: Mapping[Tensor, Seen]) -> None:
        """Cuts a tensor for all the masks that add it."""
        spans = [seen[mask.scores] for mask in masks]
        peaks = [self._peaks[mask.softmax] for mask in masks if mask.softmax in self._peaks]
        if len(peaks) < len(masks) or any(s.spoiled or not s.samples for s in spans):
            return
        highs = [float(span.high) for span in spans]
        reach = max(high - peak for high, peak in zip(highs, peaks, strict=True))
        end = float(-ceil(_NOTHING + _HEADROOM * max(reach, 0.0)))
        sign, hidden = masks[0].sign, masks[0].hidden
        if any(mask.op.kind.startswith("SELECT") for mask in masks):
            end += min(peaks)  # it stands in the place of a score
        lowest = _lowest(hidden, seen, sign)
        if lowest >= _WORTH * end or any(mask.sign != sign for mask in masks):
            return
        if hidden.is_const:
            self._cut_constant(masks, sign * end)
        elif not self._cut_factor(masks, sign * end):
            self._skipped.append(Skip(op_name(masks[0].op), _UNKNOWN))
            return
        told = number_text(lowest) if isfinite(lowest) else "-inf"
        self._touched += [
            phrase(
                "cut the mask of {op_name} from {lowest} to {end}",
                op_name(mask.op),
                told,
                number_text(end),
            )
            for mask in masks
        ]

    def _cut_constant(self, masks: Sequence[_Mask], end: float) -> None:
        hidden = masks[0].hidden
        made = _constant(hidden, _cut(hidden.values(), end))
        for mask in masks:
            self._put(mask.op, mask.place, made)

    def _cut_factor(self, masks: Sequence[_Mask], end: float) -> bool:
        """Cuts the factor that makes 0 and 1 a mask, where nothing else reads the product."""
        source = self._wiring.origin(masks[0].hidden)
        product = None if source is None else self._wiring.makers.get(source)
        if source is None or product is None or product.kind != "MUL":
            return False
        places = [n for n, t in enumerate(product.inputs) if scalar(t) is not None]
        users = set(self._wiring.users(source))
        if len(places) != 1 or source in self._wiring.graph.outputs:
            return False
        if not users <= {mask.op for mask in masks} or not self._is_yes_or_no(product):
            return False
        factor = product.inputs[places[0]]
        assert factor is not None
        size = np.sign(factor.values()) * abs(end)
        self._put(product, places[0], _constant(factor, size))
        return True

    def _is_yes_or_no(self, product: Op) -> bool:
        """True where the factor comes from integers, or from a comparison."""
        op = self._wiring.makers.get(data_of(product)[0]) if data_of(product) else None
        for _ in range(8):
            if op is None or not data_of(op):
                return False
            if op.kind == "CAST":
                return True
            if op.kind not in ("RESHAPE", "SUB", "ADD", "TRANSPOSE", "EXPAND_DIMS", "SQUEEZE"):
                return False
            op = self._wiring.makers.get(data_of(op)[0])
        return False

    def _put(self, op: Op, place: int, tensor: Tensor) -> None:
        now = self._replaced.get(op, op)
        inputs = (*now.inputs[:place], tensor, *now.inputs[place + 1 :])
        self._replaced[op] = replace(now, inputs=inputs)

    def change(self, model: Model) -> Change:
        made = with_ops(model, self._replaced) if self._touched else model
        return Change(made, tuple(self._touched), tuple(self._skipped))


def _lowest(hidden: Tensor, seen: Mapping[Tensor, Seen], sign: int) -> float:
    """The lowest number that is added to a score."""
    values = constant_numbers(hidden)
    if values is not None:
        return float((sign * values.astype(np.float64)).min(initial=0.0))
    span = seen[hidden]
    if span.spoiled:
        return -np.inf
    return float(span.low) if sign > 0 else -float(span.high)


def _cut(values: Array, end: float) -> Array:
    return np.maximum(values, end) if end < 0 else np.minimum(values, end)


def _constant(like: Tensor, values: Array) -> Tensor:
    return replace(like, data=frozen(values.astype(np.float32).reshape(like.shape)))
