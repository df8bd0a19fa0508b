"""Weights in small numbers, while what flows between the ops stays float."""

from dataclasses import replace

import numpy as np

from litesmith.ir.dtype import DTYPES, pack
from litesmith.ir.edit import regraph
from litesmith.ir.model_text import op_name
from litesmith.ir.ops import OPS
from litesmith.ir.types import (
    Block,
    Graph,
    Model,
    Op,
    Quant,
    Record,
    Tensor,
    constant_numbers,
    frozen,
)
from litesmith.numeric.affine import weight_codes, weight_scales
from litesmith.passes.core.layers import coded_weight, half_scales
from litesmith.passes.core.schemes import Scheme, roles
from litesmith.passes.core.step import Change, Skip, on_graphs
from litesmith.phrases import phrase
from litesmith.units import plain

# Weights with fewer numbers than this gain nothing that is worth the conversion.
_LEAST = 256
_HALF_MOST = float(np.finfo(np.float16).max)


def store_weights(
    model: Model, scheme: Scheme, ops: set[Op], *, per_channel: bool, block: int
) -> Change:
    """The model with the weights of some ops stored by a scheme."""

    def edit(graph: Graph) -> tuple[Graph, list[str], list[Skip]]:
        work = _Storing(graph, scheme, per_channel, block)
        for op in graph.ops:
            work.add(op, op in ops)
        return regraph(graph, ops=work.ops), work.touched, work.skipped

    return on_graphs(model, edit)


class _Storing:
    """One graph on its way: the constants that were stored anew, and the ops so far."""

    def __init__(self, graph: Graph, scheme: Scheme, per_channel: bool, block: int) -> None:
        self._scheme, self._per_channel, self._block = scheme, per_channel, block
        self._outside = {*graph.outputs}
        self._unpacked: dict[tuple[Tensor, int | None], Tensor] = {}
        self._coded: dict[tuple[Tensor, int | None], Tensor] = {}
        self._whole: dict[Tensor, Tensor] = {}
        self.ops: list[Op] = []
        self.touched: list[str] = []
        self.skipped: list[Skip] = []

    def add(self, op: Op, is_chosen: bool) -> None:
        if is_chosen and self._picks(op):
            self._pick(op)
            return
        places = self._places(op) if is_chosen else []
        if self._is_taken_whole(op, places):
            self._store_whole(op, places)
            return
        inputs = list(op.inputs)
        version = op.version
        for place in places:
            tensor = inputs[place]
            assert tensor is not None
            why = self._why_not(op, tensor)
            if why:
                self.skipped.append(Skip(op_name(op, tensor), why))
            elif self._key(op) in OPS[op.kind].versions and len(places) == 1:
                inputs[place] = self._coded_tensor(tensor, OPS[op.kind].axis)
                version = max(version, OPS[op.kind].versions[self._key(op)])
                self.touched.append(
                    phrase("gave {op_name} {weights} weights", op_name(op), self._scheme.weights)
                )
            else:
                inputs[place] = self._float_again(tensor, OPS[op.kind].axis)
        changed = tuple(inputs) != op.inputs
        new = replace(op, inputs=tuple(inputs), version=version) if changed else op
        self.ops.append(_with_options(new) if version != op.version else new)

    def _is_taken_whole(self, op: Op, places: list[int]) -> bool:
        """True for an op with several weights whose kernel takes all of them, one scale each."""
        weights = [op.inputs[place] for place in places]
        present = [p for p, role in enumerate(roles(op)) if role == "w" and op.inputs[p]]
        is_there = self._key(op) in ("float32:int8", "float32:int4", "float32:block4")
        has_kernel = "float32:tensor8" in OPS[op.kind].versions
        is_full = op.option("kernel_type") in (None, "FULL")
        fits = is_there and has_kernel and is_full and len(places) > 1 and places == present
        return (
            fits
            and not any(map(self._why_unfit, weights))
            and sum(weight.elements for weight in weights if weight is not None) >= _LEAST
        )

    def _store_whole(self, op: Op, places: list[int]) -> None:
        inputs = list(op.inputs)
        for place in places:
            weight = inputs[place]
            assert weight is not None
            if weight not in self._whole:
                scales = weight_scales(weight.values(), None, 8)
                self._whole[weight] = coded_weight(weight, "int8", scales, 0)
            inputs[place] = self._whole[weight]
        version = max(op.version, OPS[op.kind].versions["float32:tensor8"])
        self.ops.append(_with_options(replace(op, inputs=tuple(inputs), version=version)))
        self.touched.append(phrase("gave {op_name} {weights} weights", op_name(op), "int8"))
        if self._scheme.weights != "int8":
            why = phrase("there is no {weights} kernel; int8", self._scheme.weights)
            self.skipped.append(Skip(op_name(op), why))

    def _picks(self, op: Op) -> bool:
        """True where an op picks from a constant that is large enough to be stored anew."""
        is_there = op.kind == "GATHER" and self._scheme.weights == "int8"
        return is_there and self._places(op, "x") == [0] and not self._why_not(op, op.inputs[0])

    def _pick(self, op: Op) -> None:
        """Picks from a table of integers, and makes float only of what was picked."""
        table, target = op.inputs[0], op.outputs[0]
        assert table is not None
        stored = self._coded_tensor(table, None)
        picked = replace(target, name=f"{target.name}/int8", dtype="int8", quant=stored.quant)
        version = max(op.version, OPS[op.kind].versions["int8"])
        inputs = (stored, *op.inputs[1:])
        self.ops.append(replace(op, inputs=inputs, outputs=(picked,), version=version))
        self.ops.append(
            Op("DEQUANTIZE", (picked,), (target,), version=OPS["DEQUANTIZE"].versions["int8"])
        )
        self.touched.append(phrase("{op_name} picks from int8 numbers", op_name(op)))

    def _places(self, op: Op, wanted: str = "") -> list[int]:
        """Where an op has constants that the scheme is for: weights; for float16 any numbers."""
        wanted = wanted or ("wbx" if self._scheme.weights == "float16" else "w")
        return [
            place
            for place, (tensor, role) in enumerate(zip(op.inputs, roles(op), strict=True))
            if role in wanted
            and tensor is not None
            and tensor.dtype == "float32"
            and constant_numbers(tensor) is not None
        ]

    def _key(self, op: Op) -> str:
        """The kernel that takes such weights as they are."""
        if self._scheme.unpacked:
            return ""
        return "float32:block4" if self._block else self._scheme.kernel

    def _why_unfit(self, tensor: Tensor | None) -> str:
        """Why a constant cannot be stored otherwise, however large it is."""
        assert tensor is not None
        if tensor in self._outside:
            return phrase("it is an output of the graph")
        peak = float(np.abs(tensor.values()).max(initial=0))
        if not np.isfinite(peak):
            return phrase("it holds numbers that are infinite or not numbers")
        if self._scheme.weights == "float16" and peak > _HALF_MOST:
            return phrase("it holds numbers that float16 cannot")
        return ""

    def _why_not(self, op: Op, tensor: Tensor | None) -> str:
        assert tensor is not None
        if tensor.elements < _LEAST and tensor not in self._outside:
            if tensor.elements == 1:
                return phrase("it has one number, too few to gain anything")
            return phrase("it has {elements} numbers, too few to gain anything", tensor.elements)
        why = self._why_unfit(tensor)
        if why:
            return why
        if self._block:
            if "float32:block4" not in OPS[op.kind].versions:
                return phrase("only fully connected layers have weights in blocks")
            if tensor.shape[-1] % self._block:
                return phrase(
                    "its {shape} inputs are not a multiple of {block}",
                    tensor.shape[-1],
                    self._block,
                )
        return ""

    def _coded_tensor(self, tensor: Tensor, axis: int | None) -> Tensor:
        key = tensor, axis
        if key not in self._coded:
            self._coded[key] = self._made(tensor, axis)
        return self._coded[key]

    def _made(self, tensor: Tensor, axis: int | None) -> Tensor:
        dtype = self._scheme.weights
        if dtype == "float16":
            return replace(tensor, dtype=dtype, data=frozen(tensor.values().astype(np.float16)))
        if self._block:
            return _in_blocks(tensor, self._block)
        by_channel = axis is not None and self._per_channel and len(tensor.shape) > axis
        scales = weight_scales(tensor.values(), axis if by_channel else None, DTYPES[dtype].bits)
        return coded_weight(tensor, dtype, scales, axis or 0)

    def _float_again(self, tensor: Tensor, axis: int | None) -> Tensor:
        """What an op makes of the stored constant, once for all that read it."""
        key = tensor, axis
        if key not in self._unpacked:
            stored = self._coded_tensor(tensor, axis)
            stored = replace(stored, name=f"{tensor.name}/{stored.dtype}")
            target = replace(tensor, data=None)
            version = OPS["DEQUANTIZE"].versions.get(stored.dtype, 1)
            self.ops.append(Op("DEQUANTIZE", (stored,), (target,), version=version))
            self._unpacked[key] = target
            self.touched.append(
                phrase("stored {name!r} as {dtype}", plain(tensor.name), stored.dtype)
            )
        return self._unpacked[key]


def _in_blocks(tensor: Tensor, block: int) -> Tensor:
    """An int4 weight with a scale, in float16, for each so many inputs of a channel."""
    rows = tensor.values().reshape(-1, block)
    scales = half_scales(weight_scales(rows, 0, 4))
    codes = weight_codes(rows, scales, 0, 4)
    shape = (*tensor.shape[:-1], tensor.shape[-1] // block)
    held = Tensor(f"{tensor.name}/scales", shape, "float16", frozen(scales.reshape(shape)))
    details = Record("BlockwiseQuantization").set(block_size=block)
    empty = np.zeros(0, np.float32), np.zeros(0, np.int64)
    quant = Quant(*empty, 0, Block(held, None, details))
    return replace(tensor, dtype="int4", data=pack(codes, "int4"), quant=quant)


def _with_options(op: Op) -> Op:
    """A kernel that quantizes its data as it runs may give them a zero point, which is finer."""
    name = "asymmetric_quantize_inputs"
    if op.options is not None and name in op.options:
        return replace(op, options=op.options.set(**{name: True}))
    return op
