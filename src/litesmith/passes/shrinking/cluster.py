"""`cluster`: the weights of a layer share few values."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from litesmith.errors import BadInput, CannotApply
from litesmith.ir.edit import consumers, rewrite, with_main
from litesmith.ir.model_text import op_name
from litesmith.ir.types import Model, Op, Tensor, frozen
from litesmith.numeric.affine import weight_scales
from litesmith.numeric.arrays import along
from litesmith.numeric.codebook import MOST_CODE, codebook, nearest
from litesmith.passes.core.layers import Layer, layers_of, shared_by
from litesmith.passes.core.schemes import Names, chosen, roles
from litesmith.passes.core.step import Change, Context, Skip
from litesmith.passes.core.weight_structure import (
    LEAST_SHARING,
    MOST_BOOK,
    Codebook,
    codebook_of,
    from_codebook,
    kept,
)
from litesmith.passes.shrinking.prune_sensitivity import picked
from litesmith.passes.shrinking.restore import restored
from litesmith.passes.tidy.fold import Fold
from litesmith.phrases import phrase
from litesmith.type_guards import is_whole
from litesmith.units import plain

_LEAST_K, _MOST_K = 2, 256

# A book of so few numbers would be most of them.
_LEAST_WEIGHTS = 64

# The number of samples behind the means.
_RESTORING = 256


@dataclass(frozen=True)
class Cluster:
    """Have the weights of each layer share few values, which a zipped file holds in few bits.

    The values lie on the int8 grid of each channel, so that `quantize(to=int8)` keeps them as they
    are. Zeros of a pruned weight stay zero, and zero is one of its values. With data, the means
    that this moves go back into the biases.

    k            values of a layer; more than 128 are never used
    own          layers with a k of their own: ["dense*:16"], each named as in `keep`
    per_channel  a scale for each output channel, or one for a weight, as `quantize` has it
    keep, only   ops to leave alone, or the only ones to change, as for `quantize`
    tune         tune the values that are shared: true, false, or where it can be done
    """

    k: int = 32
    own: tuple[str, ...] = ()
    per_channel: bool = True
    keep: Names = ()
    only: Names = ()
    tune: bool | None = None

    def apply(self, model: Model, context: Context) -> Change:
        _check_k(self.k, f"k={self.k}")
        tunes = context.may_tune("cluster", self.tune)
        named = _outputs(chosen(model.graphs, self.keep, self.only))
        own = {t: k for name, k in map(_own, self.own) for t in _outputs(_one(model, name))}
        model = Fold(float16=True).apply(model, context).model
        ops = {op for op in model.main.ops if not named.isdisjoint(op.outputs)}
        books = {op: k for op in ops if (k := next((own[t] for t in op.outputs if t in own), 0))}
        found, skipped = self._clustered(model, ops, books)
        if not found:
            why = phrase(" ({where}: {why})", skipped[0].where, skipped[0].why) if skipped else ""
            raise CannotApply("cluster: no layer of the model can be clustered{why}", why)
        result, left = _one_shot(model, {layer.weight: new for layer, new in found}, context)
        skipped += left
        touched = [_line(layer, new, self.per_channel) for layer, new in found]
        if not tunes:
            skipped += context.why_not_tuned("cluster", self.tune)
            return Change(result, tuple(touched), tuple(skipped))
        after = context.tuned(result)
        self._verify(result, after.model, [new for _, new in found])
        return Change(after.model, tuple(touched), tuple(skipped), after.notes, after.steps)

    def _clustered(
        self, model: Model, ops: set[Op], own: Mapping[Op, int]
    ) -> tuple[list[tuple[Layer, Tensor]], list[Skip]]:
        layers = layers_of(model.main)
        _refuse_quantized(layers)
        readers = consumers(model.main)
        skipped = [
            Skip(op_name(op), phrase("its weights are computed, or it has several"))
            for op in model.main.ops
            if op in ops and op not in layers and {"w", "x"} <= set(roles(op))
        ]
        found: list[tuple[Layer, Tensor]] = []
        users = shared_by([layer for op, layer in layers.items() if op in ops])
        for weight, sharing in users.items():
            k = min(own.get(layer.op, self.k) for layer in sharing)
            why = _why_not(sharing[0], k, self.per_channel)
            if len(readers[weight]) > len(sharing) or weight in model.main.outputs:
                why = phrase("its weights are used elsewhere too")
            if why:
                skipped += [Skip(op_name(layer.op), why) for layer in sharing]
            else:
                found.append((sharing[0], _shared(sharing[0], k, self.per_channel)))
        return found, skipped

    def _verify(self, model: Model, after: Model, weights: list[Tensor]) -> None:
        """Raises where tuning has lost the codes of a weight."""
        pairs = zip(layers_of(model.main).values(), layers_of(after.main).values(), strict=True)
        for before, layer in pairs:
            if before.weight not in weights:
                continue
            axis = layer.axis if self.per_channel else None
            wanted = codebook_of(before.weight.values(), axis)
            got = codebook_of(layer.weight.values(), axis)
            if wanted is not None and (got is None or got.book.size > wanted.book.size):
                raise CannotApply(
                    "cluster: {op_name} lost its codebook in tuning", op_name(layer.op)
                )


def _outputs(ops: set[Op]) -> set[Tensor]:
    return {t for op in ops for t in op.outputs}


def _one(model: Model, name: str) -> set[Op]:
    return chosen(model.graphs, (), (int(name) if is_whole(name) else name,))


def _own(text: str) -> tuple[str, int]:
    """`dense*:16` as a name and a number."""
    name, colon, number = text.rpartition(":")
    if not (colon and name and is_whole(number)):
        raise BadInput(
            "cluster(own=[{what}]): a name and its k are needed, as dense*:16", plain(text)
        )
    _check_k(int(number), f"own=[{plain(text)}]")
    return name, int(number)


def _check_k(k: int, setting: str) -> None:
    if not _LEAST_K <= k <= _MOST_K:
        raise BadInput(
            "cluster({setting}): k from {least_k} to {most_k} is needed", setting, _LEAST_K, _MOST_K
        )


def _refuse_quantized(layers: Mapping[Op, Layer]) -> None:
    for op, layer in layers.items():
        if any(t.quant is not None for t in (layer.weight, layer.data)):
            raise CannotApply(
                "cluster: {op_name} is quantized; cluster the float model, then quantize it",
                op_name(op),
            )


def _why_not(layer: Layer, k: int, per_channel: bool) -> str:
    """Why a layer's weights stay as they are; "" where they need not."""
    weight = layer.weight
    if weight.dtype != "float32" or not np.isfinite(weight.values()).all():
        return phrase("its weights are no float32 numbers, or not all of them are finite")
    if weight.elements < _LEAST_WEIGHTS:
        return phrase("it has {elements} weights, too few to gain anything", weight.elements)
    needed = len(_fixed(_numbers(layer, per_channel), weight.values()))
    if needed > k:
        return phrase(
            "{needed} values are needed for its zeros and its largest weights, more than k={k}",
            needed,
            k,
        )
    return ""


def _numbers(layer: Layer, per_channel: bool) -> np.ndarray:
    """The weights in steps of the int8 grid: the largest of each channel is at an end."""
    values = layer.weight.values()
    scales = weight_scales(values, layer.axis if per_channel else None, 8)
    return np.clip(values / along(scales, values.ndim, layer.axis), -MOST_CODE, MOST_CODE)


def _fixed(numbers: np.ndarray, values: np.ndarray) -> list[int]:
    """The codes that must be in the book: ends that a channel's scale hangs on, and zero."""
    whole = np.rint(numbers)
    is_end = np.abs(numbers - whole) < 1e-9
    fixed = [end for end in (-MOST_CODE, MOST_CODE) if (is_end & (whole == end)).any()]
    return [*fixed, 0] if kept(values) is not None else fixed


def _shared(layer: Layer, k: int, per_channel: bool) -> Tensor:
    """The weight with at most k values, which are codes times the scale of a channel."""
    values = layer.weight.values()
    axis = layer.axis if per_channel else None
    known = codebook_of(values, axis)
    if known is not None and known.book.size <= k:
        return layer.weight
    numbers = _numbers(layer, per_channel)
    k = min(k, MOST_BOOK, max(values.size // LEAST_SHARING, _LEAST_K))
    fixed = _fixed(numbers, values)
    mask = kept(values)
    counted = numbers if mask is None else numbers[mask]
    book = codebook(counted, k, fixed)
    codes = nearest(numbers, book).astype(np.uint8)
    if mask is not None:
        codes[~mask] = np.searchsorted(book, 0)
    scales = weight_scales(values, axis, 8)
    return replace(layer.weight, data=frozen(from_codebook(Codebook(codes, book, scales), axis)))


def _line(layer: Layer, weight: Tensor, per_channel: bool) -> str:
    found = codebook_of(weight.values(), layer.axis if per_channel else None)
    count = found.book.size if found is not None else np.unique(weight.values()).size
    return phrase("clustered {op_name} to {count} values", op_name(layer.op), count)


def _one_shot(
    model: Model, tensors: Mapping[Tensor, Tensor], context: Context
) -> tuple[Model, list[Skip]]:
    """The model with other weights, and the means that they moved put back where there is data."""
    if all(old is new for old, new in tensors.items()):
        return model, []
    changed = with_main(model, rewrite(model.main, tensors=tensors))
    if context.tools is None:
        return changed, []
    places = picked(context.tools, model, _RESTORING).places
    return restored(model, changed, context.tools, places, refill=False)
