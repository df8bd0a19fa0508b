"""A torch module or an exported program as a `SourceModel`: ATen's operators, mapped directly.

`torch.export` tells the calls of a module with whole layers still in it: a convolution, a linear
layer, attention, an LSTM are one call each. Those that `aten/` has a row for are kept whole; what
it has none for is taken apart by torch's own decompositions, and parameters and buffers stay views
on torch's memory.

The other way, through an .onnx file by torch's exporter, was tried on five networks and left: it
needs three more packages (onnx, onnx_ir, onnxscript), takes one and a half to three times as long,
writes the weights a second time, and loses what LiteRT has an op for: a linear layer of rank 3
becomes a product with turned weights and a sum, an embedding a gather that must mind negative
numbers. The older exporter by TorchScript is deprecated. Keras goes the same way, as a module.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeArgument=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false
# torch leaves parts of its types open.

import logging
import operator
import warnings
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind, TensorArgument
from torch.fx import Node as Step
from torch.fx.node import map_aggregate
from torch.utils import _pytree as trees

from litesmith.conversion.aten.call import Argument, Call, NotWritten, Ref, Writer
from litesmith.conversion.aten.operators import row_of
from litesmith.conversion.aten.refused import BRANCH
from litesmith.conversion.core.source import Node, Setting, SourceGraph, SourceModel, Value
from litesmith.conversion.proof import Inputs, Run
from litesmith.errors import BadInput, CannotRun
from litesmith.ir.types import Array
from litesmith.phrases import phrase

# The opset whose meaning the written nodes have.
OPSET = 23

# Operators that check known facts and produce nothing.
_CHECKS = ("_assert", "sym_constrain", "_assert_async", "_assert_tensor_metadata", "_assert_scalar")

# Operators that call graphs of their own.
_BRANCHES = ("cond", "scan", "while_loop")

_TYPES = ("float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")


class TorchSource(NamedTuple):
    """A source, and the function that runs it: the outputs by name, with further requested values.

    example  the inputs with which it was exported, as far as they are known
    """

    model: SourceModel
    run: Run
    example: Inputs


def read_module(module: torch.nn.Module, example: object) -> TorchSource:
    """A module, as it runs on the example inputs: a tensor, a tuple, or a dictionary by name."""
    return read_program(exported(module, example))


def exported(module: torch.nn.Module, example: object) -> ExportedProgram:
    """The module's calls on example inputs, for inference; its mode is left as it was."""
    positional, named = _example(example)
    with _evaluating(module), torch.no_grad(), _silence():
        try:
            return torch.export.export(module, positional, named, strict=False)
        except Exception as error:
            raise BadInput(
                "torch.export cannot follow the module: {why}; LiteRT needs calls that do not "
                "depend on values (torch.where)",
                _first_line(error),
            ) from error


def read_program(
    program: ExportedProgram, sizes: Mapping[str, Sequence[int]] | None = None
) -> TorchSource:
    """Reads an exported program; free sizes are fixed, as given or as in its example."""
    with _silence(), torch.no_grad():
        fixed = _fixed(program, sizes or {})
        try:
            plain = fixed.run_decompositions(_table())
        except Exception as error:
            raise BadInput(
                "torch cannot take the program apart: {why}", _first_line(error)
            ) from error
    reading = _Reading(plain)
    return TorchSource(reading.model(), reading.run, reading.example())


def _example(example: object) -> tuple[tuple[object, ...], dict[str, object]]:
    if isinstance(example, Mapping):
        given = cast("Mapping[str, object]", example)
        return (), {name: _tensors(value) for name, value in given.items()}
    if isinstance(example, tuple | list):
        return tuple(_tensors(v) for v in cast("Sequence[object]", example)), {}
    return (_tensors(example),), {}


def _tensors(value: object) -> object:
    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value


@contextmanager
def _evaluating(module: torch.nn.Module) -> Generator[None]:
    modes = {part: part.training for part in module.modules()}
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes.items():
            part.training = mode


@contextmanager
def _silence() -> Generator[None]:
    """Silences torch's own messages: errors become one line."""
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__


def _table() -> dict[Any, Any]:
    """Torch's decompositions for operators without a row."""
    return {
        op: made
        for op, made in torch.export.default_decompositions().items()
        if not isinstance(op, OpOverload) or row_of(op._opname, op._overloadname) is None
    }


def _fixed(program: ExportedProgram, sizes: Mapping[str, Sequence[int]]) -> ExportedProgram:
    """The program at one size."""
    values = [
        (step.name, step.meta["val"])
        for step in program.graph.nodes
        if step.op == "placeholder" and step.name in program.graph_signature.user_inputs
    ]
    tensors = [(name, v) for name, v in values if isinstance(v, torch.Tensor)]
    free = [name for name, v in tensors if any(not isinstance(d, int) for d in _sizes(v))]
    told = [n for n, v in tensors if n in sizes and tuple(sizes[n]) != tuple(v.shape)]
    if not free and not told:
        return program
    if told and told[0] not in free:
        raise BadInput(
            "input {name!r} has fixed sizes in this program; export it again with others", told[0]
        )
    flat = [
        torch.zeros(sizes.get(name) or [_hint(d) for d in _sizes(v)], dtype=v.dtype)
        if isinstance(v, torch.Tensor)
        else v
        for name, v in values
    ]
    spec = cast(trees.TreeSpec, program.call_spec.in_spec)
    args, kwargs = trees.tree_unflatten(flat, spec)
    return torch.export.export(program.module(check_guards=False), args, kwargs, strict=False)


def _hint(size: object) -> int:
    """The size in the example that the program was made with."""
    if isinstance(size, int):
        return size
    found = getattr(getattr(size, "node", None), "hint", None)
    return found if isinstance(found, int) else 1


@dataclass(eq=False)
class _Reading:
    """A program on its way: the values by torch's steps."""

    program: ExportedProgram
    writer: Writer = field(default_factory=Writer)
    names: dict[Step, str] = field(default_factory=dict[Step, str])
    inputs: list[Value] = field(default_factory=list[Value])
    notes: list[str] = field(default_factory=list[str])
    tensors: dict[Step, torch.Tensor] = field(default_factory=dict[Step, torch.Tensor])
    outputs: dict[str, int] = field(default_factory=dict[str, int])  # places among all results

    def model(self) -> SourceModel:
        steps = list(self.program.graph.nodes)
        self._name_inputs(steps)
        outputs = self._name_outputs(steps[-1])
        for step in steps:
            if step.op == "call_function":
                self._read(step)
        for name, step in outputs:
            if self.names[step] != name:
                self.writer.nodes.append(Node("Identity", (self.names[step],), (name,)))
        graph = SourceGraph(
            "main",
            tuple(self.writer.nodes),
            tuple(self.inputs),
            tuple(Value(name, *_kind(step.meta["val"])) for name, step in outputs),
            self.writer.constants,
        )
        return SourceModel(graph, OPSET, f"torch {torch.__version__}", tuple(self.notes))

    def run(self, samples: Sequence[Inputs], more: Sequence[str]) -> list[dict[str, Array]]:
        """Torch's own results for inputs: the outputs, and other values by name."""
        return [self._run(inputs, more) for inputs in samples]

    def _run(self, inputs: Inputs, more: Sequence[str]) -> dict[str, Array]:
        kept = _Kept(self.program.graph_module, {s: n for s, n in self.names.items() if n in more})
        given: list[object] = []
        for step in self.program.graph.nodes:
            if step.op == "placeholder":
                name = self.names.get(step, "")
                value = step.meta.get("val")
                if name in inputs and isinstance(value, torch.Tensor):
                    array = np.ascontiguousarray(inputs[name])
                    wide = cast(torch.dtype, _whole(value.dtype))
                    given.append(torch.from_numpy(array).to(wide))
                else:
                    given.append(_whole(self.tensors.get(step, value)))
        with torch.no_grad(), _silence():
            try:
                made = cast("Sequence[torch.Tensor]", kept.run(*given))
            except Exception as error:
                raise CannotRun(
                    "torch cannot run the program on made inputs: {why}; give samples with --data",
                    _first_line(error),
                ) from error
        return kept.values | {name: _array(made[place]) for name, place in self.outputs.items()}

    def example(self) -> dict[str, Array]:
        """The inputs that the program was exported with."""
        given = trees.tree_leaves(self.program.example_inputs)
        names = [self.names.get(s) for s in self.program.graph.nodes if self._is_given(s)]
        if len(given) != len(names):
            return {}
        return {
            name: _array(value)
            for name, value in zip(names, given, strict=True)
            if name and isinstance(value, torch.Tensor)
        }

    def _is_given(self, step: Step) -> bool:
        return step.op == "placeholder" and step.name in self.program.graph_signature.user_inputs

    def _name_inputs(self, steps: Sequence[Step]) -> None:
        specs = {spec.arg.name: spec for spec in self.program.graph_signature.input_specs}
        tensors = {**self.program.constants, **self.program.state_dict}
        for step in steps:
            if step.op == "placeholder":
                spec = specs[step.name]
                if spec.kind is InputKind.USER_INPUT:
                    self._input(step)
                    continue
                tensor = tensors.get(str(spec.target))
                if isinstance(tensor, torch.Tensor):
                    self._constant(step, str(spec.target), tensor)

    def _input(self, step: Step) -> None:
        value = step.meta.get("val")
        if not isinstance(value, torch.Tensor):
            return  # a number or nothing: the calls have it in them
        dtype, sizes = _kind(value)
        if dtype not in _TYPES:
            raise BadInput(
                "input {name!r} is {dtype}; LiteRT computes in float32: call module.float() "
                "and give float32 inputs",
                step.name,
                dtype,
            )
        self.names[step] = self.writer.fresh(step.name)
        self.inputs.append(Value(self.names[step], dtype, sizes))

    def _constant(self, step: Step, name: str, tensor: torch.Tensor) -> None:
        self.tensors[step] = tensor
        self.names[step] = self.writer.fresh(name)
        self.writer.constants[self.names[step]] = _array(tensor)

    def _name_outputs(self, last: Step) -> list[tuple[str, Step]]:
        """The outputs by name; a step that makes one has its name from the start."""
        specs = self.program.graph_signature.output_specs
        made = list(zip(cast("Sequence[Step]", last.args[0]), specs, strict=True))
        for _, spec in made:
            if spec.kind is OutputKind.BUFFER_MUTATION:
                self.notes.append(
                    phrase("{name} changes while it runs; here each call starts anew", spec.target)
                )
        told = [
            (place, step, spec.arg)
            for place, (step, spec) in enumerate(made)
            if spec.kind is OutputKind.USER_OUTPUT
        ]
        found: list[tuple[str, Step]] = []
        stems = _output_names(self.program, len(told))
        for stem, (place, step, kind) in zip(stems, told, strict=True):
            if not isinstance(kind, TensorArgument):
                continue
            name = self.writer.fresh(stem)
            if step.op == "call_function" and step not in self.names:
                self.names[step] = name
            self.outputs[name] = place
            found.append((name, step))
        return found

    def _read(self, step: Step) -> None:
        target = step.target
        if target is operator.getitem or (not step.users and _is_check(target)):
            return
        if isinstance(step.meta.get("val"), torch.SymInt | torch.SymBool | torch.SymFloat):
            return  # a number about sizes, which calls have in them or cannot use
        if _title(target) == "with_effects":
            return  # a check around another call
        outputs, made = self._made(step)
        place, count = _place(step), len(self.writer.nodes)
        why = str(BRANCH) if _title(target) in _BRANCHES else ""
        row = None
        if isinstance(target, OpOverload) and target.namespace == "aten":
            row = row_of(target._opname, target._overloadname)
        if row is not None:
            arguments = self._arguments(step, cast(OpOverload, target))
            try:
                row(Call(self.writer, str(target), place, arguments, outputs, made))
                return
            except (NotWritten, IndexError, KeyError, ValueError) as error:
                del self.writer.nodes[count:]
                why = error.args[0] if isinstance(error, NotWritten) else str(error)
        names = tuple(self.names[s] for s in step.all_input_nodes if s in self.names)
        kind = str(target) if isinstance(target, OpOverload) else _title(target)
        settings: dict[str, Setting] = {"why": why} if why else {}
        self.writer.nodes.append(Node(kind, names, outputs, settings, place, "torch"))

    def _made(self, step: Step) -> tuple[tuple[str, ...], tuple[Ref, ...]]:
        """The names of a step's outputs, "" for those that nobody reads, and their types and
        shapes."""
        value = step.meta.get("val")
        if not isinstance(value, tuple | list):
            self.names.setdefault(step, "")
            name = self.names[step] or self.writer.fresh(step.name)
            self.names[step] = name
            return (name,), (Ref(name, *_fixed_kind(value)),)
        readers: dict[int, Step] = {}
        for user in step.users:
            if user.target is operator.getitem:
                place = cast(int, user.args[1])
                first = readers.setdefault(place, user)
                named = self.names.get(first) or self.names.get(user) or ""
                self.names[first] = self.names[user] = named or self.writer.fresh(first.name)
        names = tuple(self.names[readers[i]] if i in readers else "" for i in range(len(value)))
        return names, tuple(Ref(n, *_fixed_kind(v)) for n, v in zip(names, value, strict=True))

    def _arguments(self, step: Step, target: OpOverload) -> dict[str, Argument]:
        """The arguments by the schema's names, those left out as the schema has them."""
        found: dict[str, Argument] = {}
        for place, argument in enumerate(target._schema.arguments):
            if place < len(step.args) and not argument.kwarg_only:
                value = step.args[place]
            elif argument.name in step.kwargs:
                value = step.kwargs[argument.name]
            else:
                value = argument.default_value if argument.has_default_value() else None
            found[argument.name] = self._argument(value)
        return found

    def _argument(self, value: object) -> Argument:
        if isinstance(value, Step):
            made = value.meta.get("val")
            if isinstance(made, torch.Tensor) and value in self.names:
                return Ref(self.names[value], *_fixed_kind(made))
            return str(value)
        if isinstance(value, list | tuple):
            return tuple(self._argument(v) for v in cast("Sequence[object]", value))
        if isinstance(value, torch.dtype):
            return str(value).removeprefix("torch.")
        return value if isinstance(value, int | float | str) else None


_HALVES = (torch.float16, torch.bfloat16)


def _whole(value: object) -> object:
    """Half precision as LiteRT computes it: a tensor, or the type that a call asks for."""
    if isinstance(value, torch.Tensor):
        return value.float() if value.dtype in _HALVES else value
    return torch.float32 if value in _HALVES else value


class _Kept(torch.fx.Interpreter):
    """A run in float32 that keeps some values on the way."""

    def __init__(self, module: torch.fx.GraphModule, names: Mapping[Step, str]) -> None:
        super().__init__(module)
        self.names, self.values = names, dict[str, Array]()

    def call_function(self, target: Any, args: Any, kwargs: Any) -> object:
        args, kwargs = (map_aggregate(part, cast(Any, _whole)) for part in (args, kwargs))
        return super().call_function(target, args, kwargs)

    def run_node(self, n: Step) -> object:
        made = super().run_node(n)
        if n in self.names and isinstance(made, torch.Tensor):
            self.values[self.names[n]] = _array(made)
        return made


def _is_check(target: object) -> bool:
    name = getattr(target, "_opname", getattr(target, "__name__", ""))
    return str(name).startswith(_CHECKS)


def _title(target: object) -> str:
    return str(getattr(target, "__name__", target))


def _kind(value: torch.Tensor) -> tuple[str, tuple[int | str, ...]]:
    sizes = tuple(d if isinstance(d, int) else str(d) for d in _sizes(value))
    return str(value.dtype).removeprefix("torch."), sizes


def _sizes(value: torch.Tensor) -> tuple[object, ...]:
    """Numbers, or torch's symbols for sizes that are free."""
    return tuple(cast("Sequence[object]", value.shape))


def _fixed_kind(value: object) -> tuple[tuple[int, ...], str]:
    """Sizes and type; a size that depends on values counts as 0."""
    if not isinstance(value, torch.Tensor):
        return (), "int64"
    sizes = tuple(d if isinstance(d, int) else 0 for d in _sizes(value))
    return sizes, str(value.dtype).removeprefix("torch.")


def _array(tensor: torch.Tensor) -> Array:
    """The tensor's values, on its own memory where numpy has the type."""
    plain = tensor.detach().cpu()
    if plain.dtype is torch.bfloat16:
        plain = plain.float()
    return plain.numpy()


def _place(step: Step) -> str:
    """The place of a call in messages: the module, and the call in it."""
    stack = step.meta.get("nn_module_stack")
    if not stack:
        return step.name
    path = str(list(stack.values())[-1][0])
    return f"{path}.{step.name}" if path else step.name


def _output_names(program: ExportedProgram, count: int) -> list[str]:
    """The keys of a dictionary or the fields of a result; `output` for one alone."""
    spec = program.call_spec.out_spec
    if spec is None or spec.num_leaves != count:
        return [f"output_{i}" for i in range(count)]
    found: list[str] = []
    for path, _ in trees.tree_flatten_with_path(trees.tree_unflatten(list(range(count)), spec))[0]:
        keys = [str(getattr(k, "key", getattr(k, "name", getattr(k, "idx", k)))) for k in path]
        name = "_".join(keys)
        found.append(f"output_{name}" if not name or name[0].isdigit() else name)
    return ["output"] if found in (["output_"], ["output_0"]) else found
