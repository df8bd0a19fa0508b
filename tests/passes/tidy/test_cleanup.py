"""What clean-up takes away, what it must leave, and the reason it gives."""

from dataclasses import replace

import numpy as np

from litesmith.ir.build import Builder
from litesmith.ir.model_text import lines
from litesmith.ir.types import Model, Quant, Tensor
from litesmith.passes.core.recipe import apply
from tests.zoo import described, noise, same_names, stateful, variables


def kinds(model: Model) -> list[str]:
    return [op.kind for op in model.main.ops]


def cleaned(b: Builder, *outputs: Tensor) -> tuple[Model, str]:
    """The model after clean-up, and all reasons in one text."""
    change = apply(b.model(*outputs), "cleanup")
    return change.model, " ".join(skip.why for skip in change.skipped)


def test_text_in_text_out() -> None:
    b = Builder()
    x = b.input("x", (2, 3))
    y = b.op("RESHAPE", b.op("RELU", x, name="r"), [2, 3], name="same")
    z = b.op("NEG", y, name="z")
    model, _ = cleaned(b, z)
    assert list(lines(model)) == [
        "graph 0 'main'(x float32[2,3]) -> z",
        "  0 RELU(x) -> r float32[2,3]",
        "  1 NEG(r) -> z float32[2,3]",
    ]


def test_an_output_keeps_its_name_when_its_op_goes() -> None:
    b = Builder()
    x = b.input("x", (2, 3))
    y = b.op("RESHAPE", b.op("RELU", x, name="inner"), [2, 3], name="answer")
    model, _ = cleaned(b, y)
    assert kinds(model) == ["RELU"]
    assert [t.name for t in model.main.outputs] == ["answer"]


def test_a_copy_from_input_to_output_must_stay() -> None:
    b = Builder()
    model, why = cleaned(b, b.op("RESHAPE", b.input("x", (4,)), [4]))
    assert kinds(model) == ["RESHAPE"]
    assert "which must stay" in why


def test_one_value_as_two_outputs_stays_two() -> None:
    b = Builder()
    x = b.op("RELU", b.input("x", (4,)))
    model, why = cleaned(b, b.op("RESHAPE", x, [4]), b.op("CAST", x))
    assert len(model.main.outputs) == len(set(model.main.outputs)) == 2
    assert len(kinds(model)) == 2
    assert "another output" in why


def test_a_reshape_at_a_free_size_stays() -> None:
    b = Builder()
    x = b.op("RELU", b.input("x", (-1, 4)))
    b.ops[-1] = replace(b.ops[-1], outputs=(replace(x, dynamic=(-1, 4)),))
    model, why = cleaned(b, b.op("NEG", b.op("RESHAPE", b.ops[-1].outputs[0], [1, 4])))
    assert kinds(model) == ["RELU", "RESHAPE", "NEG"]
    assert "a dimension is free" in why


def test_what_looks_like_nothing_but_is_not() -> None:
    """Same shape in and out, yet the values move, change or are rescaled."""
    b = Builder()
    x = b.op("RELU", b.input("x", (3, 3)))
    y = b.op("TRANSPOSE", x, [1, 0])
    y = b.op("STRIDED_SLICE", y, [-1, -1], [-4, -4], [-1, -1], begin_mask=0, end_mask=0)
    y = b.op("MUL", y, np.float32(1), fused_activation_function="RELU6")
    y = b.op("ADD", y, noise(3))
    y = b.op("CAST", b.op("CAST", y, dtype="int32"), dtype="float32")
    model, _ = cleaned(b, y)
    assert kinds(model) == ["RELU", "TRANSPOSE", "STRIDED_SLICE", "MUL", "ADD", "CAST", "CAST"]


def test_quantize_to_another_scale_stays_and_to_the_same_goes() -> None:
    b = Builder()
    x = b.op("QUANTIZE", b.input("x", (3,)), dtype="int8", quant=Quant.of(0.1))
    y = b.op("QUANTIZE", x, dtype="int8", quant=Quant.of(0.1))
    z = b.op("QUANTIZE", y, dtype="int8", quant=Quant.of(0.2))
    model, _ = cleaned(b, b.op("DEQUANTIZE", z, dtype="float32"))
    assert kinds(model) == ["QUANTIZE", "QUANTIZE", "DEQUANTIZE"]


def test_transposes_that_undo_each_other_go() -> None:
    b = Builder()
    x = b.op("RELU", b.input("x", (1, 2, 3, 4)))
    y = b.op("TRANSPOSE", b.op("TRANSPOSE", x, [0, 3, 1, 2]), [0, 2, 3, 1])
    model, _ = cleaned(b, b.op("NEG", y))
    assert kinds(model) == ["RELU", "NEG"]


def test_repeated_ops_are_joined_unless_options_differ() -> None:
    b = Builder()
    x = b.input("x", (4, 4))
    same = b.op("ADD", b.op("SUM", x, [0]), b.op("SUM", x, [0]))
    other = b.op("SUM", x, [0], keep_dims=True)
    model, _ = cleaned(b, b.op("ADD", same, other))
    assert kinds(model) == ["SUM", "ADD", "SUM", "ADD"]


def test_chance_is_not_joined() -> None:
    b = Builder()
    x = b.op("RANDOM_UNIFORM", [4], seed=0)
    y = b.op("RANDOM_UNIFORM", [4], seed=0)
    model, _ = cleaned(b, b.op("SUB", x, y))
    assert kinds(model) == ["RANDOM_UNIFORM", "RANDOM_UNIFORM", "SUB"]


def test_effects_are_never_dead() -> None:
    for model in (stateful(), variables()):
        assert kinds(apply(model, "cleanup").model) == kinds(model)


def test_dead_chains_go_whole() -> None:
    b = Builder()
    x = b.input("x", (4,))
    b.op("EXP", b.op("NEG", b.op("ABS", x)))
    model, _ = cleaned(b, b.op("RELU", x))
    assert kinds(model) == ["RELU"]


def test_equal_constants_become_one() -> None:
    b = Builder()
    x = b.input("x", (4,))
    y = b.op("MUL", b.op("ADD", x, noise(4)), noise(4))
    model, _ = cleaned(b, y)
    assert sum(t.is_const for t in model.main.tensors) == 1


def test_equal_bytes_with_other_meaning_share_only_the_bytes() -> None:
    b = Builder()
    x = b.input("x", (4,))
    a = b.const(noise(4))
    c = b.const(noise(4).reshape(2, 2))
    y = b.op("MUL", b.op("RESHAPE", b.op("ADD", x, a), [2, 2]), c)
    model, _ = cleaned(b, y)
    constants = [t for t in model.main.tensors if t.is_const and t.dtype == "float32"]
    assert [t.shape for t in constants] == [(4,), (2, 2)]
    assert np.shares_memory(constants[0].data, constants[1].data)  # type: ignore[arg-type]


def test_other_scales_keep_constants_apart() -> None:
    b = Builder()
    x = b.input("x", (4,), "int8", Quant.of(0.1))
    codes = np.arange(4, dtype=np.int8)
    one, two = b.const(codes, quant=Quant.of(0.1)), b.const(codes, quant=Quant.of(0.2))
    y = b.op("ADD", b.op("ADD", x, one, quant=Quant.of(0.3)), two, quant=Quant.of(0.4))
    model, _ = cleaned(b, y)
    assert sum(t.is_const for t in model.main.tensors) == 2


def test_spare_parts_go_and_are_mentioned() -> None:
    change = apply(described(), "cleanup")
    assert not change.model.spare
    assert "unused" not in [t.name for t in change.model.main.tensors]
    assert "dropped 1 buffers that nothing refers to" in change.touched
    assert change.model.attached == described().attached


def test_names_do_not_decide_what_is_equal() -> None:
    assert len(kinds(apply(same_names(), "cleanup").model)) == len(kinds(same_names()))
