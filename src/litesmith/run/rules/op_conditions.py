"""Conditions on an op that the documents of several accelerators name."""

from collections.abc import Collection
from math import prod

from litesmith.ir.ops import OPS, options_or_defaults
from litesmith.ir.types import Array, Op, Record, Tensor, constant_numbers
from litesmith.run.rules.rule_row import Check, data, one_of
from litesmith.units import plain


def options(op: Op) -> Record:
    return options_or_defaults(op.kind, op.options)


def given(op: Op, place: int) -> Tensor | None:
    return op.inputs[place] if place < len(op.inputs) else None


def numbers(op: Op, place: int) -> Array | None:
    """The values of a constant input; None where it is absent or computed."""
    return constant_numbers(given(op, place))


def axes(op: Op, place: int = 1) -> list[int] | None:
    """The axes that an input names, counted from the front; None where they are computed."""
    held = numbers(op, place)
    rank = len(data(op)[0].shape)
    return None if held is None else sorted({int(axis) % max(rank, 1) for axis in held.ravel()})


def reads(*dtypes: str) -> Check:
    """The first data input has one of these types."""

    def check(op: Op) -> str:
        found = data(op)
        if not found or found[0].dtype in dtypes:
            return ""
        return f"{op.kind} reads {found[0].dtype}; it takes {one_of(dtypes)}"

    return check


def makes(*dtypes: str) -> Check:
    """Every output has one of these types."""

    def check(op: Op) -> str:
        wrong = [t.dtype for t in op.outputs if t.dtype not in dtypes]
        return f"{op.kind} makes {wrong[0]}; it takes {one_of(dtypes)}" if wrong else ""

    return check


def ranks(low: int, high: int) -> Check:
    """Data and outputs have so many dimensions."""

    def check(op: Op) -> str:
        for tensor in (*data(op), *op.outputs):
            if not low <= len(tensor.shape) <= high:
                wanted = f"{low}" if low == high else f"{low} to {high}"
                return f"{op.kind} on {len(tensor.shape)} dimensions; it takes {wanted}"
        return ""

    return check


def constant(place: int, what: str) -> Check:
    """An input, where there is one, is stored in the file."""

    def check(op: Op) -> str:
        tensor = given(op, place)
        computed = tensor is not None and not tensor.is_const
        return f"the {what} of {op.kind} are computed; it takes constants only" if computed else ""

    return check


def present(place: int, what: str) -> Check:
    def check(op: Op) -> str:
        return f"{op.kind} without {what}; it needs one" if given(op, place) is None else ""

    return check


def settings_constant(op: Op) -> str:
    """Sizes, axes and paddings are stored in the file."""
    roles = OPS[op.kind].inputs.split()
    for role, tensor in zip(roles, op.inputs, strict=False):
        if role[0] == "s" and tensor is not None and not tensor.is_const:
            return f"a setting of {op.kind} is computed; it takes constants only"
    return ""


def weights(*dtypes: str) -> Check:
    """The weights have one of these types."""

    def check(op: Op) -> str:
        place = OPS[op.kind].weight
        tensor = None if place is None else given(op, place)
        if tensor is None or tensor.dtype in dtypes:
            return ""
        return f"the weights of {op.kind} are {tensor.dtype}; it takes {one_of(dtypes)}"

    return check


def activations(*allowed: str) -> Check:
    """The fused activation is one of these, or none."""

    def check(op: Op) -> str:
        found = options(op).fields.get("fused_activation_function", "NONE")
        if found in ("NONE", *allowed):
            return ""
        return f"{op.kind} with a fused {found}; it takes none{''.join(f', {a}' for a in allowed)}"

    return check


no_activation = activations()


def versions(highest: int) -> Check:
    def check(op: Op) -> str:
        if op.version <= highest:
            return ""
        return f"version {op.version} of {op.kind}; it knows up to {highest}"

    return check


def even_dilation(op: Op) -> str:
    found = options(op)
    if found["dilation_h_factor"] == found["dilation_w_factor"]:
        return ""
    return f"{op.kind} is dilated unevenly; it takes the same dilation both ways"


def strides(most: int) -> Check:
    def check(op: Op) -> str:
        found = max(options(op).integer("stride_h"), options(op).integer("stride_w"))
        return f"{op.kind} with stride {found}; it takes up to {most}" if found > most else ""

    return check


def unreduced(*kept: int) -> Check:
    """These axes are not reduced."""

    def check(op: Op) -> str:
        found = axes(op)
        if found is None:
            return f"the axes of {op.kind} are computed; it takes constants only"
        wrong = [axis for axis in kept if axis in found]
        return f"{op.kind} over axis {wrong[0]}, which it cannot reduce" if wrong else ""

    return check


def padded(allowed: Collection[int], of: Collection[int]) -> Check:
    """Padding is constant, of so many dimensions, and only along the axes that are allowed."""

    def check(op: Op) -> str:
        held = numbers(op, 1)
        if held is None:
            return f"the paddings of {op.kind} are computed; it takes constants only"
        if held.shape[0] not in of:
            wanted = one_of([str(rank) for rank in of])
            return f"{op.kind} of {held.shape[0]} dimensions; it takes {wanted}"
        wrong = [axis for axis, pair in enumerate(held) if pair.any() and axis not in allowed]
        return f"{op.kind} along axis {wrong[0]}, which it cannot pad" if wrong else ""

    return check


def option_is(name: str, *values: object) -> Check:
    def check(op: Op) -> str:
        found = options(op)[name]
        return "" if found in values else f"{op.kind} with {name} {plain(str(found))}"

    return check


def same_scale(op: Op) -> str:
    """The data and the output share scale and zero point."""
    first, last = data(op)[0].quant, op.outputs[0].quant
    if first is None or last is None or (first.scale.size, last.scale.size) != (1, 1):
        return ""
    same = first.scale[0] == last.scale[0] and first.zero_point[0] == last.zero_point[0]
    return "" if same else f"{op.kind} between two scales; it takes one scale for both"


def flat(op: Op) -> str:
    """Every dimension of the data is 1 but the last."""
    shape = data(op)[0].shape
    if prod(shape[:-1]) == 1:
        return ""
    return f"{op.kind} on {_shape(shape)}; it takes one row only"


def flat_output(op: Op) -> str:
    shape = op.outputs[0].shape
    return (
        "" if prod(shape[:-1]) == 1 else f"{op.kind} makes {_shape(shape)}; it takes one row only"
    )


def _shape(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "a single value"
