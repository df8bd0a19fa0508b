"""The type of a row of the rules, and the placement of a model by a row."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from litesmith.ir.ops import OPS, late_tensors
from litesmith.ir.types import Graph, Model, Op, Tensor, op_tensors
from litesmith.passes.core.step import Context
from litesmith.passes.tidy.fold import Fold
from litesmith.phrases import join_and, phrase
from litesmith.run.core.placement import PREDICTED, Home, Placement
from litesmith.units import plain

# Why an op cannot be taken; "" where it can.
Check = Callable[[Op], str]


@dataclass(frozen=True)
class Rules:
    """The ops that an accelerator takes by its public documents, and how it splits a model.

    sources  the documents
    takes    kind -> conditions; a kind that is not there stays on the CPU
    always   conditions on every op of these kinds
    wants    element types of models that it takes
    way_out  what to do with a model of other types, a fact of its placement
    static   True where no dimension but the first may be free
    sizes    True where sizes may depend on values
    fixed    True where it refuses a model with any such size entirely
    most     partitions that it takes, the largest first; 0 for any number
    least    ops that a partition must have
    stops    True where everything behind the first op it leaves is left too
    whole    True where it takes a model entirely or not at all
    inside   element types allowed inside a model, but not for its inputs and outputs
    final    True where its compiler takes the sizes in the file as final, and everything computed
             from them alone as constants
    """

    sources: tuple[str, ...]
    takes: Mapping[str, tuple[Check, ...]]
    always: tuple[Check, ...] = ()
    wants: tuple[str, ...] = ()
    way_out: str = ""
    static: bool = False
    sizes: bool = False
    fixed: bool = False
    most: int = 0
    least: int = 1
    stops: bool = False
    whole: bool = False
    inside: tuple[str, ...] = ()
    final: bool = False


def told_if(is_wrong: bool, why: str) -> str:
    return why if is_wrong else ""


def when(is_wrong: Callable[[Op], bool], why: str) -> Check:
    """Refuses ops for which the condition holds; `{kind}` in the reason is filled in."""
    has_kind = "{kind}" in why
    return lambda op: told_if(is_wrong(op), phrase(why, op.kind) if has_kind else why)


def takes(kinds: str, *checks: Check) -> dict[str, tuple[Check, ...]]:
    """The same conditions for several kinds."""
    return dict.fromkeys(kinds.split(), checks)


def data(op: Op) -> list[Tensor]:
    """The inputs that carry data, not weights, settings or indices; all where roles are unknown."""
    roles = OPS[op.kind].inputs.split()
    roles += roles[-1:] * (len(op.inputs) - len(roles))
    named = [(t, role[0]) for t, role in zip(op.inputs, roles, strict=False) if t is not None]
    return [tensor for tensor, role in named if role in "x*"] or [tensor for tensor, _ in named]


def one_of(words: Sequence[str]) -> str:
    """`int8, uint8 and int16`."""
    return join_and(words)


def place_by_rules(target: str, rules: Rules, model: Model) -> Placement:
    """A home and a reason for each op of the main graph."""
    graph = model.main
    found = _by_outputs(rules, _with_final_sizes(model) if rules.final else graph)
    if all(found.values()):  # a compiler that takes nothing has no constants either
        found = _by_outputs(rules, graph)
    reasons = _limited(rules, graph, [found.get(op.outputs, "") for op in graph.ops])
    homes = tuple(
        Home(place, op.kind, not why, why or _why_taken(op, is_kept=op.outputs in found))
        for place, (op, why) in enumerate(zip(graph.ops, reasons, strict=True))
    )
    placed = Placement(target, PREDICTED, homes, len(partitions(graph, [not r for r in reasons])))
    if placed.taken or not homes:
        return placed
    other = _other_type(rules, graph)
    if not other:
        return replace(placed, refused=placed.main_reason)
    why = phrase("it takes {one_of} models; this one is {other}", one_of(rules.wants), other)
    facts = MappingProxyType({"way_out": rules.way_out})
    return replace(placed, refused=why, facts=facts, needs_int8="int8" in rules.wants)


def first_left(rules: Rules, graph: Graph) -> Home | None:
    """The first op that the accelerator does not take by itself, and why."""
    homes = enumerate(zip(graph.ops, _reasons(rules, graph), strict=True))
    return next((Home(n, op.label, False, why) for n, (op, why) in homes if why), None)


def _with_final_sizes(model: Model) -> Graph:
    """The graph without computations on constants and on sizes that the file states."""
    if all(op.kind != "SHAPE" for op in model.main.ops):
        return model.main
    return Fold(shapes=True).apply(model, Context()).model.main


def _by_outputs(rules: Rules, graph: Graph) -> dict[tuple[Tensor, ...], str]:
    """Why each op by itself is left, by its outputs; "" where it is taken."""
    return {op.outputs: why for op, why in zip(graph.ops, _reasons(rules, graph), strict=True)}


def _why_taken(op: Op, *, is_kept: bool) -> str:
    if not is_kept:
        return phrase("its result is known when the model is compiled")
    return phrase("{type} {label} is in its list", _type(op), plain(op.label))


def _other_type(rules: Rules, graph: Graph) -> str:
    """The type of most computed tensors of a model, where it is not one of those wanted."""
    flowing = Counter(t.dtype for op in graph.ops for t in op.outputs if t.dtype != "int32")
    most = max(flowing, key=flowing.__getitem__, default="")
    return most if rules.wants and most not in rules.wants else ""


def partitions(graph: Graph, taken: Sequence[bool]) -> list[list[int]]:
    """The pieces that the accelerator runs without the CPU in between, as places of ops.

    The split follows the runtime: ops need not be neighbours, only ready. Each round takes all ops
    that can run on one side after the earlier rounds.
    """
    made_by = {tensor: place for place, op in enumerate(graph.ops) for tensor in op.outputs}
    needs = [{made_by[t] for t in op.inputs if t in made_by} for op in graph.ops]
    waiting, done = list(range(len(graph.ops))), set[int]()
    found: list[list[int]] = []
    side = bool(taken) and taken[0]
    while waiting:
        ready: list[int] = []
        for place in waiting:
            if taken[place] == side and needs[place] <= done:
                ready.append(place)
                done.add(place)
        waiting = [place for place in waiting if place not in done]
        if side and ready:
            found.append(ready)
        side = not side
    return found


def _type(op: Op) -> str:
    tensors = [*data(op), *op.outputs]
    return tensors[0].dtype if tensors else "untyped"


def _reasons(rules: Rules, graph: Graph) -> Iterator[str]:
    """Why each op is left, by itself; "" where it is taken."""
    late, stored = late_tensors(graph), _stored(graph)
    first = next((t for op in graph.ops for t in op.outputs if t in late), None)
    if rules.fixed and first is not None:
        why = phrase(
            "the size of {name} depends on values; it must know all sizes before", plain(first.name)
        )
        yield from [why] * len(graph.ops)
        return
    ends = {t for t in (*graph.inputs, *graph.outputs) if t.dtype in rules.inside}
    for op in graph.ops:
        why = _why_unfit(rules, op, late) or _why_at_the_end(op, ends)
        yield why or _why_unlisted(rules, _with_stored(op, stored))


def _why_unfit(rules: Rules, op: Op, late: set[Tensor]) -> str:
    if OPS[op.kind].is_control_flow and op.kind not in rules.takes:
        return phrase("{kind} runs other graphs; control flow stays on the CPU", op.kind)
    if _is_shapeless(op):
        return phrase("the shape of what {label} reads is not known", plain(op.label))
    if not rules.sizes and any(tensor in late for tensor in op_tensors(op)):
        return phrase("the size of what {label} reads or makes depends on values", plain(op.label))
    if rules.static and any(-1 in (tensor.dynamic or ())[1:] for tensor in op_tensors(op)):
        return phrase("{label} has a free dimension that is not the batch", plain(op.label))
    return ""


def _is_shapeless(op: Op) -> bool:
    """True for a layer whose data or computed weight has a shape that the file does not state."""
    row = OPS[op.kind]
    if row.rank is None or row.data is None or row.weight is None:
        return False
    read = op.inputs[row.data], op.inputs[row.weight]
    return any(tensor is not None and not tensor.shape for tensor in read)


def _why_at_the_end(op: Op, ends: set[Tensor]) -> str:
    end = next((tensor for tensor in op_tensors(op) if tensor in ends), None)
    if end is None:
        return ""
    return phrase("{name!r} is {dtype}, which it takes inside a model only", end.name, end.dtype)


def _why_unlisted(rules: Rules, op: Op) -> str:
    if op.kind not in rules.takes:
        return phrase("{label} is not in its list of ops", plain(op.label))
    told = (check(op) for check in (*rules.always, *rules.takes[op.kind]))
    return next((why for why in told if why), "")


def _stored(graph: Graph) -> dict[Tensor, Tensor]:
    """Tensors that are constants of float16 made float32: compilers read these as they are."""
    return {
        op.outputs[0]: op.inputs[0]
        for op in graph.ops
        if op.kind == "DEQUANTIZE" and op.inputs[0] is not None
        if op.inputs[0].is_const and op.inputs[0].dtype == "float16"
    }


def _with_stored(op: Op, stored: Mapping[Tensor, Tensor]) -> Op:
    if not any(tensor in stored for tensor in op.inputs):
        return op
    return replace(op, inputs=tuple(stored.get(t, t) if t else None for t in op.inputs))


def _limited(rules: Rules, graph: Graph, reasons: list[str]) -> list[str]:
    """The reasons, including ops that the accelerator leaves because of how the model splits."""
    if rules.whole and any(reasons):
        first = next(why for why in reasons if why)
        return [
            why or phrase("it takes a model wholly or not at all, and {first}", first)
            for why in reasons
        ]
    if rules.stops:
        return _stopped(graph, reasons)
    pieces = partitions(graph, [not why for why in reasons])
    left = dict[int, str]()
    short = phrase("its partition has under {least} ops; not worth it", rules.least)
    for piece in (p for p in pieces if len(p) < rules.least):
        left |= dict.fromkeys(piece, short)
    kept = sorted((p for p in pieces if len(p) >= rules.least), key=len, reverse=True)
    late = phrase("it takes the {most} largest partitions only", rules.most)
    for piece in kept[rules.most :] if rules.most else ():
        left |= dict.fromkeys(piece, late)
    return [left.get(place, why) for place, why in enumerate(reasons)]


def _stopped(graph: Graph, reasons: list[str]) -> list[str]:
    """Keeps only the ops before the first one that is left; ops that only convert inputs may be
    left."""
    for place, (op, why) in enumerate(zip(graph.ops, reasons, strict=True)):
        if why and not (op.kind == "QUANTIZE" and op.inputs[0] in graph.inputs):
            behind = phrase(
                "it stands behind op {place}, {label}, where its one partition ends",
                place,
                plain(op.label),
            )
            return [*reasons[: place + 1], *(w or behind for w in reasons[place + 1 :])]
    return reasons
