"""Torch ops that work on each element by itself, and those that combine elements."""

# pyright: reportUnknownMemberType=false
# torch leaves parts of its types open.

from collections.abc import Callable

import numpy as np
import torch
from torch.nn import functional

from litesmith.ir.ops import options_or_defaults
from litesmith.ir.shape_rule import from_front
from litesmith.ir.types import Array, Op, Record
from litesmith.numeric.arrays import integer, integers

# Real numbers are torch tensors; everything else (integers, truths, settings) is numpy.
Value = torch.Tensor | Array
TorchOp = Callable[..., Value | list[torch.Tensor] | list[Value]]

ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor] | None] = {
    "NONE": None,
    "RELU": functional.relu,
    "RELU6": functional.relu6,
    "RELU_N1_TO_1": functional.hardtanh,
    "SIGN_BIT": lambda x: torch.signbit(x).float(),
    "TANH": torch.tanh,
}


def options_of(op: Op) -> Record:
    return options_or_defaults(op.kind, op.options)


def apply_activation(op: Op, result: torch.Tensor) -> torch.Tensor:
    """The result after the activation that the op's options name."""
    options = op.options
    if options is None or "fused_activation_function" not in options:
        return result
    activate = ACTIVATIONS[options.word("fused_activation_function")]
    return result if activate is None else activate(result)


def indices(places: Array, like: torch.Tensor) -> torch.Tensor:
    """Integers or booleans in a form that torch can index with."""
    kind = np.bool_ if places.dtype == np.bool_ else np.int64
    return torch.from_numpy(np.ascontiguousarray(places, kind)).to(like.device)


def numbers(value: Value) -> Array:
    """The value as a plain array, apart from any gradient."""
    return value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value


Unary = Callable[[torch.Tensor], torch.Tensor]
Binary = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
Fold = Callable[[torch.Tensor, list[int], bool], torch.Tensor]


def unary(compute: Unary) -> TorchOp:
    def one(op: Op, x: torch.Tensor) -> torch.Tensor:
        return compute(x)

    return one


def binary(compute: Binary) -> TorchOp:
    def two(op: Op, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return apply_activation(op, compute(x, y))

    return two


def compared(compute: Binary) -> TorchOp:
    """Makes an op with boolean results, which have no gradient."""

    def truths(op: Op, x: torch.Tensor, y: torch.Tensor) -> Array:
        return numbers(compute(x, y))

    return truths


def reducer(fold: Fold) -> TorchOp:
    """Axes may be negative or repeated."""

    def reduce(op: Op, x: torch.Tensor, axes: Array) -> torch.Tensor:
        axes_to_reduce = sorted({from_front(axis, x.ndim) for axis in integers(axes)})
        return fold(x, axes_to_reduce, bool(options_of(op)["keep_dims"])) if axes_to_reduce else x

    return reduce


def _product(x: torch.Tensor, axes: list[int], keep: bool) -> torch.Tensor:
    for axis in reversed(axes):
        x = x.prod(axis, keepdim=keep)
    return x


def _prelu(x: torch.Tensor, alpha: torch.Tensor) -> torch.Tensor:
    return torch.where(x >= 0, x, x * alpha)


def _floor_modulo(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x - torch.floor(x / y) * y


def gelu(op: Op, x: torch.Tensor) -> torch.Tensor:
    approximate = "tanh" if options_of(op)["approximate"] else "none"
    return functional.gelu(x, approximate=approximate)


def leaky_relu(op: Op, x: torch.Tensor) -> torch.Tensor:
    return functional.leaky_relu(x, options_of(op).number("alpha"))


def add_n(op: Op, *parts: torch.Tensor) -> torch.Tensor:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def softmax(op: Op, x: torch.Tensor) -> torch.Tensor:
    beta = options_of(op).number("beta")
    return functional.softmax(x if beta == 1 else x * beta, -1)


def l2_normalize(op: Op, x: torch.Tensor) -> torch.Tensor:
    return apply_activation(op, x / x.square().sum(-1, keepdim=True).sqrt().clamp_min(1e-6))


def local_response(op: Op, x: torch.Tensor) -> torch.Tensor:
    """Divides by a power of the squares summed over neighbouring channels."""
    options = options_of(op)
    radius = options.integer("radius")
    flat = functional.pad(x.square().reshape(-1, 1, x.shape[-1]), (radius, radius))
    near = functional.avg_pool1d(flat, 2 * radius + 1, 1) * (2 * radius + 1)
    scale = options.number("bias") + options.number("alpha") * near.reshape(x.shape)
    return x * scale ** -options.number("beta")


def cumulative_sum(op: Op, x: torch.Tensor, axis: Array) -> torch.Tensor:
    options, along = options_of(op), from_front(integer(axis), x.ndim)
    ordered = x.flip(along) if options["reverse"] else x
    sums = ordered.cumsum(along)
    sums = sums - ordered if options["exclusive"] else sums
    return sums.flip(along) if options["reverse"] else sums


def top_k(op: Op, x: torch.Tensor, count: Array) -> list[Value]:
    """In falling order, the first of equals first."""
    values, places = torch.sort(x, dim=-1, descending=True, stable=True)
    most = integer(count)
    return [values[..., :most], numbers(places[..., :most]).astype(op.outputs[1].dtype)]


def select(op: Op, condition: Array, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """A condition of the same shape, or one for each entry of the first dimension."""
    if condition.shape != x.shape:
        condition = condition.reshape(-1, *(1,) * (x.ndim - 1))
    return torch.where(indices(condition, x), x, y).reshape(x.shape)


def select_v2(op: Op, condition: Array, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.where(indices(condition, x), x, y)


def cast(op: Op, x: torch.Tensor) -> Value:
    """Half precision is float32 here too, rounded."""
    target = op.outputs[0].dtype
    if target == "float16":
        return x.half().to(x.dtype)
    return x if target.startswith("float") else numbers(x).astype(target)


EACH: dict[str, TorchOp] = {
    "ABS": unary(torch.abs),
    "ADD": binary(torch.add),
    "ADD_N": add_n,
    "ATAN2": binary(torch.atan2),
    "CAST": cast,
    "CEIL": unary(torch.ceil),
    "COS": unary(torch.cos),
    "CUMSUM": cumulative_sum,
    "DENSIFY": unary(lambda x: x),
    "DEQUANTIZE": unary(lambda x: x),
    "DIV": binary(torch.div),
    "ELU": unary(functional.elu),
    "EQUAL": compared(torch.eq),
    "EXP": unary(torch.exp),
    "FLOOR": unary(torch.floor),
    "FLOOR_DIV": binary(lambda x, y: torch.floor(x / y)),
    "FLOOR_MOD": binary(_floor_modulo),
    "GELU": gelu,
    "GREATER": compared(torch.gt),
    "GREATER_EQUAL": compared(torch.ge),
    "HARD_SWISH": unary(functional.hardswish),
    "L2_NORMALIZATION": l2_normalize,
    "LEAKY_RELU": leaky_relu,
    "LESS": compared(torch.lt),
    "LESS_EQUAL": compared(torch.le),
    "LOCAL_RESPONSE_NORMALIZATION": local_response,
    "LOG": unary(torch.log),
    "LOGISTIC": unary(torch.sigmoid),
    "LOG_SOFTMAX": unary(lambda x: functional.log_softmax(x, -1)),
    "MAXIMUM": binary(torch.maximum),
    "MEAN": reducer(lambda x, axes, keep: x.mean(axes, keepdim=keep)),
    "MINIMUM": binary(torch.minimum),
    "MUL": binary(torch.mul),
    "NEG": unary(torch.neg),
    "NOT_EQUAL": compared(torch.ne),
    "POW": binary(torch.pow),
    "PRELU": binary(_prelu),
    "QUANTIZE": unary(lambda x: x),
    "REDUCE_MAX": reducer(lambda x, axes, keep: x.amax(axes, keepdim=keep)),
    "REDUCE_MIN": reducer(lambda x, axes, keep: x.amin(axes, keepdim=keep)),
    "REDUCE_PROD": reducer(_product),
    "RELU": unary(functional.relu),
    "RELU6": unary(functional.relu6),
    "RELU_0_TO_1": unary(lambda x: functional.hardtanh(x, 0, 1)),
    "RELU_N1_TO_1": unary(functional.hardtanh),
    "ROUND": unary(torch.round),
    "RSQRT": unary(torch.rsqrt),
    "SELECT": select,
    "SELECT_V2": select_v2,
    "SIGN": unary(torch.sign),
    "SIN": unary(torch.sin),
    "SOFTMAX": softmax,
    "SQRT": unary(torch.sqrt),
    "SQUARE": unary(torch.square),
    "SQUARED_DIFFERENCE": binary(lambda x, y: torch.square(x - y)),
    "SUB": binary(torch.sub),
    "SUM": reducer(lambda x, axes, keep: x.sum(axes, keepdim=keep)),
    "TANH": unary(torch.tanh),
    "TOPK_V2": top_k,
}
