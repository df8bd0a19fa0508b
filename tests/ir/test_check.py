"""Every rule of a valid model is broken once, and names what broke it."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from litesmith.errors import BadModel
from litesmith.ir.build import Builder
from litesmith.ir.check import RULES, check, problems
from litesmith.ir.sparse_places import sparse_problem
from litesmith.ir.types import Model, Op, Quant, Record, Signature, Tensor, Value
from litesmith.passes.shrinking.sparsify import without_zeros
from tests.zoo import MODELS, blockwise, branches, convnet, noise, residual_int8, strings


def with_op(model: Model, index: int, **changes) -> Model:
    ops = list(model.main.ops)
    ops[index] = replace(ops[index], **changes)
    return replace(model, graphs=(replace(model.main, ops=tuple(ops)), *model.graphs[1:]))


def with_tensor(model: Model, place: int, **changes) -> Model:
    """One listed tensor replaced in the list and in every op."""
    old = model.main.tensors[place]
    new = replace(old, **changes)

    def swap(tensors):
        return tuple(new if t is old else t for t in tensors)

    ops = tuple(
        replace(op, inputs=swap(op.inputs), outputs=swap(op.outputs)) for op in model.main.ops
    )
    main = replace(
        model.main, ops=ops, tensors=swap(model.main.tensors), inputs=swap(model.main.inputs)
    )
    return replace(model, graphs=(main, *model.graphs[1:]))


def constant_place(model: Model) -> int:
    return next(i for i, t in enumerate(model.main.tensors) if t.is_const)


def bad_dimension() -> Model:
    return with_tensor(convnet(), 0, shape=(1, -8, 8, 3))


def too_large() -> Model:
    return with_tensor(convnet(), 0, shape=(2**31 - 1,) * 4)


def bad_type() -> Model:
    return with_tensor(convnet(), 0, dtype="float12")


def short_constant() -> Model:
    model = convnet()
    return with_tensor(model, constant_place(model), data=noise(3))


def broken_strings() -> Model:
    model = strings()
    return with_tensor(model, constant_place(model), data=np.full(20, 9, np.uint8))


def odd_storage() -> Model:
    model = convnet()
    data = model.main.tensors[constant_place(model)].data
    assert data is not None
    return with_tensor(model, constant_place(model), data=data.view(np.int32))


def sparse_off_shape() -> Model:
    """Three levels of a matrix, which cannot be those of an image."""
    weight = without_zeros(Tensor("w", (4, 8), data=np.eye(4, 8, dtype=np.float32)))
    b = Builder()
    stored = Tensor("w", (4, 1, 1, 8), data=weight.data, sparsity=weight.sparsity)
    filters = b.op("DENSIFY", stored, shape=(4, 1, 1, 8))
    return b.model(b.op("CONV_2D", b.input("x", (1, 2, 2, 8)), filters))


def scales_without_points() -> Model:
    quant = Quant(np.ones(2, np.float32), np.zeros(1, np.int64))
    return with_tensor(residual_int8(), 0, quant=quant)


def scales_off_axis() -> Model:
    return with_tensor(residual_int8(), 0, quant=Quant.of(np.ones(4, np.float32), 0, axis=9))


def wrong_number_of_scales() -> Model:
    return with_tensor(residual_int8(), 0, quant=Quant.of(np.ones(3, np.float32), 0, axis=3))


def block_in_a_block() -> Model:
    model = blockwise()
    w = next(t for t in model.main.tensors if t.name == "w")
    assert w.quant is not None and w.quant.block is not None
    nested = replace(w.quant, block=replace(w.quant.block, scales=w))
    return with_tensor(model, model.main.tensors.index(w), quant=nested)


def unlisted() -> Model:
    model = convnet()
    return replace(model, graphs=(replace(model.main, tensors=model.main.tensors[1:]),))


def listed_twice() -> Model:
    model = convnet()
    tensors = (*model.main.tensors, model.main.tensors[0])
    return replace(model, graphs=(replace(model.main, tensors=tensors),))


def unlisted_scales() -> Model:
    model = blockwise()
    tensors = tuple(t for t in model.main.tensors if t.name != "scales")
    return replace(model, graphs=(replace(model.main, tensors=tensors),))


def no_such_operator() -> Model:
    return with_op(convnet(), 0, kind="CONV_4D")


def zero_stride() -> Model:
    options = convnet().main.ops[0].options
    assert options is not None
    return with_op(convnet(), 0, options=options.set(stride_h=0))


def default_stride() -> Model:
    return with_op(convnet(), 0, options=Record("Conv2DOptions"))


def unknown_activation() -> Model:
    options = convnet().main.ops[0].options
    assert options is not None
    return with_op(convnet(), 0, options=options.set(fused_activation_function=99))


def too_few_inputs() -> Model:
    model = convnet()
    return with_op(model, 0, inputs=model.main.ops[0].inputs[:1])


def too_many_inputs() -> Model:
    model = convnet()
    return with_op(model, 0, inputs=model.main.ops[0].inputs * 2)


def no_output() -> Model:
    model = convnet()
    extra = replace(model.main.ops[0], outputs=())
    return replace(model, graphs=(replace(model.main, ops=(*model.main.ops, extra)),))


def missing_input() -> Model:
    model = convnet()
    return with_op(model, 0, inputs=(None, *model.main.ops[0].inputs[1:]))


def with_parts(weight: np.ndarray, bias: np.ndarray) -> Model:
    """One fully connected layer of eight inputs and these constants, whether or not they fit."""
    b = Builder()
    return b.model(b.op("FULLY_CONNECTED", b.input("x", (1, 8)), weight, bias, shape=(1, 4)))


def flat_weights() -> Model:
    return with_parts(noise(32), noise(4))


def short_bias() -> Model:
    return with_parts(noise(4, 8), noise(3))


def read_too_early() -> Model:
    model = convnet()
    return replace(model, graphs=(replace(model.main, ops=model.main.ops[::-1]),))


def written_twice() -> Model:
    model = convnet()
    return replace(model, graphs=(replace(model.main, ops=(*model.main.ops, model.main.ops[-1])),))


def never_written() -> Model:
    model = convnet()
    return replace(model, graphs=(replace(model.main, ops=model.main.ops[:-1]),))


def no_such_graph() -> Model:
    model = branches()
    place = next(i for i, op in enumerate(model.main.ops) if op.kind == "IF")
    options = Record("IfOptions", {"then_subgraph_index": 9, "else_subgraph_index": 1})
    return with_op(model, place, options=options)


def endless() -> Model:
    model = branches()
    place = next(i for i, op in enumerate(model.main.ops) if op.kind == "IF")
    options = Record("IfOptions", {"then_subgraph_index": 0, "else_subgraph_index": 1})
    return with_op(model, place, options=options)


def strange_signature() -> Model:
    inner = convnet().main.ops[0].outputs[0]
    return replace(convnet(), signatures=(Signature("s", 0, (("x", inner),), ()),))


def same_argument_twice() -> Model:
    model = convnet()
    x = model.main.inputs[0]
    return replace(model, signatures=(Signature("s", 0, (("x", x), ("x", x)), ()),))


def signature_of_nothing() -> Model:
    return replace(convnet(), signatures=(Signature("s", 7, (), ()),))


def same_key_twice() -> Model:
    model = convnet()
    return replace(model, signatures=model.signatures * 2)


BROKEN: dict[Callable[[], Model], tuple[str, str]] = {
    bad_dimension: ("shapes are possible", "shape (1, -8, 8, 3) has an impossible dimension"),
    too_large: ("shapes are possible", "larger than any memory"),
    bad_type: ("shapes are possible", "no element type 'float12'"),
    short_constant: ("constants fill their shapes", "its constant has 12 of float32"),
    broken_strings: ("constants fill their shapes", "strings do not fit into 20 bytes"),
    odd_storage: ("constants fill their shapes", "of int32"),
    sparse_off_shape: ("sparse encodings fit their shapes", "does not fit its shape (4, 1, 1, 8)"),
    scales_without_points: ("scales fit their tensors", "2 scales but 1 zero points"),
    scales_off_axis: ("scales fit their tensors", "along axis 9"),
    wrong_number_of_scales: ("scales fit their tensors", "3 scales along axis 3"),
    block_in_a_block: ("scales fit their tensors", "itself blockwise"),
    unlisted: ("tensors in use are listed", "does not list tensor 'image'"),
    listed_twice: ("tensors in use are listed", "lists a tensor twice"),
    unlisted_scales: ("tensors in use are listed", "does not list the scales of tensor 'w'"),
    no_such_operator: ("operators and their options are known", "no operator 'CONV_4D'"),
    zero_stride: ("operators and their options are known", "stride_h is 0; it is at least 1"),
    default_stride: ("operators and their options are known", "stride_w is 0"),
    unknown_activation: ("operators and their options are known", "has the value 99"),
    too_few_inputs: ("operators have their inputs and outputs", "has 1 inputs; it takes 2 to 3"),
    too_many_inputs: ("operators have their inputs and outputs", "has 6 inputs; it takes 2 to 3"),
    no_output: ("operators have their inputs and outputs", "(CONV_2D) has no output"),
    missing_input: ("operators have their inputs and outputs", "misses input 0"),
    flat_weights: ("weights and biases fit their layers", "shape (32,); they have 2 axes"),
    short_bias: ("weights and biases fit their layers", "3 biases for 4 output channels"),
    read_too_early: ("values are written once and before they are read", "before it is written"),
    written_twice: ("values are written once and before they are read", "which has a value"),
    never_written: ("values are written once and before they are read", "'scores' of graph"),
    no_such_graph: ("calls lead to other graphs", "calls graph 9; there are 3"),
    endless: ("calls lead to other graphs", "calls itself"),
    strange_signature: ("signatures name their graph's tensors", "is no input of its graph"),
    same_argument_twice: ("signatures name their graph's tensors", "two inputs have the same"),
    signature_of_nothing: ("signatures name their graph's tensors", "names graph 7"),
    same_key_twice: ("signatures name their graph's tensors", "2 signatures are named"),
}


@pytest.mark.parametrize("make", BROKEN, ids=lambda make: make.__name__)
def test_a_broken_rule_is_named(make: Callable[[], Model]) -> None:
    rule, message = BROKEN[make]
    told = list(RULES[rule](make()))
    assert any(message in problem for problem in told), told


@pytest.mark.parametrize("make", BROKEN, ids=lambda make: make.__name__)
def test_check_raises_one_line(make: Callable[[], Model]) -> None:
    with pytest.raises(BadModel) as caught:
        check(make())
    assert "\n" not in str(caught.value)


def test_every_rule_was_broken() -> None:
    assert {rule for rule, _ in BROKEN.values()} == set(RULES)


def _ended(level: Record, **changes: list[int]) -> Record:
    vectors = {name: Record("Int32Vector").set(values=tuple(at)) for name, at in changes.items()}
    return level.set(**vectors)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda order, blocks, rows, columns, block: {"traversal_order": (0, 0, 2)},
        lambda order, blocks, rows, columns, block: {"traversal_order": (0, 1)},
        lambda order, blocks, rows, columns, block: {"traversal_order": (1, 0, 2)},
        lambda order, blocks, rows, columns, block: {"block_map": (7,)},
        lambda order, blocks, rows, columns, block: {"block_map": (-1,)},
        lambda order, blocks, rows, columns, block: {"block_map": (0,)},
        lambda order, blocks, rows, columns, block: {"block_map": ()},
        lambda order, blocks, rows, columns, block: {"dim_metadata": ()},
        lambda order, blocks, rows, columns, block: {"dim_metadata": (rows, columns)},
        lambda order, blocks, rows, columns, block: {
            "dim_metadata": (rows.set(dense_size=5), columns, block)
        },
        lambda order, blocks, rows, columns, block: {
            "dim_metadata": (rows, columns, block.set(dense_size=0))
        },
        lambda order, blocks, rows, columns, block: {
            "dim_metadata": (rows, columns, block.set(dense_size=8))
        },
        lambda order, blocks, rows, columns, block: {
            "dim_metadata": (rows, _ended(columns, array_indices=[0, 0, 0, 2]), block)
        },
        lambda order, blocks, rows, columns, block: {
            "dim_metadata": (rows, _ended(columns, array_indices=[0, 0, 0, -1]), block)
        },
        lambda order, blocks, rows, columns, block: {
            "dim_metadata": (rows, _ended(columns, array_indices=[0, 0, 0]), block)
        },
        lambda order, blocks, rows, columns, block: {
            "dim_metadata": (rows, _ended(columns, array_segments=[0, 3, 2, 3, 4]), block)
        },
        lambda order, blocks, rows, columns, block: {
            "dim_metadata": (rows, _ended(columns, array_segments=[0, 1, 2, 4]), block)
        },
        lambda order, blocks, rows, columns, block: {
            "dim_metadata": (rows, columns.set(array_segments=None), block)
        },
    ],
)
def test_places_that_the_runtime_would_write_beside_a_constant(
    spoil: Callable[..., dict[str, Value]],
) -> None:
    weight = without_zeros(Tensor("w", (4, 8), data=np.eye(4, 8, dtype=np.float32)))
    assert weight.sparsity is not None and not sparse_problem(weight)
    names = "traversal_order", "block_map"
    levels = weight.sparsity["dim_metadata"]
    assert isinstance(levels, tuple)
    changes = spoil(*(weight.sparsity[name] for name in names), *levels)
    spoilt = replace(weight, sparsity=weight.sparsity.set(**changes))
    assert "sparse encoding" in sparse_problem(spoilt)


@pytest.mark.parametrize("name", MODELS)
def test_a_valid_model_breaks_none(name: str) -> None:
    assert not list(problems(MODELS[name]()))


def test_a_long_chain_of_calls_is_no_loop() -> None:
    def caller(number: int):
        b = Builder(f"g{number}")
        x = b.input("x", (1,))
        b.op(
            "IF",
            np.array([True]),
            x,
            shape=(1,),
            then_subgraph_index=number,
            else_subgraph_index=number,
        )
        return b.graph(b.last.outputs[0])

    last = Builder("last")
    y = last.input("x", (1,))
    graphs = (*(caller(n + 1) for n in range(3000)), last.graph(last.op("ABS", y)))
    assert not list(problems(Model(graphs)))


def test_an_op_may_write_a_state_that_has_a_value() -> None:
    state = Tensor("state", (1,), variable=True)
    b = Builder()
    b.ops.append(Op("ABS", (b.input("x", (1,)),), (state,)))
    assert not list(problems(b.model(state)))


def test_a_custom_op_may_have_room_to_work_in() -> None:
    """Vela's files were refused: their op is handed tensors that nobody writes."""
    b = Builder()
    x, room = b.input("x", (1, 4)), Tensor("scratch", (64,), "uint8")
    y = b.op("CUSTOM", x, room, shape=(1, 4), dtype="float32")
    model = b.model(y)
    assert not list(problems(model))
    other = b.model(b.op("ADD", y, Tensor("nowhere", (1, 4))))
    assert "before it is written" in next(iter(problems(other)))
