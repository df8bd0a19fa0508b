"""The wheel's classic interpreter, for what the compiled model cannot do.

It has the true reference kernels, strings, states and outputs whose sizes depend on values, and it
is in every version of the wheel. Values are copied on the way in and out.
"""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false
# ai_edge_litert leaves parts of its types open.

from collections.abc import Sequence
from contextlib import suppress
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from litesmith.errors import BadInput, CannotRun
from litesmith.ir.types import Array
from litesmith.phrases import phrase
from litesmith.run.core.runner import Port
from litesmith.run.core.target import Target
from litesmith.run.litert.capi import WHEEL, quiet
from litesmith.run.litert.compiled_model import one_cause


class _Detail(TypedDict):
    """What the interpreter tells of an input or an output."""

    index: int
    shape: NDArray[np.int32]
    dtype: type[np.generic]


class InterpreterRunner:
    """A model in the classic interpreter, with arrays of our own for inputs and outputs."""

    copies = True

    def __init__(
        self,
        content: bytes | memoryview,
        target: Target,
        *,
        names: tuple[Sequence[str], Sequence[str]],
        signature: str = "",
    ) -> None:
        try:
            from ai_edge_litert.interpreter import Interpreter, OpResolverType
        except ImportError:
            raise CannotRun("the runtime is not installed; pip install {wheel}", WHEEL) from None
        resolver = {
            "builtin": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            "reference": OpResolverType.BUILTIN_REF,
            "xnnpack": OpResolverType.AUTO,
        }[target.kernels]
        self._names = names
        try:
            with quiet():
                self._interpreter = Interpreter(
                    model_content=bytes(content),
                    num_threads=target.threads,
                    experimental_op_resolver_type=resolver,
                )
                self._interpreter.allocate_tensors()
                self._signature = None
                if signature:
                    self._signature = self._interpreter.get_signature_runner(signature)
        except (RuntimeError, ValueError) as error:
            cause = one_cause(str(error)) or phrase("it gives no reason")
            raise CannotRun("the model does not open on {target}: {cause}", target, cause) from None
        self._make_ports()

    def run(self) -> None:
        try:
            results = self._called() if self._signature else self._invoked()
        except (RuntimeError, ValueError) as error:
            raise CannotRun(
                "the runtime failed: {one_cause}",
                one_cause(str(error)) or phrase("it gives no reason"),
            ) from None
        if [(r.shape, r.dtype) for r in results] != [
            (p.array.shape, p.array.dtype) for p in self.outputs
        ]:
            self.outputs = tuple(
                Port(p.name, np.array(r)) for p, r in zip(self.outputs, results, strict=True)
            )
            return
        for port, result in zip(self.outputs, results, strict=True):
            port.array[...] = result

    def _invoked(self) -> list[Array]:
        for port, detail in zip(self.inputs, self._details("input"), strict=True):
            self._interpreter.set_tensor(detail["index"], port.array)
        self._interpreter.invoke()
        return [self._interpreter.get_tensor(d["index"]) for d in self._details("output")]

    def _called(self) -> list[Array]:
        assert self._signature is not None
        results = self._signature(**{port.name: port.array for port in self.inputs})
        return [results[port.name] for port in self.outputs]

    def resize(self, shapes: dict[int, tuple[int, ...]]) -> None:
        if self._signature:
            raise BadInput("inputs of a signature beside the main graph cannot be resized here")
        details = self._details("input")
        try:
            with quiet():
                for place, shape in shapes.items():
                    self._interpreter.resize_tensor_input(details[place]["index"], shape)
                self._interpreter.allocate_tensors()
        except (RuntimeError, ValueError) as error:
            self._resize_back()
            cause = one_cause(str(error)) or phrase("the runtime refuses")
            raise BadInput(
                "cannot resize to {values}: {cause}", list(shapes.values()), cause
            ) from None
        self._make_ports()

    def _resize_back(self) -> None:
        """The model as it was: a refused size would stay, and every later run would fail."""
        with quiet(), suppress(RuntimeError, ValueError):
            for port, detail in zip(self.inputs, self._details("input"), strict=True):
                self._interpreter.resize_tensor_input(detail["index"], port.array.shape)
            self._interpreter.allocate_tensors()

    def forget_states(self) -> None:
        """Sets the states that ops keep between runs back to what they are at the start."""
        self._interpreter.reset_all_variables()

    def close(self) -> None:
        del self._interpreter
        self._signature = None

    def _details(self, side: str) -> list[_Detail]:
        if self._signature:
            by_name = getattr(self._signature, f"get_{side}_details")()
            return [by_name[name] for name in self._names[side == "output"]]
        return getattr(self._interpreter, f"get_{side}_details")()

    def _make_ports(self) -> None:
        self.inputs, self.outputs = map(self._ports, ("input", "output"))

    def _ports(self, side: str) -> tuple[Port, ...]:
        try:
            details = self._details(side)
            if any(np.dtype(detail["dtype"]).kind == "V" for detail in details):
                raise ValueError  # an array type that some package of the program has brought
        except UnicodeDecodeError:
            raise CannotRun(
                "the name of an input or output is not UTF-8, which the runtime's interpreter does "
                "not take; rename it where the model is converted"
            ) from None
        except ValueError:  # of bfloat16, for one
            raise CannotRun(
                "an input or output is of a type that the runtime has no arrays for, such as "
                "bfloat16; make it float32 before the model is converted"
            ) from None
        names = self._names[side == "output"]
        return tuple(
            Port(name, np.zeros(tuple(detail["shape"]), detail["dtype"]))
            for name, detail in zip(names, details, strict=True)
        )
