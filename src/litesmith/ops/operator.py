"""`Operator`: a custom op by its name, with numpy as its meaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import Parameter, signature
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from litesmith.errors import CannotRun
from litesmith.ir.build import Builder
from litesmith.ir.types import Array, Op, Quant, Tensor
from litesmith.ops.call import OP, RAW, Call
from litesmith.ops.delegate import Shape
from litesmith.ops.flexbuffer import Option, decode, encode

Reference = Callable[..., "Array | tuple[Array, ...]"]
ShapeRule = Callable[..., "Shape | tuple[Shape, ...]"]


@dataclass(eq=False)
class Operator:
    """A custom op. Calling it calls its function, which is what it means.

    Parameters that can be given by place are inputs, those by name only are options. Numpy's
    results go into the types that the model has, where they are of the same sort. On tensors with
    a scale the function sees real numbers, and its results are quantized; one with a parameter
    `op`, which is the `litesmith.Op`, sees the stored integers instead.

    name       of the op in models
    reference  the function
    shape      output shapes from input shapes and options; None: the function is called on zeros
    dtype      types of the outputs; "": as the function gives them
    loops      the same for numba to compile; see `native`
    """

    name: str
    reference: Reference
    shape: ShapeRule | None = None
    dtype: str = ""
    loops: Callable[..., None] | None = None

    def __call__(self, *arrays: Array | None, **options: Option) -> Array | tuple[Array, ...]:
        return self.reference(*arrays, **options)

    def native(self, loops: Callable[..., None]) -> Callable[..., None]:
        """Names a function of the inputs, then the outputs, which it fills, for numba to compile.

        Parameters that follow are options by name, or `scales` and `zero_points`: of every tensor
        in order, 1.0 and 0 where it has none. A function with these computes on stored integers.
        """
        self.loops = loops
        return loops

    def add(
        self,
        builder: Builder,
        *inputs: Tensor | ArrayLike | None,
        name: str = "",
        quant: Quant | None = None,
        **options: Option,
    ) -> Tensor:
        """Adds a call to a model that is being built; its first output.

        >>> import litesmith
        >>> @litesmith.op("Scaled")
        ... def scaled(x, *, by=2.0):
        ...     return x * by
        >>> b = litesmith.Builder()
        >>> model = b.model(scaled.add(b, b.input("x", (1, 3)), by=3.0))
        >>> with litesmith.Session(model) as session:
        ...     session.inputs["x"] = [[1, 2, 3]]
        ...     session.run()
        ...     print(*session.outputs.values())
        [[3. 6. 9.]]
        >>> litesmith.ops.unregister("Scaled")
        """
        tensors = tuple(
            t if isinstance(t, Tensor) or t is None else builder.const(t) for t in inputs
        )
        rest = {"custom_options": encode(options)} if options else {}
        op = Op("CUSTOM", tensors, (), custom=self.name, rest=MappingProxyType(rest))
        shapes, dtypes = self.results_of(op, quant)
        stem = name or f"{self.name}_{len(builder.ops)}"
        outputs = tuple(
            Tensor(stem if place == 0 else f"{stem}:{place}", shape, dtype, quant=quant)
            for place, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=True))
        )
        builder.ops.append(replace(op, outputs=outputs))
        return outputs[0]

    def results_of(self, op: Op, quant: Quant | None = None) -> tuple[Sequence[Shape], list[str]]:
        """Shapes and types of the outputs of a call in a model."""
        call = Call(self, op)
        shapes = [t.shape for t in op.inputs if t is not None and not t.is_const]
        first = next((t.dtype for t in op.inputs if t is not None), "float32")
        if self.dtype:
            dtypes = self.dtype.split()
        elif self.shape is not None or quant is not None:
            dtypes = [first]
        else:
            dtypes = [str(np.asarray(r).dtype) for r in call.on_zeros(shapes)]
        found = call.shapes(shapes)
        return found, dtypes + dtypes[-1:] * (len(found) - len(dtypes))

    def settings(self, op: Op) -> dict[str, object]:
        """What the function is to be given by name for this call."""
        stored = op.rest.get("custom_options")
        raw = stored if isinstance(stored, bytes) else np.array(() if stored is None else stored)
        raw = bytes(raw)
        given: dict[str, object] = {RAW: raw} if self.takes(RAW) else {**decode(raw)}
        if self.takes(OP):
            given[OP] = op
        self._refuse_misfit(given, len(op.inputs))
        return given

    def takes(self, word: str) -> bool:
        return word in self._by_name

    def takes_inputs(self, count: int) -> bool:
        """True where the function can be called with so many arrays."""
        try:
            signature(self.reference).bind_partial(*[None] * count)
        except TypeError:
            return False
        needed = [
            p
            for p in signature(self.reference).parameters.values()
            if p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
            and p.default is Parameter.empty
        ]
        return len(needed) <= count

    @cached_property
    def _by_name(self) -> Mapping[str, Parameter]:
        parameters = signature(self.reference).parameters
        return {n: p for n, p in parameters.items() if p.kind is Parameter.KEYWORD_ONLY}

    def _refuse_misfit(self, given: Mapping[str, object], inputs: int) -> None:
        """Raises where the function cannot be called so."""
        parameters = signature(self.reference).parameters.values()
        open_ended = any(p.kind is Parameter.VAR_KEYWORD for p in parameters)
        for name in given:
            if name not in self._by_name and not open_ended:
                raise CannotRun(
                    "op {name!r} has the option {name2!r} in the model, and its function "
                    "has no parameter of that name; add it behind *, or take them all as "
                    "{raw}",
                    self.name,
                    name,
                    RAW,
                )
        for name, parameter in self._by_name.items():
            if parameter.default is Parameter.empty and name not in given:
                raise CannotRun("op {name!r} has no option {name2!r} in the model", self.name, name)
        try:
            signature(self.reference).bind(*[None] * inputs, **given)
        except TypeError as error:
            raise CannotRun(
                "op {name!r} has {inputs} inputs in the model: {error}", self.name, inputs, error
            ) from None
