"""The rules that every valid model obeys; the runtime and the steps rely on each of them."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

from litesmith import schema
from litesmith.errors import BadModel
from litesmith.ir.dtype import DTYPES, stored_bytes, string_ends
from litesmith.ir.edit import called_graphs
from litesmith.ir.ops import OPS
from litesmith.ir.sparse_places import sparse_problem
from litesmith.ir.types import Graph, Model, Op, Record, Tensor, op_tensors, quant_tensors
from litesmith.phrases import phrase

# The runtime keeps sizes in 64 bits and shapes in 32.
_MOST_BYTES = 2**62
_MOST_DIMENSION = 2**31 - 1


def check(model: Model) -> None:
    """Raises BadModel with the first rule that the model breaks."""
    for problem in problems(model):
        raise BadModel(problem)


def problems(model: Model) -> Iterator[str]:
    """Every breach of the first rule that the model breaks; later rules rely on that one."""
    for rule in RULES.values():
        broken = False
        for problem in rule(model):
            broken = True
            yield problem
        if broken:
            return


def _shapes(model: Model) -> Iterator[str]:
    for graph in model.graphs:
        for tensor in graph.tensors:
            if tensor.dtype not in DTYPES:
                yield phrase(
                    "tensor {name!r}: no element type {dtype!r}", tensor.name, tensor.dtype
                )
            elif any(not 0 <= d <= _MOST_DIMENSION for d in tensor.shape):
                yield phrase(
                    "tensor {name!r}: shape {shape} has an impossible dimension",
                    tensor.name,
                    tensor.shape,
                )
            elif stored_bytes(tensor.dtype, tensor.elements) > _MOST_BYTES:
                yield phrase(
                    "tensor {name!r}: shape {shape} is larger than any memory",
                    tensor.name,
                    tensor.shape,
                )


def _each_tensor(problem: Callable[[Tensor], str]) -> Callable[[Model], Iterator[str]]:
    """Makes a rule for single tensors from a function that names the problem of one, or returns
    "".
    """

    def rule(model: Model) -> Iterator[str]:
        for tensor in (t for graph in model.graphs for t in graph.tensors):
            if why := problem(tensor):
                yield phrase("tensor {name!r}: {why}", tensor.name, why)

    return rule


def _constant_problem(tensor: Tensor) -> str:
    row, data = DTYPES[tensor.dtype], tensor.data
    if data is None:
        return ""
    if row.name == "string":
        try:
            string_ends(data)
        except ValueError as error:
            return str(error)
    if tensor.sparsity is not None or not row.bits:
        return ""
    needed = stored_bytes(tensor.dtype, tensor.elements)
    if data.nbytes == needed and data.dtype == row.storage:
        return ""
    return phrase(
        "{shape} of {name} needs {needed} bytes of {storage}, its constant has {nbytes} of {dtype}",
        tensor.shape,
        row.name,
        needed,
        row.storage,
        data.nbytes,
        data.dtype,
    )


def _quant_problem(tensor: Tensor) -> str:
    """The problem for which the runtime's loader would refuse a tensor's scales; "" where there is
    none.
    """
    quant = tensor.quant
    if quant is None:
        return ""
    count = quant.scale.size
    if quant.block is not None:
        is_nested = any(t.quant and t.quant.block for t in quant_tensors(tensor))
        return phrase("a blockwise scale is itself blockwise") if is_nested else ""
    if quant.zero_point.size != count:
        return phrase("{count} scales but {size} zero points", count, quant.zero_point.size)
    if tensor.shape and not 0 <= quant.axis < len(tensor.shape):
        return phrase("scales along axis {axis} of shape {shape}", quant.axis, tensor.shape)
    if count > 1 and tensor.shape and count != tensor.shape[quant.axis]:
        return phrase(
            "{count} scales along axis {axis} of shape {shape}", count, quant.axis, tensor.shape
        )
    return ""


def _listed(model: Model) -> Iterator[str]:
    """A tensor that is used but not listed cannot be numbered."""
    for graph in model.graphs:
        listed = set(graph.tensors)
        if len(listed) != len(graph.tensors):
            yield phrase("graph {name!r} lists a tensor twice", graph.name)
        for tensor in (
            *graph.inputs,
            *graph.outputs,
            *(t for op in graph.ops for t in op_tensors(op)),
        ):
            if tensor not in listed:
                yield phrase(
                    "graph {name!r} does not list tensor {name2!r}, which it uses",
                    graph.name,
                    tensor.name,
                )
        for tensor in graph.tensors:
            if any(t not in listed for t in quant_tensors(tensor)):
                yield phrase(
                    "graph {name!r} does not list the scales of tensor {name2!r}",
                    graph.name,
                    tensor.name,
                )


def _order(model: Model) -> Iterator[str]:
    """Ops run in the order of the list: each value is written once, and before it is read."""
    for graph in model.graphs:
        ready = {t for t in graph.tensors if _is_given(t)} | set(graph.inputs) | _scratch(graph)
        for index, op in enumerate(graph.ops):
            where = f"op {index} ({op.label})"
            for tensor in op.inputs:
                if tensor is not None and tensor not in ready:
                    yield phrase(
                        "{where} reads tensor {name!r} before it is written", where, tensor.name
                    )
            for tensor in op.outputs:
                if tensor in ready and not tensor.variable and tensor.elements:
                    yield phrase(
                        "{where} writes tensor {name!r}, which has a value", where, tensor.name
                    )
                ready.add(tensor)
        for tensor in graph.outputs:
            if tensor not in ready:
                yield phrase(
                    "output {name!r} of graph {name2!r} is never written", tensor.name, graph.name
                )


def _scratch(graph: Graph) -> set[Tensor]:
    """Tensors that only custom ops use and no op writes: scratch memory, which Vela's ops have, for
    example.
    """
    made = {tensor for op in graph.ops for tensor in op.outputs}
    read = {t for op in graph.ops if not op.is_custom for t in op.inputs if t is not None}
    return {
        t for op in graph.ops if op.is_custom for t in op.inputs if t is not None and t not in made
    } - read


def _is_given(tensor: Tensor) -> bool:
    """True for a tensor that no op needs to write: a constant here or in another file, a state, or
    a tensor without elements.
    """
    return (
        tensor.is_const
        or tensor.variable
        or "external_buffer" in tensor.rest
        or tensor.elements == 0
    )


def _options(model: Model) -> Iterator[str]:
    for _, index, op in model.ops():
        if op.kind not in OPS:
            yield phrase("op {index}: no operator {kind!r}", index, op.kind)
        elif op.options is not None and (why := _option_problem(op.options)):
            yield phrase("op {index} ({label}): {why}", index, op.label, why)


def _option_problem(options: Record) -> str:
    """The first option with a value that no kernel accepts; "" where there is none."""
    for name, field in schema.TABLES[options.table].items():
        value = options[name]
        if name.startswith(_AT_LEAST_ONE) and isinstance(value, int) and value < 1:
            return phrase("{name} is {value}; it is at least 1", name, value)
        if field.kind == "enum" and isinstance(value, int):
            return phrase(
                "{name} has the value {value}, which this version does not know", name, value
            )
    return ""


_AT_LEAST_ONE = ("stride_", "dilation_", "filter_", "block_size")


def _arity(model: Model) -> Iterator[str]:
    for _, index, op in model.ops():
        row = OPS[op.kind]
        roles = row.inputs.split()
        least = sum(1 for role in roles if role[-1] not in "?*")
        most = None if any(role.endswith("*") for role in roles) else len(roles)
        if len(op.inputs) < least or (most is not None and len(op.inputs) > most):
            wanted = phrase("{least} or more", least) if most is None else f"{least} to {most}"
            wanted = f"{least}" if least == most else wanted
            yield phrase(
                "op {index} ({label}) has {count} inputs; it takes {wanted}",
                index,
                op.label,
                len(op.inputs),
                wanted,
            )
        acts = row.has_effect or row.is_control_flow
        if not op.outputs and row.is_full and not acts:
            yield phrase("op {index} ({label}) has no output", index, op.label)
        for place, (role, tensor) in enumerate(zip(roles, op.inputs, strict=False)):
            if tensor is None and role[-1] not in "?*":
                yield phrase("op {index} ({label}) misses input {place}", index, op.label, place)


def _weights(model: Model) -> Iterator[str]:
    """Some kernels of the runtime read a bias without checking its length."""
    for _, index, op in model.ops():
        if why := _weight_problem(op):
            yield phrase("op {index} ({label}): {why}", index, op.label, why)


def _weight_problem(op: Op) -> str:
    """The problem for which every kernel refuses a constant weight and its bias; "" where there is
    none.
    """
    row = OPS[op.kind]
    weight = None if row.rank is None or row.weight is None else op.inputs[row.weight]
    if weight is None or row.axis is None or not weight.is_const:
        return ""
    if len(weight.shape) != row.rank:
        return phrase("weights of shape {shape}; they have {rank} axes", weight.shape, row.rank)
    bias = op.inputs[row.bias] if row.bias is not None and row.bias < len(op.inputs) else None
    channels = weight.shape[row.axis]
    if bias is None or not bias.is_const or bias.elements == channels:
        return ""
    return phrase("{count} biases for {channels} output channels", bias.elements, channels)


def _calls(model: Model) -> Iterator[str]:
    """Control flow refers to graphs that exist, and no graph calls itself, directly or through
    others.
    """
    count = len(model.graphs)
    callees: list[set[int]] = []
    for graph in model.graphs:
        callees.append(set())
        for index, op in enumerate(graph.ops):
            for target in called_graphs(op):
                if not 0 <= target < count:
                    yield phrase(
                        "op {index} ({label}) calls graph {target}; there are {count}",
                        index,
                        op.label,
                        target,
                        count,
                    )
                else:
                    callees[-1].add(target)
    loop = _a_loop(callees)
    if loop is not None:
        yield phrase("graph {name!r} calls itself, so it would never end", model.graphs[loop].name)


def _a_loop(callees: list[set[int]]) -> int | None:
    """A graph that can reach itself: graphs that call nothing are removed until only loops are
    left.
    """
    callers: dict[int, list[int]] = defaultdict(list)
    for caller, targets in enumerate(callees):
        for target in targets:
            callers[target].append(caller)
    left = [len(targets) for targets in callees]
    leaves = [graph for graph, count in enumerate(left) if count == 0]
    for leaf in leaves:  # grows while it is walked
        for caller in callers[leaf]:
            left[caller] -= 1
            if left[caller] == 0:
                leaves.append(caller)
    return next((graph for graph, count in enumerate(left) if count), None)


def _signatures(model: Model) -> Iterator[str]:
    for signature in model.signatures:
        if not 0 <= signature.graph < len(model.graphs):
            yield phrase(
                "signature {key!r} names graph {graph}, which is not there",
                signature.key,
                signature.graph,
            )
            continue
        graph = model.graphs[signature.graph]
        same = phrase("two inputs have the same name"), phrase("two outputs have the same name")
        for side, twice, arguments, tensors in (
            ("input", same[0], signature.inputs, graph.inputs),
            ("output", same[1], signature.outputs, graph.outputs),
        ):
            if len({name for name, _ in arguments}) < len(arguments):
                yield phrase("signature {key!r}: {twice}", signature.key, twice)
            for name, tensor in arguments:
                if tensor not in tensors:
                    yield phrase(
                        "signature {key!r}: {side} {name!r} is no {side} of its graph",
                        signature.key,
                        side,
                        name,
                    )
    counts = Counter(signature.key for signature in model.signatures)
    yield from (
        phrase("{count} signatures are named {key!r}", count, key)
        for key, count in counts.items()
        if count > 1
    )


RULES: dict[str, Callable[[Model], Iterator[str]]] = {
    "shapes are possible": _shapes,
    "constants fill their shapes": _each_tensor(_constant_problem),
    "sparse encodings fit their shapes": _each_tensor(sparse_problem),
    "scales fit their tensors": _each_tensor(_quant_problem),
    "tensors in use are listed": _listed,
    "operators and their options are known": _options,
    "operators have their inputs and outputs": _arity,
    "weights and biases fit their layers": _weights,
    "values are written once and before they are read": _order,
    "calls lead to other graphs": _calls,
    "signatures name their graph's tensors": _signatures,
}
