"""Shape rules, MAC counts and kernels on calls that make no sense."""

from math import prod

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from litesmith import schema
from litesmith.ir.dtype import DTYPES
from litesmith.ir.ops import OPS, infer_shapes, options_or_defaults, output_dtypes
from litesmith.ir.types import Op, Record, Tensor
from litesmith.numeric.kernels import evaluate
from tests.draws import draws
from tests.op_cases_shaping import CASES
from tests.op_models import build

# Anything a file could hold in place of a sensible value.
SIZES = st.one_of(st.integers(-3, 9), st.sampled_from([0, -(2**31), 2**31 - 1, 2**31, 2**63]))
VALUES = st.one_of(st.integers(-3, 9), st.sampled_from([-(2**31), 2**31 - 1]))
SHAPES = st.lists(SIZES, max_size=6).map(tuple)


@st.composite
def tensors(draw_one: st.DrawFn) -> Tensor | None:
    kind = draw_one(st.sampled_from(["none", "computed", "constant", "float", "text"]))
    shape = draw_one(SHAPES)
    if kind == "none":
        return None
    if kind == "computed":
        return Tensor("t", shape, draw_one(st.sampled_from(sorted(DTYPES))))
    values = draw_one(st.lists(VALUES, max_size=8))
    if kind == "text":
        return Tensor("t", shape, "string", np.zeros(len(values), np.uint8))
    dtype = draw_one(st.sampled_from(["int32", "int64"])) if kind == "constant" else "float32"
    data = np.array(values, dtype)
    return Tensor("t", draw_one(st.sampled_from([shape, data.shape])), dtype, data)


@st.composite
def records(draw_one: st.DrawFn, table: str) -> Record:
    fields = {}
    for name, field in schema.TABLES[table].items():
        if field.vector:
            fields[name] = tuple(draw_one(st.lists(VALUES, max_size=5)))
        elif field.kind == "enum":
            names = schema.ENUMS[field.type].names
            fields[name] = draw_one(st.sampled_from([*names, 99]))
        elif field.type.startswith("float"):
            fields[name] = draw_one(st.floats())
        elif field.kind == "scalar":
            fields[name] = draw_one(st.booleans() if field.type == "bool" else VALUES)
    return Record(table, fields)


@st.composite
def broken_calls(draw_one: st.DrawFn) -> tuple[str, list[Tensor | None], Record | None]:
    """A sensible call with one thing replaced, or nothing sensible at all."""
    kind = draw_one(st.sampled_from([kind for kind in CASES if CASES[kind]]))
    op = build(kind, draw_one(st.sampled_from(CASES[kind]))).op
    inputs, options = list(op.inputs), op.options
    table = OPS[kind].options
    match draw_one(st.sampled_from(["input", "length", "options", "table", "all"])):
        case "input" if inputs:
            inputs[draw_one(st.integers(0, len(inputs) - 1))] = draw_one(tensors())
        case "length":
            inputs = inputs[: draw_one(st.integers(0, len(inputs)))]
        case "options" if table:
            options = draw_one(records(table))
        case "table":
            options = draw_one(records(draw_one(st.sampled_from(["AddOptions", "PackOptions"]))))
        case _:
            inputs = draw_one(st.lists(tensors(), max_size=5))
            options = draw_one(records(table)) if table else None
    return kind, inputs, options


@settings(draws(3000, *HealthCheck), derandomize=True)
@given(broken_calls())
def test_rules_bear_every_call(call: tuple[str, list[Tensor | None], Record | None]) -> None:
    kind, inputs, options = call
    shapes = infer_shapes(kind, inputs, options)
    assert shapes is None or len(shapes) <= 4096
    assert all(0 <= size < 2**31 for shape in shapes or () for size in shape)
    count = len(shapes or ((),))
    assert len(output_dtypes(kind, inputs, options, count)) == count
    outputs = tuple(Tensor("y", shape) for shape in shapes or ((-1, 2),))
    macs = OPS[kind].macs
    if macs is not None:
        assert macs(Op(kind, tuple(inputs), outputs, options)) >= 0


@settings(draws(1500, *HealthCheck), derandomize=True)
@given(broken_calls())
def test_evaluate_raises_nothing_but_value_errors(
    call: tuple[str, list[Tensor | None], Record | None],
) -> None:
    kind, inputs, options = call
    arrays = [_array(tensor) for tensor in inputs]
    shapes = infer_shapes(kind, inputs, options) or ((),)
    assume(all(prod(shape) <= 2**20 for shape in shapes))
    dtypes = output_dtypes(kind, inputs, options, len(shapes))
    outputs = tuple(Tensor("y", s, d) for s, d in zip(shapes, dtypes, strict=True))
    try:
        results = evaluate(Op(kind, tuple(inputs), outputs, options), arrays)
    except ValueError as error:
        assert str(error)
    else:
        assert [str(result.dtype) for result in results] == list(dtypes)


def _array(tensor: Tensor | None) -> np.ndarray | None:
    if tensor is None or not all(0 <= size < 99 for size in tensor.shape):
        return None
    if tensor.data is not None:
        return tensor.data
    dtype = DTYPES[tensor.dtype].storage
    return np.ones(tensor.shape, dtype) if tensor.elements < 2**16 else None


@pytest.mark.parametrize(
    ("kind", "arrays", "options", "why"),
    [
        ("ADD", [np.ones(2, np.int8)] * 2, {}, "an array of int8; the kernel takes float32"),
        ("ADD", [np.ones(2, np.float32), np.ones(2, np.int32)], {}, "arrays of float32 and int32"),
        ("ADD", [np.ones(2, np.float32)], {}, "ADD needs 2 inputs"),
        ("ADD", [np.float32([np.inf])] * 2, {}, "a result is infinite"),
        ("CAST", [np.float32([np.nan])], {}, "values that int32 cannot hold"),
        ("CAST", [np.float32([2**31])], {}, "values that int32 cannot hold"),
        ("DIV", [np.ones(2, np.int32), np.zeros(2, np.int32)], {}, "a divisor is 0"),
        (
            "FILL",
            [np.array([2**20, 2**20], np.int32), np.int32(1)],
            {},
            "is too large",
        ),
        ("GATHER", [np.ones(3, np.float32), np.array([-1], np.int32)], {}, "indices from -1 to -1"),
        ("PAD", [np.ones(2, np.int8), np.array([[1, 1]], np.int32)], {}, "an array of int8"),
        ("POW", [np.ones(2, np.int32), np.array([1, -1], np.int32)], {}, "to the power of -1"),
        ("RELU", [np.ones(2, np.int8)], {}, "an array of int8"),
        ("RESHAPE", [np.ones(5, np.float32), np.array([2, -1], np.int32)], {}, "is not defined"),
        ("SOFTMAX", [np.float32([np.inf, 1])], {"beta": 1.0}, "finite numbers"),
        ("SQRT", [np.ones(2, np.float64)], {}, "an array of float64"),
        ("SUB", [np.ones(2, np.float32)] * 2, {"fused_activation_function": "TANH"}, "'TANH'"),
        ("QUANTIZE", [np.ones(2, np.float32)], {}, "QUANTIZE has no kernel"),
    ],
)
def test_evaluate_refuses(
    kind: str, arrays: list[np.ndarray], options: dict[str, float | str], why: str
) -> None:
    inputs = tuple(Tensor("x", array.shape, str(array.dtype)) for array in arrays)
    record = options_or_defaults(kind, None).set(**options)
    dtype = "int32" if kind == "CAST" else str(arrays[0].dtype)
    op = Op(kind, inputs, (Tensor("y", arrays[0].shape, dtype),), record)
    with pytest.raises(ValueError, match=why):
        evaluate(op, arrays)


def test_evaluate_casts_to_the_tensors_type_whatever_the_option_says() -> None:
    op = Op("CAST", (Tensor("x", (2,)),), (Tensor("y", (2,), "int64"),), Record("CastOptions"))
    (result,) = evaluate(op, [np.float32([1.7, -1.7])])
    assert (result.dtype, result.tolist()) == (np.int64, [1, -1])


def test_evaluate_refuses_types_that_numpy_does_not_have() -> None:
    op = Op("RELU", (Tensor("x", (2,), "bfloat16"),), (Tensor("y", (2,), "bfloat16"),))
    with pytest.raises(ValueError, match="tensor 'x': bfloat16 has no plain array"):
        evaluate(op, [np.zeros(2, np.uint16)])
