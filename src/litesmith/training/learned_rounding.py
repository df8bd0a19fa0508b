"""Rounding learned by gradients, block by block, against the outputs of the float model's block.

A block is the ops between two tensors that each connect the graph by themselves. It receives the
actual outputs of the quantized blocks before it, and learns to give what the float model's block
gives for the same samples: its weights settle on codes share by share, and the weights that are
still free compensate. Labels are not used, and a block that is no better on samples kept out of the
learning stays as it was. After Li et al., BRECQ, 2021, and Zhou et al., INQ, 2017, starting from
the codes that `round` chose.

The number of samples matters most: on ResNet-8, 128 samples teach nothing that `round` does not
already know; 1,200 take a twentieth off the error of the scores.
"""

# pyright: reportUnknownMemberType=false
# torch leaves parts of its types open.

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch

from litesmith.errors import CannotApply
from litesmith.ir.dtype import DTYPES
from litesmith.ir.edit import regraph, rewrite, with_main
from litesmith.ir.model_text import op_name
from litesmith.ir.softmax_scores import scores_of
from litesmith.ir.types import Array, Graph, Model, Op, Tensor
from litesmith.numeric.affine import dequantize, ends_of
from litesmith.passes.core.layers import layers_of
from litesmith.passes.core.step import LearnedRounding, Skip, Tools
from litesmith.phrases import phrase
from litesmith.training.student import Student
from litesmith.training.weight_parameters import Rounded, Settling

# The limits of training samples, and of the bytes that the values of one block may take.
_MOST_SAMPLES, _MOST_BYTES, _LEAST_SAMPLES = 1024, 800_000_000, 16

# One sample in this many is held out to judge the result.
_HELD_OUT = 8

# Only weights of at most this many bits are learned.
_BITS = 4

# Rates of weights, in codes, and of biases.
_RATE, _BIAS_RATE = 5e-3, 2e-4


class Course(NamedTuple):
    """How long a block learns.

    layers      the number of layers of few bits in a block, where the graph can be cut behind them
    shares      the shares of the weights that are fixed to codes, stage by stage
    steps       the steps of each stage; `last_steps` for the biases alone at the end
    batch       samples a step
    """

    layers: int = 16
    shares: tuple[float, ...] = (0.0, 0.3, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98)
    steps: int = 40
    last_steps: int = 60
    batch: int = 32


_USUAL = Course()

Values = dict[str, Array]


@dataclass(frozen=True, eq=False)
class _Block:
    """Corresponding ops of the quantized model and of the float one.

    ends   the names of the outputs that should match the float model's
    later  the names of all tensors that later blocks read
    """

    ours: tuple[Op, ...]
    theirs: tuple[Op, ...]
    ends: tuple[str, ...]
    later: frozenset[str]


def learn_rounding(
    model: Model, reference: Model, tools: Tools, course: Course = _USUAL
) -> LearnedRounding:
    """The quantized model with learned codes, where its weights have few bits."""
    blocks = _blocks(model, reference, course.layers)
    ours, theirs = _samples(model, reference, tools, blocks)
    changed: dict[Tensor, Tensor] = {}
    touched: list[str] = []
    skipped: list[Skip] = []
    torch.manual_seed(0)
    for number, block in enumerate(blocks, 1):
        small, whole = _part(block.ours, block.ends), _part(block.theirs, block.ends)
        if _coarse(small):
            try:
                wanted = _run(_scoring(whole), theirs, tools)
                better = _train_block(small, whole, (ours, wanted), course)
            except (CannotApply, RuntimeError) as error:
                better = None
                name = op_name(_coarse(small)[0])
                skipped.append(Skip(name, phrase("its rounding was not learned: {error}", error)))
            if better is not None:
                changed |= better
                touched += [
                    phrase("learned the rounding of {op}", op_name(op)) for op in _coarse(small)
                ]
                small = with_main(small, rewrite(small.main, tensors=better))
        if number < len(blocks):
            ours |= _run(_part(small.main.ops, block.later), ours, tools)
            theirs |= _run(_part(block.theirs, block.later), theirs, tools)
        ours, theirs = (
            {n: v for n, v in one.items() if n in block.later} for one in (ours, theirs)
        )
    made = with_main(model, rewrite(model.main, tensors=changed)) if changed else model
    return LearnedRounding(made, tuple(touched), tuple(skipped))


# Blocks.


def _blocks(model: Model, reference: Model, layers: int) -> list[_Block]:
    """Cuts both models at the same places, which tensors of equal names mark."""
    for one in (model, reference):
        if len(one.graphs) > 1 or any(t.variable for t in one.main.tensors):
            raise CannotApply("it has inner graphs or a state; blocks cannot run apart")
    names = {t.name for t in reference.main.tensors}
    cuts = _cuts(model.main, names, layers)
    ours = _segments(model.main, cuts)
    theirs = _segments(reference.main, cuts)
    ends = [(name,) for name in cuts] + [tuple(t.name for t in model.main.outputs)]
    later, read = list[frozenset[str]](), set[str]()
    for a, b in zip(reversed(ours), reversed(theirs), strict=True):
        later.append(frozenset(read))
        read |= {t.name for op in (*a, *b) for t in op.inputs if t is not None}
    return list(map(_Block, ours, theirs, ends, reversed(later)))


def _cuts(graph: Graph, names: set[str], wanted: int) -> list[str]:
    """The tensors that alone connect everything before them with everything after, one for every
    few layers; values computed from the inputs without a layer, such as masks, do not count."""
    last = {t: place for place, op in enumerate(graph.ops) for t in op.inputs if t is not None}
    early = _from_inputs_alone(graph)
    coarse = {op for op in graph.ops if op in set(_coarse_ops(graph))}
    cuts: list[str] = []
    alive: set[Tensor] = set()
    layers = 0
    for place, op in enumerate(graph.ops[:-1]):
        layers += op in coarse
        alive |= {t for t in op.outputs if not t.is_const}
        alive = {t for t in alive if last.get(t, -1) > place}
        main = [t for t in alive if t not in early]
        if layers >= wanted and len(main) == 1 and main[0].name in names:
            cuts.append(main[0].name)
            layers = 0
    return cuts


def _from_inputs_alone(graph: Graph) -> set[Tensor]:
    """The tensors computed from the inputs without a layer, such as masks."""
    layers = layers_of(graph)
    early: set[Tensor] = set(graph.inputs)
    for op in graph.ops:
        read = [t for t in op.inputs if t is not None and not t.is_const]
        if op not in layers and all(t in early for t in read):
            early.update(op.outputs)
    return early


def _segments(graph: Graph, cuts: Sequence[str]) -> list[tuple[Op, ...]]:
    places = {t.name: place for place, op in enumerate(graph.ops) for t in op.outputs}
    ends = [places[name] + 1 for name in cuts] + [len(graph.ops)]
    starts = [0, *ends[:-1]]
    if any(a > b for a, b in zip(starts, ends, strict=True)):
        raise CannotApply("the ops of the float model stand in another order")
    return [graph.ops[a:b] for a, b in zip(starts, ends, strict=True)]


def _part(ops: Sequence[Op], names: Collection[str]) -> Model:
    """Some ops as a separate model, with the tensors of these names as outputs."""
    made = {t: None for op in ops for t in op.outputs}
    read = dict.fromkeys(t for op in ops for t in op.inputs if t is not None)
    inputs = [t for t in read if t not in made and not t.is_const and t.elements]
    outputs = [t for t in made if t.name in names]
    graph = regraph(Graph("", (), (), (), ()), ops=ops, inputs=inputs, outputs=outputs)
    return Model((graph,))


def _scoring(part: Model) -> Model:
    """The block with scores in place of probabilities, because scores are learned."""
    scores = [scores_of(part.main, t) for t in part.main.outputs]
    return with_main(part, regraph(part.main, outputs=scores))


def _coarse_ops(graph: Graph) -> list[Op]:
    """The layers whose weights have few bits, and scales under which they can be learned."""
    return [
        op
        for op, layer in layers_of(graph).items()
        if layer.weight.quant is not None
        and layer.weight.quant.block is None
        and DTYPES[layer.weight.dtype].bits <= _BITS
    ]


def _coarse(model: Model) -> list[Op]:
    return _coarse_ops(model.main)


# Values, by the names of tensors: a row for each sample.


def _samples(
    model: Model, reference: Model, tools: Tools, blocks: Sequence[_Block]
) -> tuple[Values, Values]:
    sizes = {t.name: 4 * t.elements for g in (model.main, reference.main) for t in g.tensors}
    widest = max((sum(sizes[name] for name in block.ends) for block in blocks), default=1)
    most = int(np.clip(_MOST_BYTES // max(2 * widest, 1), _LEAST_SAMPLES, _MOST_SAMPLES))
    found: list[Values] = []
    for one in (model, reference):
        rows: list[tuple[Array, ...]] = []
        for sample in tools.samples(one):
            rows.append(tuple(np.array(a) for a in sample))
            if len(rows) == most:
                break
        columns = zip(*rows, strict=True)
        found.append(
            {t.name: np.stack(column) for t, column in zip(one.main.inputs, columns, strict=True)}
        )
    return found[0], found[1]


def _run(part: Model, values: Values, tools: Tools) -> Values:
    """A block's outputs for every sample, from the runtime's own kernels."""
    names = [t.name for t in part.main.inputs]
    rows: list[list[Array]] = []
    with tools.opened(_widen_codes(part)) as run:
        for place in range(len(next(iter(values.values())))):
            results = run([values[name][place] for name in names])
            rows.append([np.array(a) for a in results])
    columns = zip(*rows, strict=True)
    return {t.name: np.stack(column) for t, column in zip(part.main.outputs, columns, strict=True)}


def _widen_codes(part: Model) -> Model:
    """Int4 weights as int8 of the same codes: kernels are faster with them."""
    stored = {
        layer.weight: replace(layer.weight, dtype="int8", data=layer.weight.values())
        for layer in layers_of(part.main).values()
        if layer.weight.dtype == "int4" and layer.unpack is None
    }
    return with_main(part, rewrite(part.main, tensors=stored)) if stored else part


# Learning.


class _Lesson:
    """A block that learns to answer as the float block does, on some samples, judged by others."""

    def __init__(self, student: Student, values: tuple[Values, Values], batch: int) -> None:
        given, wanted = values
        self._student, self._batch = student, batch
        self._inputs = [_as_torch(t, given[t.name]) for t in student.model.main.inputs]
        self._targets = [torch.from_numpy(_flat(rows)) for rows in wanted.values()]
        self._power = [max(float((t.float() ** 2).mean()), 1e-12) for t in self._targets]
        numbers = torch.arange(len(self._targets[0]))
        self._judges = numbers[numbers % _HELD_OUT == 0]
        self._learned = numbers[numbers % _HELD_OUT != 0]
        self._random = torch.Generator().manual_seed(0)

    def loss(self, places: torch.Tensor) -> torch.Tensor:
        answers = self._student([_batch(rows, places) for rows in self._inputs])
        errors = [
            ((ours - theirs[places].reshape(ours.shape)) ** 2).mean() / most
            for ours, theirs, most in zip(answers, self._targets, self._power, strict=True)
        ]
        return torch.stack(errors).sum()

    def judge(self) -> float:
        """The mean loss on the samples that nothing is learned from."""
        with torch.no_grad():
            starts = range(0, len(self._judges), self._batch)
            parts = [float(self.loss(self._judges[n : n + self._batch])) for n in starts]
        return sum(parts) / len(parts)

    def learn(self, groups: Sequence[dict[str, object]], steps: int) -> None:
        best = torch.optim.Adam(list(groups))
        for _ in range(steps):
            order = torch.randperm(len(self._learned), generator=self._random)
            best.zero_grad()
            self.loss(self._learned[order[: self._batch]]).backward()
            best.step()


def _train_block(
    small: Model, whole: Model, values: tuple[Values, Values], course: Course
) -> dict[Tensor, Tensor] | None:
    """The constants of a block after learning; None where it is no better on the held-out
    samples."""
    student = Student(small, origin=whole)
    lesson = _Lesson(student, values, course.batch)
    before = lesson.judge()
    settling = _settling_weights(student, whole)
    weights = [p for part in settling for p in part.parameters()]
    biases = [p for part in student.biases.values() for p in part.parameters()]
    codes: dict[str, object] = {"params": weights, "lr": _RATE}
    shifts: dict[str, object] = {"params": biases, "lr": _BIAS_RATE}
    for share in course.shares:
        for part in settling:
            part.settle(share)
        lesson.learn([codes, shifts], course.steps)
    for part in settling:
        part.settle(1.0)
    lesson.learn([shifts], course.last_steps if biases else 0)
    return _changed_constants(small, student.written()) if lesson.judge() < before else None


def _changed_constants(small: Model, written: Model) -> dict[Tensor, Tensor]:
    """The constants that differ after learning."""
    pairs = zip(small.main.ops, written.main.ops, strict=True)
    return {
        old: new
        for a, b in pairs
        for old, new in zip(a.inputs, b.inputs, strict=True)
        if old is not None and new is not None and old is not new and old.is_const
    }


def _settling_weights(student: Student, whole: Model) -> list[Settling]:
    """The weights of few bits, made to settle on codes; the student uses them from now on."""
    settling: list[Settling] = []
    for layer, origin in zip(student.layers, layers_of(whole.main).values(), strict=True):
        weight, quant = layer.weight, layer.weight.quant
        bits = DTYPES[weight.dtype].bits
        if quant is None or bits > _BITS or not isinstance(student.weights[weight], Rounded):
            continue
        codes, free, scales = (
            torch.from_numpy(np.array(values, np.float32))
            for values in (weight.values(), origin.weight.values(), quant.scale)
        )
        ends = ends_of(weight.values(), bits)
        settling.append(Settling(codes, free, scales, quant.axis, ends))
        student.weights[weight] = settling[-1]
    return settling


def _flat(rows: Array) -> Array:
    """Samples along the first axis, as the lifted graph has them."""
    return rows.reshape(-1, *rows.shape[2:]) if rows.ndim > 1 and rows.shape[1] == 1 else rows


def _as_torch(tensor: Tensor, rows: Array) -> torch.Tensor | Array:
    """Values in the form of a lifted graph: real numbers where the tensor stands for real
    numbers."""
    flat = _flat(rows)
    if tensor.quant is not None:
        quant = tensor.quant
        return torch.from_numpy(dequantize(flat, quant.scale, quant.zero_point).astype(np.float32))
    return torch.from_numpy(flat) if tensor.dtype == "float32" else flat


def _batch(rows: torch.Tensor | Array, places: torch.Tensor) -> torch.Tensor | Array:
    return rows[places] if isinstance(rows, torch.Tensor) else rows[places.numpy()]
