"""ATen's operators that bring many values to one: sums, extremes, norms, softmax, running sums."""

from math import inf, prod

import numpy as np

from litesmith.conversion.aten.call import Call, NotWritten, Ref, Row, computed
from litesmith.conversion.aten.values import truth
from litesmith.ir.types import Array


def _axes(call: Call, x: Ref, name: str = "dim") -> tuple[int, ...]:
    given = call.arguments.get(name)
    if given is None or given == ():
        return tuple(range(x.rank))
    return tuple(a % max(x.rank, 1) for a in call.integers(name))


def reduced(kind: str) -> Row:
    """Along axes, or all of them."""

    def row(call: Call) -> None:
        x = call.ref("self")
        name = truth(call, "self") if kind in _LOGIC else call.cast(x, call.dtype)
        _reduce(call, _LOGIC.get(kind, kind), name, x)

    return row


_LOGIC = {"Any": "ReduceMax", "All": "ReduceMin"}


def _reduce(call: Call, kind: str, name: str, x: Ref) -> None:
    if not x.rank:
        call.end("Identity", name)
        return
    axes = call.whole(_axes(call, x))
    call.end(kind, name, axes, keepdims=call.integer("keepdim"))


def extreme(kind: str, place: str) -> Row:
    """The largest or smallest values along an axis, and their places."""

    def row(call: Call) -> None:
        x, axis, keep = call.name("self"), call.axis(), call.integer("keepdim")
        if call.outputs[0]:
            call.output(0).end(kind, x, call.whole([axis]), keepdims=keep)
        if call.outputs[1]:
            call.output(1).end(place, x, axis=axis, keepdims=keep)

    return row


def place_of(kind: str) -> Row:
    def row(call: Call) -> None:
        x, name, keep = call.ref("self"), call.name("self"), call.integer("keepdim")
        if call.has("dim"):
            call.end(kind, name, axis=call.axis(), keepdims=keep)
            return
        flat = call.step("Reshape", name, call.whole([prod(x.shape)]))
        call.end(kind, flat, axis=0, keepdims=0)

    return row


def spread(root: bool) -> Row:
    """Variance or deviation, with a correction of the count, and the mean where it is asked for."""

    def row(call: Call) -> None:
        x, keep = call.ref("self"), call.integer("keepdim")
        axes = _axes(call, x)
        count = prod(x.shape[a] for a in axes)
        less = call.number("correction", call.number("unbiased", 1))
        if len(call.outputs) > 1 and call.outputs[1]:
            call.output(1).end("ReduceMean", x.name, call.whole(axes), keepdims=keep)
        first = call.output(0)
        away = first.step("Sub", x.name, first.step("ReduceMean", x.name, call.whole(axes)))
        square = first.step("Mul", away, away)
        mean = first.step("ReduceMean", square, call.whole(axes), keepdims=keep)
        factor = call.constant(count / (count - less) if count > less else inf, "float32")
        if root:
            first.end("Sqrt", first.step("Mul", mean, factor))
        else:
            first.end("Mul", mean, factor)

    return row


def vector_norm(call: Call) -> None:
    x, order = call.ref("self"), call.number("ord", call.number("p", 2))
    kind = {1: "ReduceL1", 2: "ReduceL2", inf: "ReduceMax", -inf: "ReduceMin"}.get(order)
    name = x.name
    if kind is None:
        raise NotWritten("a norm of order {order}; 1, 2 and inf can be converted", order)
    if abs(order) == inf:
        name = call.step("Abs", name)
    _reduce(call, kind, name, x)


def softmax(kind: str) -> Row:
    def row(call: Call) -> None:
        call.end(kind, call.operand("self", call.dtype), axis=call.axis())

    return row


def running_sum(call: Call) -> None:
    axis: Array = np.array(call.axis(), np.int64)
    call.end("CumSum", call.operand("self", call.dtype), axis)


def running(kind: str, neutral: float) -> Row:
    """A running operation over all values up to each place: every step joins runs of twice the
    length."""

    def row(call: Call) -> None:
        x = call.ref("self")
        if len(call.outputs) > 1 and call.outputs[1]:
            raise NotWritten("the places of the values; take the values alone")
        first, axis, name = call.output(0), call.axis(), call.operand("self", call.made[0].dtype)
        size, reach = x.shape[axis] if x.rank else 1, 1
        fill = first.constant(_bounded(neutral, first.dtype), first.dtype)
        while reach < size:
            frame = [0] * (2 * x.rank)
            frame[axis], frame[x.rank + axis] = reach, -reach
            earlier = first.step("Pad", name, first.whole(frame), fill)
            name = first.step(kind, name, earlier)
            reach *= 2
        first.end("Identity", name)

    return row


def _bounded(number: float, dtype: str) -> float:
    """A number, or the end of the type's range where it has no infinity."""
    if abs(number) != inf or dtype.startswith(("float", "bfloat")):
        return number
    ends = np.iinfo(computed(dtype))
    return int(ends.max if number > 0 else ends.min)


def distances(call: Call) -> None:
    """From each row of one tensor to each of another."""
    a, b, order = call.ref("x1"), call.ref("x2"), call.number("p", 2)
    if order not in (1, 2):
        raise NotWritten("a norm of order {order}; 1, 2 and inf can be converted", order)
    column = call.step("Reshape", a.name, call.whole((*a.shape[:-1], 1, a.shape[-1])))
    line = call.step("Reshape", b.name, call.whole((*b.shape[:-2], 1, *b.shape[-2:])))
    apart = call.step("Sub", column, line)
    kind = "ReduceL1" if order == 1 else "ReduceL2"
    call.end(kind, apart, call.whole([len(call.shape)]), keepdims=0)


ROWS: dict[str, Row] = {
    "_cdist_forward": distances,
    "all": reduced("All"),
    "amax": reduced("ReduceMax"),
    "amin": reduced("ReduceMin"),
    "any": reduced("Any"),
    "argmax": place_of("ArgMax"),
    "argmin": place_of("ArgMin"),
    "cdist": distances,
    "cummax": running("Max", -inf),
    "cummin": running("Min", inf),
    "cumprod": running("Mul", 1),
    "cumsum": running_sum,
    "linalg_vector_norm": vector_norm,
    "log_softmax": softmax("LogSoftmax"),
    "_log_softmax": softmax("LogSoftmax"),
    "logsumexp": reduced("ReduceLogSumExp"),
    "max": reduced("ReduceMax"),
    "max.dim": extreme("ReduceMax", "ArgMax"),
    "mean": reduced("ReduceMean"),
    "min": reduced("ReduceMin"),
    "min.dim": extreme("ReduceMin", "ArgMin"),
    "norm": vector_norm,
    "prod": reduced("ReduceProd"),
    "softmax": softmax("Softmax"),
    "_softmax": softmax("Softmax"),
    "_safe_softmax": softmax("Softmax"),
    "std": spread(True),
    "sum": reduced("ReduceSum"),
    "var": spread(False),
    "var_mean": spread(False),
}
