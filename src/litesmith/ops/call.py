"""`Call`: an operator at one place of a model, ready to compute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from litesmith.errors import CannotRun, LitesmithError
from litesmith.ir.dtype import DTYPES
from litesmith.ir.model_text import op_name
from litesmith.ir.types import Array, Op, Tensor
from litesmith.numeric import affine
from litesmith.ops.delegate import Native, Shape
from litesmith.ops.native import Loops, loops_of
from litesmith.ops.results import as_shapes, as_tuple, error_text

if TYPE_CHECKING:
    from litesmith.ops.operator import Operator

# Parameters that are no options of the op: its options as bytes, and the op itself.
RAW, OP = "raw", "op"


class Call:
    """An operator, its constants and options. Implements `Kernel`."""

    def __init__(self, operator: Operator, op: Op, *, native: bool = False) -> None:
        self.operator, self.op = operator, op
        self.name = op_name(op)
        self.settings = operator.settings(op)
        self.note = ""
        for tensor in (*op.inputs, *op.outputs):
            self._refuse_encoded(tensor)
        self.is_real = not operator.takes(OP) and any(map(_has_scale, (*op.inputs, *op.outputs)))
        self.constants = [
            None if t is None or not t.is_const else np.require(t.values(), requirements=("C", "A"))
            for t in op.inputs
        ]
        self._given = [
            None if a is None or t is None else self._seen(a, t)
            for a, t in zip(self.constants, op.inputs, strict=True)
        ]
        self.computed = [
            (place, t) for place, t in enumerate(op.inputs) if t is not None and not t.is_const
        ]
        self._wanted = [(t, np.dtype(t.dtype)) for t in op.outputs]
        self._loops = self._compiled() if native and operator.loops is not None else None

    def _refuse_encoded(self, tensor: Tensor | None) -> None:
        if tensor is None:
            return
        if DTYPES[tensor.dtype].storage != tensor.dtype or tensor.sparsity is not None:
            raise CannotRun(
                "{name}: {name2!r} is {dtype}, no plain array", self.name, tensor.name, tensor.dtype
            )
        if not self.operator.takes(OP) and tensor.quant is not None and tensor.quant.block:
            raise CannotRun(
                "{name}: {name2!r} has a scale a block; take {op} for its numbers",
                self.name,
                tensor.name,
                OP,
            )

    def _compiled(self) -> Loops | None:
        loops, self.note = loops_of(self)
        return loops

    # What the runtime asks for.

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        shapes = self._shapes(inputs)
        if self._wanted and len(shapes) != len(self._wanted):
            raise CannotRun(
                "{name} has {count} outputs, not {count2}",
                self.name,
                len(self._wanted),
                len(shapes),
            )
        if self._loops is not None:
            self._loops.set_shapes(inputs, shapes)
        return shapes

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        for array, result in zip(outputs, self.results(inputs), strict=True):
            if result.shape != array.shape:
                raise CannotRun(
                    "{name}: its function gave the shape {shape}, and its shape rule "
                    "{shape2}; shapes may depend on shapes, not on values",
                    self.name,
                    result.shape,
                    array.shape,
                )
            array[...] = result

    def native(self) -> Native | None:
        return None if self._loops is None else self._loops.native

    # The reference.

    def results(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs in the types that the model has."""
        results = self.called(inputs)
        if len(results) != len(self._wanted):
            raise CannotRun(
                "{name}: its function gave {count} arrays for {count2} outputs",
                self.name,
                len(results),
                len(self._wanted),
            )
        return [
            self._stored(result, tensor, dtype)
            for result, (tensor, dtype) in zip(results, self._wanted, strict=True)
        ]

    def on_zeros(self, shapes: Sequence[Shape]) -> tuple[Array, ...]:
        """What the function gives for zeros of these shapes."""
        zeros = [np.zeros(s, t.dtype) for s, (_, t) in zip(shapes, self.computed, strict=True)]
        with np.errstate(all="ignore"):
            return self.called(zeros)

    def called(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """What the function gives, in whatever types."""
        arguments = self._given.copy()
        for (place, tensor), array in zip(self.computed, inputs, strict=True):
            arguments[place] = self._seen(array, tensor) if self.is_real else array
        try:
            return as_tuple(self.operator.reference(*arguments, **self.settings), self.name)
        except LitesmithError:
            raise
        except Exception as error:
            raise CannotRun("{name}: {error_text}", self.name, error_text(error)) from error

    def _shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        rule = self.operator.shape
        if rule is None:
            try:
                return [result.shape for result in self.on_zeros(inputs)]
            except CannotRun as error:
                raise CannotRun(
                    "{error} (on zeros, to see the shape; give litesmith.op a shape)", error
                ) from error.__cause__
        shapes: list[Shape | None] = [None if a is None else a.shape for a in self.constants]
        for (place, _), shape in zip(self.computed, inputs, strict=True):
            shapes[place] = tuple(shape)
        options = {k: v for k, v in self.settings.items() if k not in (RAW, OP)}
        try:
            return as_shapes(rule(*shapes, **options), self.name)
        except LitesmithError:
            raise
        except Exception as error:
            raise CannotRun("{name}: shape: {error}", self.name, error_text(error)) from error

    def _seen(self, array: Array, tensor: Tensor) -> Array:
        """An input as the function sees it."""
        quant = tensor.quant
        if not self.is_real or quant is None or not quant.scale.size:
            return array
        return affine.dequantize(array, quant.scale, quant.zero_point, quant.axis)

    def _stored(self, result: Array, tensor: Tensor, dtype: np.dtype) -> Array:
        quant = tensor.quant
        if self.is_real and quant is not None and quant.scale.size:
            return affine.quantize(
                result.astype(np.float32), tensor.dtype, quant.scale, quant.zero_point, quant.axis
            )
        if result.dtype == dtype:
            return result
        if not np.can_cast(result.dtype, dtype, "same_kind"):
            raise CannotRun(
                "{name}: its function gave {dtype}, and the model has {dtype2} for "
                "{name2!r}; return result.astype({dtype3!r})",
                self.name,
                result.dtype,
                dtype,
                tensor.name,
                str(dtype),
            )
        return result.astype(dtype)


def _has_scale(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.quant is not None and tensor.quant.scale.size > 0
