"""Typical times of kinds of ops, where nothing was measured: nanoseconds on one thread of one x86
CPU. They compare forms, and do not predict how long a run takes. `bench/forms.py` measures them."""

from typing import NamedTuple

import numpy as np

from litesmith.ir.ops import op_macs
from litesmith.ir.types import Op


class Known(NamedTuple):
    """Nanoseconds per value that an op writes or reads, or per MAC of a layer, in both forms."""

    real: float
    integer: float


class ConversionTimes(NamedTuple):
    """Microseconds of a conversion between float and int8, by the number of values."""

    sizes: tuple[int, ...]
    us: tuple[float, ...]

    def of(self, elements: int) -> float:
        if elements > self.sizes[-1]:
            return self.us[-1] * elements / self.sizes[-1]
        return float(np.interp(elements, self.sizes, self.us))


_VALUES = {
    "ABS": Known(0.09, 5.7),
    "ADD": Known(0.14, 0.15),
    "BATCH_MATMUL": Known(1.5, 11.0),
    "CONCATENATION": Known(0.09, 0.06),
    "ELU": Known(0.25, 0.10),
    "EXP": Known(0.21, 0.31),
    "GELU": Known(0.30, 0.32),
    "HARD_SWISH": Known(0.10, 3.7),
    "L2_NORMALIZATION": Known(0.67, 4.1),
    "LEAKY_RELU": Known(0.11, 0.04),
    "LOGISTIC": Known(0.20, 0.10),
    "LOG_SOFTMAX": Known(1.5, 1.4),
    "MAX_POOL_2D": Known(0.44, 0.14),
    "MAXIMUM": Known(0.15, 0.04),
    "MINIMUM": Known(0.15, 0.04),
    "MUL": Known(0.14, 0.20),
    "PRELU": Known(0.11, 7.1),
    "RELU": Known(0.10, 8.2),
    "RELU6": Known(0.10, 8.2),
    "RELU_0_TO_1": Known(0.11, 9.6),
    "RELU_N1_TO_1": Known(0.10, 6.6),
    "RESHAPE": Known(0.0, 0.0),
    "RESIZE_BILINEAR": Known(0.26, 0.28),
    "SOFTMAX": Known(0.48, 2.1),
    "SQUARED_DIFFERENCE": Known(0.15, 7.6),
    "SUB": Known(0.14, 0.15),
    "TANH": Known(0.22, 0.10),
}
# Times per value read: the windows of a pool, the input of a mean.
_READS = {
    "AVERAGE_POOL_2D": Known(0.05, 0.3),
    "MEAN": Known(0.05, 0.025),
}
# Times per place: the channels are copied together.
_PLACES = {"RESIZE_NEAREST_NEIGHBOR": Known(11.0, 2.7)}
_MACS = {
    "CONV_2D": Known(0.019, 0.006),
    "DEPTHWISE_CONV_2D": Known(0.046, 0.054),
    "FULLY_CONNECTED": Known(0.020, 0.006),
    "TRANSPOSE_CONV": Known(0.030, 0.010),
    # Measured by runs of models with 256 units and 50 steps: a model that keeps a state has no
    # profile.
    "UNIDIRECTIONAL_SEQUENCE_LSTM": Known(0.06, 0.29),
}
# The least time of a place, however few its channels are.
_LEAST = {
    "CONV_2D": Known(1.3, 13.0),
    "FULLY_CONNECTED": Known(1.3, 13.0),
    "SOFTMAX": Known(15.0, 4.0),
}

# All other kinds: layers, and ops that mostly move values.
_OTHER_MACS, _OTHER_VALUES = Known(0.03, 0.015), Known(0.15, 0.08)

# Microseconds for calling any op, and for calling one outside XNNPACK.
_CALL_US, _LEAVING_US = 0.5, 2.5

KNOWN_CONVERSIONS = ConversionTimes((256, 4_096, 65_536, 1_048_576), (0.24, 0.4, 3.8, 130.0))

# Kinds that int8 slows down by more than this factor have no int8 kernel in XNNPACK.
_SLOW = 2.0

SLOW_KINDS = frozenset(
    kind for kind, known in (_VALUES | _READS | _MACS).items() if known.integer > _SLOW * known.real
)

# Further kinds without an XNNPACK kernel, whose builtin int8 kernel is nevertheless fast.
_BUILTIN = ("GELU", "MAXIMUM", "MINIMUM", "RESIZE_NEAREST_NEIGHBOR")


def known_us(op: Op, *, is_integer: bool) -> float:
    """The typical time of an op in one of the forms, by its kind."""
    macs, made = op_macs(op), sum(t.elements for t in op.outputs)
    places = made // max((1, *op.outputs[0].shape[-1:])) if op.outputs else 0
    known, work = _VALUES.get(op.kind, _OTHER_VALUES), made
    if op.kind in _READS:
        high, wide = op.option("filter_height"), op.option("filter_width")
        reads = op.inputs[0].elements if op.inputs[0] is not None else 0
        known = _READS[op.kind]
        work = high * wide * made if isinstance(high, int) and isinstance(wide, int) else reads
    elif op.kind in _PLACES:
        known, work = _PLACES[op.kind], places
    elif macs and op.kind not in _VALUES:
        known, work = _MACS.get(op.kind, _OTHER_MACS), macs
    is_leaving = is_integer and op.kind in (*SLOW_KINDS, *_BUILTIN)
    call = _LEAVING_US if is_leaving else _CALL_US
    form = 1 if is_integer else 0
    least = _LEAST.get(op.kind, Known(0.0, 0.0))
    return call + max(work * known[form], places * least[form]) / 1e3


def is_integer(op: Op) -> bool:
    """Whether an op reads or writes quantized values, or has quantized weights."""
    return any(t.quant is not None for t in (*op.inputs, *op.outputs) if t is not None)


def is_slow_integer(op: Op) -> bool:
    """Whether an op computes with int8 although XNNPACK has only a float kernel for it."""
    return op.kind in SLOW_KINDS and any(t.dtype == "int8" for t in op.outputs)
