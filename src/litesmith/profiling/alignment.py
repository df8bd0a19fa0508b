"""Which op of a graph each event of the profiler belongs to.

A builtin kernel reports the number of its op. XNNPACK reports only what it ran, in the order of the
ops it took; it leaves out what it fused and adds helpers of its own, so its events are aligned with
the ops by kind.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from litesmith.ir.edit import consumers
from litesmith.ir.ops import kinds_where
from litesmith.ir.types import Graph, Op, Tensor
from litesmith.phrases import phrase
from litesmith.run.rules.rule_row import partitions

# The types of the runtime's events: a builtin kernel, an op inside XNNPACK, the end of a graph.
BUILTIN, INSIDE, END = 2, 8, 32

# XNNPACK's name of an operator, up to the bracket -> the kinds of op that it can stand for.
TAGS: dict[str, tuple[str, ...]] = {
    "Abs": ("ABS",),
    "Add": ("ADD", "ADD_N"),
    "ApproxGELU": ("GELU",),
    "ArgMax Pooling": ("CUSTOM",),
    "Average Pooling": ("AVERAGE_POOL_2D", "MEAN"),
    "Bankders Rounding": ("ROUND",),  # the runtime's own spelling
    "Batch Matrix Multiply": ("BATCH_MATMUL", "FULLY_CONNECTED"),
    "Ceiling": ("CEIL",),
    "Clamp": ("RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1"),
    "Constant Pad": ("PAD", "PADV2"),
    "Convert": ("QUANTIZE", "DEQUANTIZE", "CAST"),
    "Convolution": ("CONV_2D", "DEPTHWISE_CONV_2D"),
    "Copy": (
        *("ASSIGN_VARIABLE", "CONCATENATION", "EXPAND_DIMS", "PACK", "READ_VARIABLE", "RESHAPE"),
        *("SLICE", "SPLIT", "SQUEEZE", "STRIDED_SLICE", "UNPACK"),
    ),
    "Cosine": ("COS",),
    "Deconvolution": ("TRANSPOSE_CONV", "CUSTOM"),
    "Depth To Space": ("DEPTH_TO_SPACE",),
    "Divide": ("DIV",),
    "Dynamic Fully Connected": ("FULLY_CONNECTED", "BATCH_MATMUL"),
    "ELU": ("ELU",),
    "Exp": ("EXP",),
    "Floor": ("FLOOR",),
    "Fully Connected": ("FULLY_CONNECTED", "CONV_2D", "BATCH_MATMUL"),
    "Fuse Dims": ("RESHAPE",),
    "GELU": ("GELU",),
    "HardSwish": ("HARD_SWISH",),
    "LeakyReLU": ("LEAKY_RELU",),
    "Log": ("LOG",),
    "Max Pooling": ("MAX_POOL_2D",),
    "Maximum": ("MAXIMUM",),
    "Mean": ("MEAN",),
    "Minimum": ("MINIMUM",),
    "Modulus": ("FLOOR_MOD",),
    "Multiply": ("MUL",),
    "Negate": ("NEG",),
    "PReLU": ("PRELU",),
    "Power": ("POW",),
    "Reciprocal Square Root": ("RSQRT",),
    "Reduce Max": ("REDUCE_MAX",),
    "Reduce Min": ("REDUCE_MIN",),
    "Resize Bilinear": ("RESIZE_BILINEAR",),
    "RoPE": ("CUSTOM", "STABLEHLO_COMPOSITE"),
    "Sigmoid": ("LOGISTIC",),
    "Sign": ("SIGN",),
    "Sine": ("SIN",),
    "Slice": ("SLICE", "STRIDED_SLICE", "SPLIT", "UNPACK"),
    "Softmax": ("SOFTMAX",),
    "Space To Depth": ("SPACE_TO_DEPTH",),
    "Split Dims": ("RESHAPE",),
    "Square": ("SQUARE",),
    "Square Root": ("SQRT",),
    "Squared Difference": ("SQUARED_DIFFERENCE",),
    "Static Expand Dims": ("EXPAND_DIMS", "RESHAPE"),
    "Static Reshape": ("RESHAPE", "SQUEEZE", "EXPAND_DIMS"),
    "Subtract": ("SUB",),
    "Sum": ("SUM",),
    "TanH": ("TANH",),
    "Transpose": ("TRANSPOSE",),
    "Unpooling": ("CUSTOM",),
}

# XNNPACK's own helpers, and the op that each serves: the one after (+1) or before (−1). A fully
# connected op gets a reshape, a dynamically quantized one a conversion of its input; an activation
# that a kernel cannot apply itself becomes a clamp behind it.
HELPERS = {
    "Clamp": -1,
    "Constant Pad": 1,
    "Convert": 1,
    "Copy": -1,
    "Fuse Dims": 1,
    "Split Dims": -1,
    "Static Expand Dims": 1,
    "Static Reshape": 1,
    "Transpose": 1,
}

# Kinds of op that may vanish into a neighbour: into their readers, or into their writer.
FUSED_FORWARD = kinds_where(lambda row: row.moves_data or row.converts) | frozenset(
    {"CONCATENATION", "PACK", "READ_VARIABLE", "SPLIT", "VAR_HANDLE"}
)
FUSED_BACKWARD = kinds_where(lambda row: row.clamps is not None) | frozenset({"ASSIGN_VARIABLE"})

# Costs of the steps of an alignment. A matching kind is free; a mismatch is expensive, but less so
# than an op without an event next to an event without an op.
_AGAIN, _EXPECTED, _MISFIT, _UNEXPECTED = 0.5, 1.0, 4.0, 10.0
_SKIP_EVENT, _FIT, _SKIP_OP, _REPEAT = range(4)  # among equal costs, the first is taken


@dataclass(frozen=True)
class Mark:
    """What identifies an event: its type, the index that it reports, its tag."""

    type: int
    index: int
    tag: str


def align(graph: Graph, marks: Sequence[Mark]) -> list[int | None]:
    """For each event of one pass through a graph, the index of its op; None where none fits."""
    found: list[int | None] = [None] * len(marks)
    builtin: set[int] = set()
    for place, mark in enumerate(marks):
        if mark.type == BUILTIN and mark.index < len(graph.ops):
            found[place] = mark.index
            builtin.add(mark.index)
    inside = _partitions_of_events(marks)
    taken = partitions(graph, [index not in builtin for index in range(len(graph.ops))])
    spare = unused(graph)
    if len(inside) != len(taken):  # partitions without an event: all events against all ops
        inside = [[place for places in inside for place in places]]
        taken = [[index for indices in taken for index in indices]]
    for places, indices in zip(inside, taken, strict=True):
        tags = [marks[place].tag for place in places]
        ops = [graph.ops[index] for index in indices]
        skips = [0.0 if index in spare else _cost_of_absence(graph.ops[index]) for index in indices]
        for place, choice in zip(places, align_tags(tags, ops, skips), strict=True):
            found[place] = None if choice is None else indices[choice]
    return found


def _partitions_of_events(marks: Sequence[Mark]) -> list[list[int]]:
    """The positions of XNNPACK's events, one list per partition: each partition counts its ops from
    0."""
    lists: list[list[int]] = []
    for place, mark in enumerate(marks):
        if mark.type == INSIDE:
            if mark.index == 0 or not lists:
                lists.append([])
            lists[-1].append(place)
    return lists


def align_tags(tags: Sequence[str], ops: Sequence[Op], skips: Sequence[float]) -> list[int | None]:
    """Finds the op of each XNNPACK tag by the cheapest alignment that keeps the order.

    `skips` are the costs of leaving each op without an event.
    """
    names = [tag.split(" (")[0] for tag in tags]
    steps = _cheapest_steps(names, ops, skips)
    found: list[int | None] = [None] * len(names)
    event, op = len(names), len(ops)
    while event or op:
        step = steps[event][op]
        if step in (_FIT, _REPEAT):
            found[event - 1] = op - 1
        op -= step in (_FIT, _SKIP_OP)
        event -= step != _SKIP_OP
    return _with_helpers(names, found)


def _cheapest_steps(
    names: Sequence[str], ops: Sequence[Op], skips: Sequence[float]
) -> list[bytearray]:
    """Row by event, column by op: the last step of the cheapest alignment up to there."""
    costs = [0.0]
    for skip in skips:
        costs.append(costs[-1] + skip)
    steps = [bytearray([_SKIP_OP] * (len(ops) + 1))]
    for name in names:
        extra = _EXPECTED if name in HELPERS else _UNEXPECTED
        kinds = TAGS.get(name, ())
        again = _AGAIN if HELPERS.get(name, 0) <= 0 else _UNEXPECTED
        row = [costs[0] + extra]
        taken = bytearray([_SKIP_EVENT])
        for place, op in enumerate(ops):
            fits = op.kind in kinds
            options = (
                costs[place + 1] + extra,
                costs[place] + (0.0 if fits else _MISFIT),
                row[place] + skips[place],
                costs[place + 1] + (again if fits else _UNEXPECTED),
            )
            best = min(range(4), key=options.__getitem__)
            row.append(options[best])
            taken.append(best)
        costs = row
        steps.append(taken)
    return steps


def _cost_of_absence(op: Op) -> float:
    if is_ready_at_load(op):
        return 0.0
    return _EXPECTED if op.kind in FUSED_FORWARD | FUSED_BACKWARD else _UNEXPECTED


def _with_helpers(names: Sequence[str], found: Sequence[int | None]) -> list[int | None]:
    """Gives the events of helpers to the op that each serves."""
    result = list(found)
    for place, name in enumerate(names):
        if found[place] is None and name in HELPERS:
            before = [op for op in found[:place] if op is not None][-1:]
            after = [op for op in found[place + 1 :] if op is not None][:1]
            near = after or before if HELPERS[name] > 0 else before or after
            result[place] = near[0] if near else None
    return result


def unused(graph: Graph) -> set[int]:
    """Ops whose results reach no output of the graph."""
    wanted = set(graph.outputs)
    spare: set[int] = set()
    for index in reversed(range(len(graph.ops))):
        op = graph.ops[index]
        if op.outputs and not any(tensor in wanted for tensor in op.outputs):
            spare.add(index)
        else:
            wanted.update(tensor for tensor in op.inputs if tensor is not None)
    return spare


def is_ready_at_load(op: Op) -> bool:
    """True for an op that reads constants only."""
    inputs = [tensor for tensor in op.inputs if tensor is not None]
    return bool(inputs) and all(tensor.is_const for tensor in inputs)


class Absence(NamedTuple):
    """Why an op has no time of its own: the op that runs it, or None, and the reason."""

    fused_into: int | None
    why: str

    @property
    def us(self) -> float | None:
        """The op's own time: zero, unless it ran at an unknown time."""
        return None if self.why == NO_EVENT else 0.0


NO_EVENT = phrase("no event of the runtime fits it")


def absences(graph: Graph, timed: set[int]) -> dict[int, Absence]:
    """For each op without an event, why it has none."""
    places = {op: index for index, op in enumerate(graph.ops)}
    readers = {t: [places[op] for op in ops] for t, ops in consumers(graph).items()}
    writers = {t: index for index, op in enumerate(graph.ops) for t in op.outputs}
    spare = unused(graph)
    return {
        index: Absence(None, phrase("its result is not used"))
        if timed and index in spare
        else _absence(graph, index, timed, (readers, writers))
        for index in range(len(graph.ops))
        if index not in timed
    }


Links = tuple[dict[Tensor, list[int]], dict[Tensor, int]]


def _absence(graph: Graph, index: int, timed: set[int], links: Links) -> Absence:
    op = graph.ops[index]
    if not timed:
        return Absence(None, phrase("this graph was not run"))
    reader = _neighbour(graph, index, timed, links, forward=True)
    writer = _neighbour(graph, index, timed, links, forward=False)
    if is_ready_at_load(op):
        return Absence(reader, phrase("computed from constants when the model is loaded"))
    if op.kind in FUSED_BACKWARD:
        near = writer if writer is not None else reader
        return Absence(near, phrase("runs inside the kernel before it"))
    if op.kind in FUSED_FORWARD:
        near = reader if reader is not None else writer
        return Absence(near, phrase("needs no kernel of its own"))
    return Absence(None, NO_EVENT)


def _neighbour(
    graph: Graph, index: int, timed: set[int], links: Links, *, forward: bool
) -> int | None:
    """The nearest timed op that reads from this one, or from which this one reads."""
    readers, writers = links
    seen, queue = {index}, [index]
    for place in queue:  # grows while it is walked
        op = graph.ops[place]
        if forward:
            near = [reader for t in op.outputs for reader in readers.get(t, ())]
        else:
            near = [writers[t] for t in op.inputs if t is not None and t in writers]
        for other in near:
            if other in timed:
                return other
            if other not in seen:
                seen.add(other)
                queue.append(other)
    return None
