"""A lifted graph against the runtime, on one sample and on many."""

import weakref

import numpy as np
import pytest
from hypothesis import given

from tests.draws import draws

torch = pytest.importorskip("torch", reason="torch is not installed: the extra `train`")

import litesmith  # noqa: E402
from litesmith.errors import BadInput, CannotApply  # noqa: E402
from litesmith.ir.build import Builder  # noqa: E402
from litesmith.ir.types import Model, Quant, Tensor  # noqa: E402
from litesmith.training.ops.lift import Lift, constants_of, is_real  # noqa: E402
from tests.random_graphs import graphs  # noqa: E402
from tests.runtime import random_input, run  # noqa: E402
from tests.zoo import noise  # noqa: E402
from tests.zoo_float import FLOATS, conv, dense, image  # noqa: E402

REFUSED = ("branches", "branching", "looping")
# Its products cancel, so that what is left of them is rounding alone.
WITHOUT_VALUE = ("tiny_output",)
LIFTED = [name for name in FLOATS if name not in (*REFUSED, *WITHOUT_VALUE)]


def real_outputs(model: Model) -> list[Tensor]:
    return [tensor for tensor in model.main.outputs if is_real(tensor)]


def inputs_of(model: Model, seed: int) -> list[np.ndarray]:
    """The very inputs that `tests.runtime.run` feeds."""
    random = np.random.default_rng(seed)
    return [
        random_input(random, np.array(t.shape), np.dtype(t.dtype).type) for t in model.main.inputs
    ]


def lifted(model: Model, inputs: list[np.ndarray], lift: Lift | None = None) -> list[np.ndarray]:
    lift = lift or Lift(model, real_outputs(model))
    return [value.detach().numpy() for value in lift(inputs, constants_of(model))]


def assert_close(results: list[np.ndarray], wanted: list[np.ndarray], error: float = 1e-5) -> None:
    assert len(results) == len(wanted)
    for result, array in zip(results, wanted, strict=True):
        assert result.shape == array.shape
        np.testing.assert_allclose(result, array, rtol=0, atol=error * np.abs(array).max())


@pytest.mark.parametrize("name", LIFTED)
def test_lift_computes_what_the_runtime_does(name: str) -> None:
    model = FLOATS[name]()
    known = [array for array in run(model) if array.dtype.kind == "f"]
    assert_close(lifted(model, inputs_of(model, 0)), known, 2e-5)


@pytest.mark.parametrize("name", LIFTED)
def test_a_batch_is_its_samples_one_by_one(name: str) -> None:
    model = FLOATS[name]()
    samples = [inputs_of(model, seed) for seed in range(3)]
    alone = [lifted(model, sample) for sample in samples]
    joined = [np.concatenate(parts) for parts in zip(*samples, strict=True)]
    wanted = [
        np.concatenate(parts) if parts[0].ndim else np.stack(parts)
        for parts in zip(*alone, strict=True)
    ]
    assert_close(lifted(model, joined), wanted)


def test_common_networks_run_as_one_batch() -> None:
    for name in ("convnet", "residual", "activations", "attention", "computed_shape", "recurrent"):
        model = FLOATS[name]()
        lift = Lift(model)
        samples = [inputs_of(model, seed) for seed in range(3)]
        lifted(model, [np.concatenate(parts) for parts in zip(*samples, strict=True)], lift)
        assert lift.apart == frozenset(), name


@draws(8)
@given(graphs())
def test_random_graphs(model: Model) -> None:
    lift = Lift(model)
    samples = [inputs_of(model, seed) for seed in range(3)]
    assert_close(lifted(model, samples[0], lift), run(model), 5e-5)
    alone = [lifted(model, sample, lift) for sample in samples]
    joined = [np.concatenate(parts) for parts in zip(*samples, strict=True)]
    wanted = [np.concatenate(parts) for parts in zip(*alone, strict=True)]
    assert_close(lifted(model, joined, lift), wanted, 5e-5)
    assert lift.apart == frozenset()


def with_one_baked_in() -> Model:
    """Sizes of one sample wherever a file can hold them, as in a vision transformer."""
    b = Builder()
    x = b.op("RESHAPE", image(b), [1, 36, 8])
    x = b.op("CONCATENATION", b.const(noise(1, 1, 8)), x, axis=1)
    x = b.op("ADD", x, noise(1, 37, 8))
    x = b.op("SLICE", x, [0, 1, 0], [1, 36, 8])
    x = b.op("RESHAPE", x, [1, -1, 2, 4])
    x = b.op("STRIDED_SLICE", x, [0, 0, 0, 0], [1, 30, 2, 4], [1, 1, 1, 1])
    x = b.op("BROADCAST_TO", b.op("MEAN", x, [1], keep_dims=True), [1, 5, 2, 4], version=2)
    x = b.op("RESHAPE", x, new_shape=(40,))
    x = b.op("RESHAPE", x, [1, 40])
    first = b.op("PACK", x, b.const(noise(1, 40)), values_count=2, axis=1)
    fixed = b.op("FILL", b.const([1, 2, 3]), np.float32(2))
    first = b.op("CONCATENATION", first, fixed, axis=2)
    return b.model(dense(b, first, 3, keep_num_dims=True))


def test_sizes_of_one_sample_do_not_matter() -> None:
    model = with_one_baked_in()
    lift = Lift(model)
    samples = [inputs_of(model, seed) for seed in range(4)]
    assert_close(lifted(model, samples[0], lift), run(model))
    batch = lifted(model, [np.concatenate([sample[0] for sample in samples])], lift)
    assert lift.apart == frozenset()
    alone = [lifted(model, sample, lift)[0] for sample in samples]
    assert_close(batch, [np.concatenate(alone)])


def normalized(b: Builder, x: Tensor) -> Tensor:
    """A layer norm as converters write it."""
    mean = b.op("MEAN", x, [-1], keep_dims=True)
    variance = b.op("MEAN", b.op("SQUARED_DIFFERENCE", x, mean), [-1], keep_dims=True)
    scale = b.op("MUL", b.op("RSQRT", b.op("ADD", variance, np.float32(1e-6))), noise(8, seed=9))
    shift = b.op("SUB", noise(8, seed=10), b.op("MUL", mean, scale))
    return b.op("ADD", b.op("MUL", x, scale), shift)


def transformer() -> Model:
    """Words, a mask over them, two heads, and sizes that are computed from the data's own."""
    b = Builder()
    ids, mask = (b.input(name, (1, 5), "int32") for name in ("ids", "mask"))
    x = b.op("GATHER", noise(20, 8), ids)
    x = normalized(b, b.op("ADD", x, noise(1, 5, 8)))
    heads = []
    for seed in (1, 3, 5):
        part = dense(b, x, 8, seed, keep_num_dims=True)
        heads.append(b.op("TRANSPOSE", b.op("RESHAPE", part, [1, 5, 2, 4]), [0, 2, 1, 3]))
    query, key, value = heads
    kept = b.op("CAST", mask, in_data_type="INT32", out_data_type="FLOAT32")
    kept = b.op("RESHAPE", kept, [1, 1, 1, 5])
    masked = b.op("MUL", b.op("SUB", np.float32(1), kept), np.float32(-100))
    scores = b.op("ADD", b.op("BATCH_MATMUL", query, key, adj_y=True), masked)
    y = b.op("BATCH_MATMUL", b.op("SOFTMAX", scores), value)
    rows = b.op("STRIDED_SLICE", b.op("SHAPE", y), [0], [1], [1], shrink_axis_mask=1)
    shape = b.op("PACK", rows, np.int32(5), np.int32(-1), values_count=3, dtype="int32")
    y = b.op("RESHAPE", b.op("TRANSPOSE", y, [0, 2, 1, 3]), shape, shape=(1, 5, 8))
    y = b.op("GELU", dense(b, normalized(b, b.op("ADD", x, y)), 8, 7, keep_num_dims=True))
    first = b.op("STRIDED_SLICE", y, [0, 0, 0], [1, 1, 8], [1, 1, 1], shrink_axis_mask=2)
    positive = b.op("GREATER", first, np.float32(0))
    return b.model(dense(b, b.op("SELECT_V2", positive, first, b.op("TANH", first)), 3, 11))


def test_a_transformer_runs_as_one_batch() -> None:
    model = transformer()
    lift, constants = Lift(model), constants_of(model)
    assert not lift.frozen
    samples = [inputs_of(model, seed) for seed in range(3)]
    assert_close(lifted(model, samples[0]), run(model))
    joined = [np.concatenate(parts) for parts in zip(*samples, strict=True)]
    batch = lift(joined, {t: v.requires_grad_() for t, v in constants.items()})
    assert lift.apart == frozenset()
    known = np.concatenate([run(model, seed)[0] for seed in range(3)])
    assert_close([batch[0].detach().numpy()], [known])
    batch[0].square().sum().backward()
    table = next(t for t in constants if t.shape == (20, 8))
    gradient = constants[table].grad
    assert gradient is not None and gradient.any()


def test_an_index_outside_is_one_line() -> None:
    model = FLOATS["tied"]()
    with pytest.raises(CannotApply, match="EMBEDDING_LOOKUP") as caught:
        lifted(model, [np.array([1, 50], np.int32)])
    assert "\n" not in str(caught.value)


def heads_first() -> Model:
    """Shapes as exporters of torch leave them: heads in place of samples, means of rows alone."""
    b = Builder()
    x, mask = b.input("x", (1, 5, 8)), b.input("mask", (1, 5))
    mean = b.op("MEAN", x, [0, 2], shape=(5,))
    x = b.op("SUB", x, b.op("RESHAPE", mean, [1, 5, 1]))
    heads = b.op("TRANSPOSE", b.op("RESHAPE", x, [5, 2, 4]), [1, 0, 2])
    scores = b.op("BATCH_MATMUL", heads, heads, adj_y=True)
    scores = b.op("ADD", scores, b.op("RESHAPE", mask, [1, 1, 1, 5]), shape=(1, 2, 5, 5))
    found = b.op("BATCH_MATMUL", b.op("RESHAPE", b.op("SOFTMAX", scores), [2, 5, 5]), heads)
    parts = b.op("TRANSPOSE", found, [1, 0, 2])
    return b.model(dense(b, b.op("RESHAPE", parts, [5, 8]), 3, 7))


def test_ops_that_mix_what_stands_along_the_samples_run_apart() -> None:
    model = heads_first()
    lift = Lift(model)
    samples = [inputs_of(model, seed) for seed in range(4)]
    assert_close(lifted(model, samples[0], lift), run(model))
    joined = [np.concatenate(parts) for parts in zip(*samples, strict=True)]
    batch = lifted(model, joined, lift)
    assert lift.apart and {op.kind for op in lift.apart} == {"TRANSPOSE"}
    alone = [lifted(model, sample, lift)[0] for sample in samples]
    assert_close(batch, [np.concatenate(alone)])


def test_samples_that_meet_run_one_by_one() -> None:
    b = Builder()
    x = b.input("x", (1, 4))
    model = b.model(b.op("SUB", x, b.op("MEAN", x, [0], keep_dims=True)))
    lift = Lift(model)
    x = noise(5, 4)
    assert not lifted(model, [x], lift)[0].any()
    assert lift.apart


def test_equal_samples_decide_nothing() -> None:
    model = FLOATS["residual"]()
    lift = Lift(model)
    lifted(model, [np.zeros((4, 6, 6, 8), np.float32)], lift)
    assert lift.apart is None


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_lifted_is_named(name: str) -> None:
    with pytest.raises(CannotApply, match=r"cannot be lifted.*control flow") as caught:
        Lift(FLOATS[name]())
    assert "\n" not in str(caught.value)


def test_only_what_is_wanted_is_run() -> None:
    model = FLOATS["branching"]()
    first = model.main.ops[0].outputs[0]
    (value,) = Lift(model, [first])(inputs_of(model, 0), constants_of(model))
    assert value.shape == first.shape


def test_a_custom_op_is_named() -> None:
    b = Builder()
    x = b.op("CUSTOM", b.input("x", (1, 4)), custom="Strange", shape=(1, 4), dtype="float32")
    with pytest.raises(CannotApply, match="CUSTOM Strange"):
        Lift(b.model(x))


def test_integers_are_not_learned() -> None:
    b = Builder()
    x = b.op("ARG_MAX", dense(b, b.input("x", (1, 4)), 3), np.int32(1), output_type="INT32")
    with pytest.raises(CannotApply, match="int32"):
        Lift(b.model(x))


def frozen_model() -> Model:
    """A spectrum between two layers: the first cannot learn through it."""
    b = Builder()
    x = dense(b, b.input("x", (1, 8, 8)), 8, keep_num_dims=True)
    spectrum = b.op("COMPLEX_ABS", b.op("RFFT2D", x, [8, 8]))
    return b.model(dense(b, spectrum, 3, 4, keep_num_dims=True))


def test_an_op_without_a_row_is_frozen() -> None:
    model = frozen_model()
    lift, constants = Lift(model), constants_of(model)
    assert [skip.where.split()[0] for skip in lift.frozen] == ["RFFT2D"]
    assert_close(lifted(model, inputs_of(model, 0)), run(model))
    for value in constants.values():
        value.requires_grad_()
    lift(inputs_of(model, 0), constants)[0].sum().backward()
    learned = [value.grad is not None for value in constants.values()]
    assert learned == [False, False, True, True]
    x = np.concatenate([inputs_of(model, seed)[0] for seed in range(3)])
    assert lift([x], constants)[0].shape == (3, 8, 3)


def test_every_weight_of_a_network_learns() -> None:
    for name in ("convnet", "residual", "half_weights", "attention", "recurrent", "upsampled"):
        model = FLOATS[name]()
        constants = {t: v.requires_grad_() for t, v in constants_of(model).items()}
        lift = Lift(model)
        results = lift(inputs_of(model, 0), constants)
        torch.cat([(v * torch.randn_like(v)).reshape(-1) for v in results]).sum().backward()
        without = [t.name for t, v in constants.items() if v.grad is None and t.elements > 1]
        assert not without, (name, without)


def test_results_go_through_what_is_given() -> None:
    model = FLOATS["split"]()
    seen = []

    def through(op, tensor, value):
        assert tensor in op.outputs
        assert value.shape == tensor.shape
        seen.append(tensor)
        return value * 0

    results = Lift(model)(inputs_of(model, 0), constants_of(model), through)
    assert [t for op in model.main.ops for t in op.outputs if is_real(t)] == seen
    assert not any(value.any() for value in results)


def hybrid() -> tuple[Model, Model]:
    """A layer with int8 weights for each channel, and the same with what they stand for."""
    codes = np.random.default_rng(0).integers(-127, 128, (4, 3, 3, 8)).astype(np.int8)
    scale = np.array([0.01, 0.02, 0.005, 0.1], np.float32)
    models = []
    for weight in (codes, codes * scale.reshape(4, 1, 1, 1)):
        b = Builder()
        quant = Quant.of(scale) if weight.dtype == np.int8 else None
        stored = b.const(weight.astype(weight.dtype), quant=quant)
        models.append(b.model(b.op("CONV_2D", image(b), stored, noise(4))))
    return models[0], models[1]


def test_weights_without_their_zeros_are_whole() -> None:
    b = Builder()
    weight = noise(8, 16)
    weight[:, 4:12] = 0
    model = b.model(b.op("FULLY_CONNECTED", b.input("x", (1, 16)), weight, noise(8)))
    stored = litesmith.apply(model, "sparsify(least=0.1)").model
    assert any(t.sparsity is not None for t in stored.main.tensors)
    assert_close(lifted(stored, inputs_of(stored, 0)), run(model))


def test_stored_weights_are_what_they_stand_for() -> None:
    stored, plain = hybrid()
    assert_close(lifted(stored, inputs_of(stored, 0)), run(plain))


def test_quantized_models_are_real() -> None:
    b = Builder()
    x = b.input("x", (1, 4), "int8", Quant.of(0.5, 3))
    y = b.op("DEQUANTIZE", b.op("RELU", x, quant=Quant.of(0.25, -128)))
    model = b.model(y)
    given = np.array([[-1, 0.5, 2, 60]], np.float32)
    assert lifted(model, [given])[0].tolist() == [[0, 0.5, 2, 60]]


def test_batches_that_are_no_samples_are_refused() -> None:
    model = FLOATS["no_bias"]()
    with pytest.raises(BadInput, match="whole number of samples"):
        lifted(model, [noise(4, 48)])
    with pytest.raises(BadInput, match="2 inputs"):
        lifted(model, [noise(3, 48), noise(3, 48)])


def test_values_are_let_go_when_read() -> None:
    """A chain of large tensors needs room for a few of them, not for all."""
    b = Builder()
    x = b.input("x", (1, 64))
    for _ in range(6):
        x = b.op("ABS", x)
    alive = []

    def through(op, tensor, value):
        alive.append(weakref.ref(value))
        assert sum(ref() is not None for ref in alive) <= 3
        return value

    model = b.model(x)
    with torch.no_grad():
        Lift(model)([noise(1, 64)], {}, through)


def test_conv_is_not_copied_to_another_layout() -> None:
    """Data goes in with channels last and comes out so."""
    b = Builder()
    model = b.model(conv(b, image(b), 4, fused_activation_function="RELU"))
    (value,) = Lift(model)([noise(2, 6, 6, 8)], constants_of(model))
    assert value.is_contiguous()
