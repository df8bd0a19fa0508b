"""Every row of the op table and every kernel, against the runtime."""

import numpy as np
import pytest

from litesmith import schema
from litesmith.ir.dtype import DTYPES
from litesmith.ir.ops import OPS
from litesmith.numeric.kernels import KERNELS, evaluate
from tests.op_cases import Case
from tests.op_cases_shaping import CASES
from tests.op_models import build, run

ALL = [
    pytest.param(kind, case, id=f"{kind}-{n}")
    for kind in CASES
    for n, case in enumerate(CASES[kind])
]


@pytest.mark.parametrize(("kind", "case"), ALL)
def test_row_and_kernel_agree_with_the_runtime(kind: str, case: Case) -> None:
    built = build(kind, case)
    wanted = run(built.model, built.fed)
    assert built.op.outputs
    # The builder wrote the rules' answers into the file; the runtime worked them out anew.
    assert [t.shape for t in built.op.outputs] == [array.shape for array in wanted]
    assert [t.dtype for t in built.op.outputs] == [str(array.dtype) for array in wanted]
    if kind not in KERNELS:
        return
    results = evaluate(built.op, built.arrays)
    for result, array in zip(results, wanted, strict=True):
        assert (result.shape, result.dtype) == (array.shape, array.dtype)
        exact = array.dtype.kind not in "fc" or not array.size
        slack = 0 if exact else case.error * float(np.abs(array).max())
        np.testing.assert_allclose(result, array, rtol=0, atol=slack)


ROLES = {letter + ending for letter in "xwbsiv" for ending in ("", "?", "*")}


@pytest.mark.parametrize("kind", OPS)
def test_row_is_well_formed(kind: str) -> None:
    row = OPS[kind]
    assert row.inputs == "*" or set(row.inputs.split()) <= ROLES
    assert (
        row.options == ""
        or row.options in schema.UNIONS["BuiltinOptions"] + schema.UNIONS["BuiltinOptions2"]
    )
    assert row.scale in {"free", "same", "fixed", "none"}
    assert bool(row.fixed) == (row.scale == "fixed")
    assert set(row.fixed) <= set(DTYPES)
    # A kernel in integers has a rule for its output's scale, or an output that never has one.
    assert row.scale != "none" or not row.versions or row.dtype != "x"
    assert (row.axis is None) == (row.weight is None)
    assert (row.macs is not None) == (
        row.weight is not None and kind != "EMBEDDING_LOOKUP"
    ) or kind == "BATCH_MATMUL"
    assert set(row.defaults) <= set(schema.TABLES.get(row.options, {}))
    for word in row.dtype.split():
        name = word.removeprefix("option:")
        known = schema.TABLES[row.options] if name != word else {"x", "each", *DTYPES}
        assert name in known


@pytest.mark.parametrize("kind", OPS)
def test_traits_of_a_row_agree(kind: str) -> None:
    row = OPS[kind]
    options = schema.TABLES.get(row.options, {})
    assert not row.is_layer or (row.inputs == "x w b?" and row.macs and row.fuses_activation)
    assert not row.is_depthwise or (row.is_layer and row.depth is None)
    assert row.depth is None or row.axis not in (None, row.depth)
    assert not row.fuses_activation or "fused_activation_function" in options
    assert not row.has_window or "stride_w" in options
    assert not row.spreads or "stride_w" in options
    assert not row.is_commutative or row.inputs == "x x"
    assert not row.arithmetic or (row.inputs == "x x" and row.arithmetic in "+-*/")
    assert not row.is_softmax or row.makes_probabilities
    assert not row.makes_probabilities or row.saturates
    assert not row.saturates or row.scale == "fixed"
    assert not row.rescales or row.converts
    assert not row.takes_shape or row.setting is not None
    assert not row.moves_data or (row.scale == "same" and row.data == 0)


def test_every_options_table_belongs_to_an_op() -> None:
    named = {row.options for row in OPS.values()}
    assert set(schema.UNIONS["BuiltinOptions"]) | set(schema.UNIONS["BuiltinOptions2"]) <= named


def test_every_kernel_and_every_shape_rule_has_a_case() -> None:
    assert {kind for kind in KERNELS if not CASES.get(kind)} == set()
    assert {kind for kind, row in OPS.items() if row.shape and not CASES.get(kind)} == set()
    assert list(KERNELS) == sorted(KERNELS)


def test_weight_axis_is_where_the_output_channels_are() -> None:
    checked = 0
    for kind, row in OPS.items():
        has_rows = row.weight is not None and row.axis is not None
        for case in CASES.get(kind, []) if has_rows and kind in KERNELS else []:
            op = build(kind, case).op
            weight = op.inputs[row.weight or 0]
            assert weight is not None
            channels = op.outputs[0].shape[-1] if kind != "EMBEDDING_LOOKUP" else 0
            assert channels in (0, weight.shape[row.axis or 0])
            if row.depth is not None and row.data is not None:
                data = op.inputs[row.data]
                assert data is not None and data.elements % weight.shape[row.depth] == 0
            checked += 1
    assert checked > 15


@pytest.mark.parametrize(
    ("kind", "place", "macs"),
    [
        ("CONV_2D", 0, 5 * 6 * 4 * 3 * 3 * 3),
        ("CONV_2D", 4, 4 * 4 * 6 * 3 * 3 * 2),
        ("DEPTHWISE_CONV_2D", 0, 5 * 6 * 3 * 3 * 3),
        ("FULLY_CONNECTED", 0, 2 * 4 * 3),
        ("TRANSPOSE_CONV", 0, 3 * 4 * 2 * 4 * 3 * 3),
        ("CONV_3D", 0, 3 * 4 * 5 * 4 * 2 * 2 * 3 * 2),
        ("CONV_3D_TRANSPOSE", 1, 2 * 3 * 3 * 3 * 2 * 2 * 2),
        ("BATCH_MATMUL", 0, 2 * 3 * 4 * 5),
        ("BATCH_MATMUL", 1, 2 * 3 * 4 * 5),
        ("RNN", 0, 2 * (4 * 3 + 4 * 4)),
        ("UNIDIRECTIONAL_SEQUENCE_LSTM", 0, 5 * 2 * 4 * (4 * 3 + 4 * 4)),
    ],
)
def test_macs(kind: str, place: int, macs: int) -> None:
    count = OPS[kind].macs
    assert count is not None
    assert count(build(kind, CASES[kind][place]).op) == macs
