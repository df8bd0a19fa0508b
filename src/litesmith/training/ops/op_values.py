"""What the torch ops share: the values they work on, options, and fused activations."""

from collections.abc import Callable

import numpy as np
import torch
from torch.nn import functional

from litesmith.ir.ops import options_or_defaults
from litesmith.ir.types import Array, Op, Record

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


def activated(op: Op, result: torch.Tensor) -> torch.Tensor:
    """The result after the activation that the op's options name."""
    options = op.options
    if options is None or "fused_activation_function" not in options:
        return result
    activate = ACTIVATIONS[options.word("fused_activation_function")]
    return result if activate is None else activate(result)


def indices(places: Array, like: torch.Tensor) -> torch.Tensor:
    """Whole numbers or truths where torch can index with them."""
    kind = np.bool_ if places.dtype == np.bool_ else np.int64
    return torch.from_numpy(np.ascontiguousarray(places, kind)).to(like.device)


def numbers(value: Value) -> Array:
    """The value as a plain array, apart from any gradient."""
    return value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value
