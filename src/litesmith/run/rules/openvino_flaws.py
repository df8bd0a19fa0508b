"""Where OpenVINO fails on ops that it has: it dies, gives other numbers, or does not read them."""

import numpy as np

from litesmith.ir.types import Op
from litesmith.phrases import phrase
from litesmith.run.rules.op_conditions import numbers, options
from litesmith.run.rules.rule_row import Check, data


def _named_dimensions(op: Op) -> str:
    return (
        ""
        if options(op).integers("squeeze_dims")
        else phrase("SQUEEZE that names no dimensions; its reader crashes on it")
    )


def _no_activation(op: Op) -> str:
    fused = str(options(op)["fused_activation_function"])
    return (
        ""
        if fused == "NONE"
        else phrase("{kind} with {fused}; OpenVINO leaves the {fused} out", op.kind, fused)
    )


def _by_whole_factors(op: Op) -> str:
    asked = options(op)
    sizes = zip(data(op)[0].shape[1:3], op.outputs[0].shape[1:3], strict=False)
    is_enlarged = all(old > 0 and new % old == 0 for old, new in sizes)
    if not asked["half_pixel_centers"] or (is_enlarged and not asked["align_corners"]):
        return ""
    return phrase("{kind} with half-pixel centers; OpenVINO takes other pixels", op.kind)


def _different_places(op: Op) -> str:
    """Equal places are added up by LiteRT."""
    indices = numbers(op, 0)
    if indices is not None:
        rows = indices.reshape(-1, max(1, *indices.shape[-1:]))
        if len(np.unique(rows, axis=0)) == len(rows):
            return ""
    how = "computed places" if indices is None else "repeated places"
    return phrase("{kind} to {how}; OpenVINO does not add up what goes to one place", op.kind, how)


def _zero_point(op: Op) -> int:
    quant = data(op)[0].quant
    return 0 if quant is None or quant.zero_point.size != 1 else int(quant.zero_point.item())


def _no_zero_point_in(dtype: str) -> Check:
    def check(op: Op) -> str:
        if data(op)[0].dtype != dtype or not _zero_point(op):
            return ""
        return phrase(
            "{kind} in {dtype} with a zero point; OpenVINO gives other numbers", op.kind, dtype
        )

    return check


def _padded_with_zero(op: Op) -> str:
    zero, paddings = _zero_point(op), numbers(op, 2)
    right = {"int8": -128, "uint8": 128}  # besides 0
    is_plain = paddings is not None and not paddings.any()
    if is_plain or zero in (0, right.get(data(op)[0].dtype)):
        return ""
    return phrase(
        "{kind} that pads, with the zero point {zero}; OpenVINO pads with another number",
        op.kind,
        zero,
    )


def _not_in_eight_bits(op: Op) -> str:
    dtype = data(op)[0].dtype
    is_narrow = dtype in ("int8", "uint8")
    return (
        phrase("{kind} in {dtype}; OpenVINO gives other numbers", op.kind, dtype)
        if is_narrow
        else ""
    )


# What OpenVINO dies of or computes otherwise than LiteRT, without a word: seen with 2026.4.1 on
# one model a kind and type.
FLAWS: dict[str, Check] = {
    "REDUCE_MAX": _no_zero_point_in("int8"),
    "REDUCE_MIN": _no_zero_point_in("uint8"),
    "RELU_0_TO_1": _not_in_eight_bits,
    "RESIZE_NEAREST_NEIGHBOR": _by_whole_factors,
    "SCATTER_ND": _different_places,
    "SPACE_TO_BATCH_ND": _padded_with_zero,
    "SQUEEZE": _named_dimensions,
    "TRANSPOSE_CONV": _no_activation,
}


def _no_four_bits(op: Op) -> str:
    held = op.inputs[1]
    if held is None or held.dtype != "int4" or held.shape[-1] < data(op)[0].shape[-1]:
        return ""
    return phrase("CONV_2D with int4 weights; its reader cannot turn them around")


def _no_complex(op: Op) -> str:
    is_complex = any(t.dtype.startswith("complex") for t in data(op))
    return phrase("{kind} of complex numbers; it has none", op.kind) if is_complex else ""


# The same for its rules, with what its reader says itself.
LIMITED: dict[str, tuple[Check, ...]] = {
    "CAST": (_no_complex,),
    "CONV_2D": (_no_four_bits,),
    **{kind: (check,) for kind, check in FLAWS.items()},
}
