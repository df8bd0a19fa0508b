"""The float form of a quantized model: the same ops on real numbers, with the same answers."""

import numpy as np
import pytest

from litesmith.anatomy.known_times import SLOW_KINDS
from litesmith.errors import CannotApply
from litesmith.ir.build import Builder
from litesmith.ir.ops import OPS
from litesmith.passes.core.recipe import apply, is_float
from litesmith.precision.float_form import float_form
from litesmith.profiling.events import XNNPACK
from litesmith.profiling.op_times import profile_ops
from tests import zoo
from tests.quantized import worst
from tests.zoo_float import context, few, residual
from tests.zoo_slow import int8_of, prelu_net, transformer, without_float_form


@pytest.mark.parametrize("make", [residual, prelu_net, transformer, zoo.convnet])
def test_it_has_the_same_ops_and_answers(make) -> None:
    reference = make()
    quantized = int8_of(reference)
    made = float_form(quantized)
    kinds = [op.kind for op in quantized.main.ops if not OPS[op.kind].rescales]
    assert is_float(made)
    assert [op.kind for op in made.main.ops] == kinds
    assert worst(reference, made, few(reference)) > 25


@pytest.mark.parametrize("make", [without_float_form, zoo.blockwise, zoo.branches])
def test_what_has_none_is_refused(make) -> None:
    with pytest.raises(CannotApply):
        float_form(make())


ALONE = ("ABS", "HARD_SWISH", "L2_NORMALIZATION", "RELU", "RELU6", "RELU_N1_TO_1", "SOFTMAX")


@pytest.mark.parametrize("kind", ALONE)
def test_kinds_that_are_known_to_be_slow_leave_xnnpack(kind: str) -> None:
    assert kind in SLOW_KINDS
    b = Builder()
    model = b.model(b.op(kind, b.input("x", (1, 8, 8, 16))))
    quantized = apply(model, f"quantize(only=[{kind}])", context(model)).model
    (own,) = (op for op in profile_ops(quantized, runs=2).ops if op.kind == kind)
    assert own.kernel not in ("", XNNPACK)


def test_layers_are_not_known_to_be_slow() -> None:
    assert not SLOW_KINDS & {"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "ADD"}
    assert np.all([kind in OPS for kind in SLOW_KINDS])
