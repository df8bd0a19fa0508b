"""Conditions on an op that the documents of several accelerators name."""

from collections.abc import Collection
from math import prod

from litesmith.ir.ops import OPS, options_or_defaults
from litesmith.ir.types import Array, Op, Record, Tensor, constant_numbers
from litesmith.phrases import phrase
from litesmith.run.rules.rule_row import Check, data, one_of, told_if, when
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
        return phrase(
            "{kind} reads {dtype}; it takes {one_of}", op.kind, found[0].dtype, one_of(dtypes)
        )

    return check


def makes(*dtypes: str) -> Check:
    """Every output has one of these types."""

    def check(op: Op) -> str:
        wrong = next((t.dtype for t in op.outputs if t.dtype not in dtypes), "")
        told = phrase("{kind} makes {wrong}; it takes {one_of}", op.kind, wrong, one_of(dtypes))
        return told if wrong else ""

    return check


def ranks(low: int, high: int) -> Check:
    """Data and outputs have a number of dimensions in this range."""

    def check(op: Op) -> str:
        wanted = f"{low}" if low == high else f"{low} to {high}"
        for count in (len(tensor.shape) for tensor in (*data(op), *op.outputs)):
            if not low <= count <= high:
                return phrase(
                    "{kind} on {count} dimensions; it takes {wanted}", op.kind, count, wanted
                )
        return ""

    return check


def constant(place: int, what: str) -> Check:
    """An input, where there is one, is stored in the file."""

    def check(op: Op) -> str:
        told = phrase("the {what} of {kind} are computed; it takes constants only", what, op.kind)
        tensor = given(op, place)
        return told_if(tensor is not None and not tensor.is_const, told)

    return check


def present(place: int, what: str) -> Check:
    def check(op: Op) -> str:
        told = phrase("{kind} without {what}; it needs one", op.kind, what)
        return told_if(given(op, place) is None, told)

    return check


def settings_constant(op: Op) -> str:
    """Sizes, axes and paddings are stored in the file."""
    roles = OPS[op.kind].inputs.split()
    for role, tensor in zip(roles, op.inputs, strict=False):
        if role[0] == "s" and tensor is not None and not tensor.is_const:
            return phrase("a setting of {kind} is computed; it takes constants only", op.kind)
    return ""


def weights(*dtypes: str) -> Check:
    """The weights have one of these types."""

    def check(op: Op) -> str:
        place = OPS[op.kind].weight
        tensor = None if place is None else given(op, place)
        if tensor is None or tensor.dtype in dtypes:
            return ""
        known = one_of(dtypes)
        return phrase(
            "the weights of {kind} are {dtype}; it takes {one_of}", op.kind, tensor.dtype, known
        )

    return check


def activations(*allowed: str) -> Check:
    """The fused activation is one of these, or none."""

    def check(op: Op) -> str:
        found = options(op).fields.get("fused_activation_function", "NONE")
        more = "".join(f", {a}" for a in allowed)
        told = phrase("{kind} with a fused {found}; it takes none{allowed}", op.kind, found, more)
        return told_if(found not in ("NONE", *allowed), told)

    return check


no_activation = activations()


def versions(highest: int) -> Check:
    def check(op: Op) -> str:
        told = phrase(
            "version {version} of {kind}; it knows up to {highest}", op.version, op.kind, highest
        )
        return told_if(op.version > highest, told)

    return check


even_dilation = when(
    lambda op: options(op)["dilation_h_factor"] != options(op)["dilation_w_factor"],
    phrase("{kind} is dilated unevenly; it takes the same dilation both ways"),
)


def unreduced(*kept: int) -> Check:
    """These axes are not reduced."""

    def check(op: Op) -> str:
        found = axes(op)
        if found is None:
            return phrase("the axes of {kind} are computed; it takes constants only", op.kind)
        for axis in kept:
            if axis in found:
                return phrase("{kind} over axis {wrong}, which it cannot reduce", op.kind, axis)
        return ""

    return check


def padded(allowed: Collection[int], of: Collection[int]) -> Check:
    """Padding is constant, has one of these ranks, and applies only to the allowed axes."""

    def check(op: Op) -> str:
        held = numbers(op, 1)
        if held is None:
            return phrase("the paddings of {kind} are computed; it takes constants only", op.kind)
        if held.shape[0] not in of:
            wanted = one_of([str(rank) for rank in of])
            return phrase(
                "{kind} of {shape} dimensions; it takes {wanted}", op.kind, held.shape[0], wanted
            )
        for axis, pair in enumerate(held):
            if pair.any() and axis not in allowed:
                return phrase("{kind} along axis {wrong}, which it cannot pad", op.kind, axis)
        return ""

    return check


def option_is(name: str, *values: object) -> Check:
    def check(op: Op) -> str:
        found = options(op)[name]
        told = phrase("{kind} with {name} {found}", op.kind, name, plain(str(found)))
        return told_if(found not in values, told)

    return check


def same_scale(op: Op) -> str:
    """The data and the output share scale and zero point."""
    first, last = data(op)[0].quant, op.outputs[0].quant
    if first is None or last is None or (first.scale.size, last.scale.size) != (1, 1):
        return ""
    same = first.scale[0] == last.scale[0] and first.zero_point[0] == last.zero_point[0]
    return "" if same else phrase("{kind} between two scales; it takes one scale for both", op.kind)


def flat(op: Op) -> str:
    """Every dimension of the data is 1 but the last."""
    shape = data(op)[0].shape
    told = phrase("{kind} on {shape}; it takes one row only", op.kind, _shape(shape))
    return told_if(prod(shape[:-1]) != 1, told)


def flat_output(op: Op) -> str:
    shape = op.outputs[0].shape
    told = phrase("{kind} makes {shape}; it takes one row only", op.kind, _shape(shape))
    return told_if(prod(shape[:-1]) != 1, told)


def _has_blocks(op: Op) -> bool:
    return any(
        t.quant is not None and t.quant.block is not None for t in op.inputs if t is not None
    )


no_blocks = when(
    _has_blocks, phrase("{kind} with a scale a block; it takes a scale a channel at most")
)


def known_types(op: Op) -> str:
    """No text and no state flows."""
    strange = ("string", "resource", "variant", "bfloat16")
    tensors = (t for t in (*op.inputs, *op.outputs) if t is not None)
    wrong = next((t.dtype for t in tensors if t.dtype in strange), "")
    return told_if(bool(wrong), phrase("{kind} on {wrong}", op.kind, wrong))


def _shape(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "a single value"
