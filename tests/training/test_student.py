"""The differentiable twin of a model: what it is before training, and what any training leaves."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from tests.draws import draws

torch = pytest.importorskip("torch", reason="torch is not installed: the extra `train`")

from litesmith.calibration.observe import open_apart  # noqa: E402
from litesmith.data.samples import as_stored  # noqa: E402
from litesmith.errors import CannotApply  # noqa: E402
from litesmith.ir.build import Builder  # noqa: E402
from litesmith.ir.types import Model, Op, Tensor  # noqa: E402
from litesmith.passes.core.lstm import STATE  # noqa: E402
from litesmith.passes.core.step import Context  # noqa: E402
from litesmith.passes.quantizing.quantize import Quantize  # noqa: E402
from litesmith.passes.quantizing.round import Round  # noqa: E402
from litesmith.passes.shrinking.cluster import Cluster  # noqa: E402
from litesmith.passes.tidy.fold import Fold  # noqa: E402
from litesmith.training.student import Student  # noqa: E402
from tests.quantized import TARGETS, broken_laws, real, results, snr  # noqa: E402
from tests.random_graphs import graphs  # noqa: E402
from tests.training.small import codes, interface, regression, weights, zeros  # noqa: E402
from tests.zoo import noise  # noqa: E402
from tests.zoo_float import FLOATS, Few, context, few, image  # noqa: E402

REFUSED = ("branches", "branching", "looping", "picked")
TRAINED = [name for name in FLOATS if name not in REFUSED]
INTEGER = (
    Quantize("int8"),
    Quantize("int8", per_channel=False),
    Quantize("int16x8"),
    Quantize("w4a8"),
    Quantize("w4a8", per_channel=False),
)
STORED = (
    Quantize("dynamic"),
    Quantize("dynamic-int4"),
    Quantize("weight-int8"),
    Quantize("weight-int8", per_channel=False),
)


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> None:
    torch.set_num_threads(1)


@cache
def float_model(name: str) -> Model:
    return Fold(float16=True).apply(FLOATS[name](), Context()).model


# Models whose weights are too few to be stored in another way, by schemes that change only those.
TOO_SMALL = ("careless", "different_ranges", "half_weights", "scalars")
STORES = ("dynamic", "dynamic-int4", "weight-int8")


def is_too_small(name: str, step: Quantize) -> bool:
    return name in TOO_SMALL and step.to in STORES


@cache
def quantized(name: str, step: Quantize) -> Model:
    model = float_model(name)
    return step.apply(model, context(model)).model


def all_quantized(name: str, steps: tuple[Quantize, ...]) -> Iterator[Model]:
    return (quantized(name, step) for step in steps if not is_too_small(name, step))


@pytest.mark.parametrize("name", TOO_SMALL)
def test_what_is_too_small_is_not_stored_in_another_way(name: str) -> None:
    for step in STORED:
        if is_too_small(name, step):
            with pytest.raises(CannotApply, match="no layer of the model"):
                quantized(name, step)


def assert_same(tensor: Tensor | None, other: Tensor | None, error: float) -> None:
    if tensor is None or other is None:
        assert tensor is other
        return
    assert (tensor.name, tensor.shape, tensor.dtype) == (other.name, other.shape, other.dtype)
    assert (tensor.quant is None) == (other.quant is None)
    if tensor.quant is not None and other.quant is not None:
        assert tensor.quant.scale.tolist() == other.quant.scale.tolist()
        assert tensor.quant.zero_point.tolist() == other.quant.zero_point.tolist()
        assert tensor.quant.axis == other.quant.axis
    assert tensor.is_const == other.is_const
    if tensor.is_const:
        np.testing.assert_allclose(tensor.values(), other.values(), rtol=error, atol=0)


def assert_same_model(model: Model, other: Model) -> None:
    """Codes and scales are the very same; float numbers, and large biases, up to their rounding."""
    assert interface(model) == interface(other)
    used = [{t for op in m.main.ops for t in op.inputs if t is not None} for m in (model, other)]
    assert len(used[0]) == len(used[1]), "what was shared is not, or the other way round"
    for op, new in zip(model.main.ops, other.main.ops, strict=True):
        pairs = zip((*op.inputs, *op.outputs), (*new.inputs, *new.outputs), strict=True)
        for tensor, now in pairs:
            is_weight = tensor is not None and tensor.dtype in ("int8", "int4")
            assert_same(tensor, now, 0 if is_weight else 3e-7)


def shaken(student: Student, size: float, seed: int = 0) -> Student:
    """The student after steps of any sort, in units of its parameters."""
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in student.parameters:
            parameter.add_(size * torch.randn(parameter.shape, generator=random))
    return student


@pytest.mark.parametrize("name", TRAINED)
def test_untrained_it_is_its_model(name: str) -> None:
    model = float_model(name)
    assert_same_model(model, Student(model).written())
    for stored in all_quantized(name, INTEGER + STORED):
        assert_same_model(stored, Student(stored).written())
        assert_same_model(stored, Student(stored, origin=model).written())


@pytest.mark.parametrize("name", TRAINED)
def test_whatever_was_learned_runs(name: str) -> None:
    """The laws of the exporter hold however far the parameters went."""
    model = float_model(name)
    for stored in all_quantized(name, INTEGER):
        for size in (0.1, 30.0):
            after = shaken(Student(stored, origin=model), size).written()
            assert not broken_laws(after), (name, size)
            assert interface(after) == interface(stored)
            for target in TARGETS:
                results(after, few(model, 1), target)


@draws(15)
@given(graphs(), st.sampled_from(INTEGER), st.sampled_from([0.1, 30.0]))
def test_random_graphs(model: Model, step: Quantize, size: float) -> None:
    try:
        stored = step.apply(model, context(model, 2)).model
    except CannotApply as error:
        assert "no layer of the model" in str(error)
        reject()
    student = Student(stored, origin=model)
    assert_same_model(stored, student.written())
    after = shaken(student, size).written()
    assert not broken_laws(after)
    for target in TARGETS:
        results(after, few(model, 1), target)


# Its state stays between runs of the runtime; its products cancel and leave rounding alone; its
# scores are nearly equal, so that SOFTMAX in codes differs from SOFTMAX.
INEXACT = ("recurrent", "tiny_output", "attention")


@pytest.mark.parametrize("name", [name for name in TRAINED if name not in INEXACT])
def test_it_computes_what_the_file_does(name: str) -> None:
    """Most values are those of the runtime, and none is far: at the end, and after some steps."""
    model = float_model(name)
    data = few(model, 4)
    for stored in all_quantized(name, (INTEGER[0], INTEGER[2])):
        student = shaken(Student(stored, origin=model), 0.1)
        runs = [student([as_torch(a) for a in row]) for row in data.rows]
        for place, known in enumerate(results(student.written(), data, "cpu:1:builtin")):
            if student.wanted[place] is not stored.main.outputs[place]:
                continue
            ours = np.stack([run[place].detach().numpy() for run in runs]).reshape(known.shape)
            step = max(np.ptp(known), np.abs(known).max(), 1e-9) / 255
            error = np.abs(ours - known) / step
            assert error.max() <= 4, name
            assert (error > 0.5).mean() <= 0.5, name


@pytest.mark.parametrize("io", ["float", "int8"])
def test_an_lstm_in_integers_is_one_in_training_too(io: str) -> None:
    """Its weights and biases learn, its state is rounded at every step, and the scales that the
    kernel takes for one stay one."""
    model = float_model("recurrent")
    data = few(model, 6)
    stored = Quantize("int8", io=io).apply(model, context(model)).model
    student = shaken(Student(stored, origin=model), 0.1)
    after = student.written()
    assert not broken_laws(after)
    (op,), (before,) = ([op for op in one.main.ops if op.intermediates] for one in (after, stored))
    x, weight, bias, state = (scale_of_input(op, place) for place in (0, 1, 12, STATE))
    assert bias == pytest.approx(x * weight)
    hidden, output = (t.quant for t in (op.intermediates[4], op.outputs[0]))
    assert hidden is not None and output is not None
    assert state == hidden.scale[0] == output.scale[0]
    for place in (*range(1, 9), *range(12, 16)):
        assert not np.array_equal(codes_at(op, place), codes_at(before, place))
    with open_apart(after) as run:
        for row in data.rows:
            given = [as_stored(t, a) for t, a in zip(after.main.inputs, row, strict=True)]
            known = real(after.main.outputs[0], run(given)[0])
            (ours,) = student([as_torch(a) for a in row])
            step = np.abs(known).max() / 127
            np.testing.assert_allclose(ours.detach().numpy(), known, rtol=0, atol=4 * step)


@pytest.mark.parametrize("to", ["dynamic", "weight-int8", "weight-int4"])
def test_stored_weights_of_an_lstm_learn(to: str) -> None:
    model = lstm_of_width(24)
    stored = Quantize(to).apply(model, context(model)).model
    after = shaken(Student(stored, origin=model), 0.1).written()
    pairs = zip(codes_of(stored), codes_of(after), strict=True)
    assert sum(not np.array_equal(a, b) for a, b in pairs) >= 8
    assert snr(results(model, few(model))[0], results(after, few(model))[0]) > 5


def lstm_of_width(width: int) -> Model:
    b = Builder()
    weights = [noise(width, width, seed=s, scale=0.2) for s in range(8)]
    states = [Tensor(name, (1, width), variable=True) for name in ("h", "c")]
    gates = (*weights, *[None] * 3, *(noise(width, seed=s) for s in range(4)), None, None, *states)
    x = b.input("x", (1, 3, width))
    y = b.op("UNIDIRECTIONAL_SEQUENCE_LSTM", x, *gates, fused_activation_function="TANH")
    return b.model(y)


def scale_of_input(op: Op, place: int) -> float:
    tensor = op.inputs[place]
    assert tensor is not None and tensor.quant is not None
    return float(tensor.quant.scale[0])


def codes_at(op: Op, place: int) -> np.ndarray:
    tensor = op.inputs[place]
    assert tensor is not None
    return tensor.values()


def codes_of(model: Model) -> list[np.ndarray]:
    return [t.values() for t in model.main.tensors if t.is_const and t.quant is not None]


def pooled() -> Model:
    b = Builder()
    x = b.op("CONV_2D", image(b), noise(4, 3, 3, 8), noise(4))
    return b.model(b.op("AVERAGE_POOL_2D", x, filter_height=3, filter_width=3))


@pytest.mark.parametrize("make", [pooled, FLOATS["upsampled"], FLOATS["residual"], FLOATS["gaps"]])
def test_what_it_computes_is_whole_steps(make: Callable[[], Model]) -> None:
    model = make()
    stored = Quantize("int8").apply(model, context(model)).model
    op = stored.main.ops[-1]
    assert op.kind == "DEQUANTIZE" and op.inputs[0] is not None and op.inputs[0].quant is not None
    (value,) = Student(stored, origin=model)([as_torch(a) for a in few(model, 1).rows[0]])
    numbers = value.detach().numpy() / op.inputs[0].quant.scale[0]
    np.testing.assert_allclose(numbers, np.rint(numbers), atol=1e-3)


def test_inputs_beyond_their_range_are_cut() -> None:
    model = float_model("residual")
    stored = Quantize("int8", io="int8").apply(model, context(model)).model
    rows = Few(tuple((3 * row[0],) for row in few(model, 3).rows))
    (known,) = results(stored, rows)
    ours = [Student(stored)([as_torch(row[0])])[0].detach().numpy() for row in rows.rows]
    error = np.abs(np.stack(ours) - known) / (np.ptp(known) / 255)
    assert error.max() <= 3


def test_codes_that_were_chosen_with_care_stay() -> None:
    """Rounding by the data leaves the nearest code; the float weights must not undo it."""
    model = regression()
    step = Quantize("w4a8", per_channel=False)
    chosen = replace(context(model, 32), reference=model)
    nearest = step.apply(model, chosen).model
    stored = Round().apply(nearest, chosen).model
    pairs = zip(weights(nearest), weights(stored), strict=True)
    assert any(not np.array_equal(one, other) for one, other in pairs)
    assert_same_model(stored, Student(stored, origin=model).written())


def as_torch(array: np.ndarray):
    return torch.from_numpy(array) if array.dtype == np.float32 else array


def test_every_reader_of_a_weight_has_what_was_learned() -> None:
    """A table that is the weight of the last layer too, and a weight of two layers."""
    for name in ("tied", "shared_weights", "shared_bias"):
        model = float_model(name)
        student = shaken(Student(model), 0.3)
        rows = few(model, 3).rows
        known = results(student.written(), few(model, 3))[0]
        ours = [student([as_torch(a) for a in row])[0].detach().numpy() for row in rows]
        np.testing.assert_allclose(np.stack(ours), known, rtol=1e-3, atol=1e-3)


def with_zeros() -> Model:
    b = Builder()
    weight = noise(8, 3, 3, 8)
    weight[np.random.default_rng(1).random(weight.shape) < 0.6] = 0
    return b.model(b.op("CONV_2D", image(b), weight, noise(8)))


@pytest.mark.parametrize("to", ["float", "int8", "int16x8", "w4a8", "dynamic"])
def test_zeros_stay(to: str) -> None:
    model = with_zeros()
    begun = model if to == "float" else Quantize(to).apply(model, context(model)).model
    origin = None if to == "float" else model
    after = shaken(Student(begun, origin=origin), 1.0).written()
    mask = model.main.ops[0].inputs[1]
    stored = after.main.ops[-1 if to in ("float", "dynamic") else 1].inputs[1]
    assert mask is not None and stored is not None
    assert not stored.values()[mask.values() == 0].any()
    assert zeros(after)[0] >= zeros(model)[0]


@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("to", ["float", "int8", "int16x8", "weight-int8"])
def test_codes_stay_in_their_book(to: str, per_channel: bool) -> None:
    model = Cluster(k=8, per_channel=per_channel).apply(regression(), Context()).model
    if to == "float":
        after = shaken(Student(model), 0.5).written()
        after = Quantize("weight-int8", per_channel=per_channel).apply(after, Context()).model
    else:
        begun = Quantize(to, per_channel=per_channel).apply(model, context(model)).model
        after = shaken(Student(begun, origin=model), 0.5).written()
    assert all(2 <= count <= 8 for count in codes(after))


def test_a_channel_that_a_bias_widened_costs_the_others_no_codes() -> None:
    b = Builder()
    weight, bias = noise(16, 24), noise(16)
    weight[3] *= 1e-7
    bias[3] = 100
    float_one = b.model(b.op("FULLY_CONNECTED", b.input("x", (1, 24)), weight, bias))
    model = Cluster(k=8).apply(float_one, Context()).model
    begun = Quantize("int8").apply(model, context(model)).model
    assert_same_model(begun, Student(begun, origin=model).written())
    assert codes(shaken(Student(begun, origin=model), 0.5).written())[0] <= codes(begun)[0] + 2


def test_a_model_without_layers_is_refused() -> None:
    b = Builder()
    with pytest.raises(CannotApply, match="no layer with weights") as caught:
        Student(b.model(b.op("RELU", b.input("x", (1, 4)))))
    assert "\n" not in str(caught.value)


def test_masks_are_a_schedules() -> None:
    """Weights that a schedule sets to zero are, and come back where it says so."""
    model = regression()
    student = Student(model, masked=True)
    first = next(iter(student.weights))
    before = student.weights[first]().detach().numpy().copy()

    def masks(progress, now):
        assert now.keys() == student.weights.keys()
        return {first: np.abs(before) >= np.quantile(np.abs(before), progress)}

    for progress in (0.0, 0.5, 1.0, 0.0):
        student.mask_by(masks, progress)
        value = student.weights[first]().detach().numpy()
        kept = np.abs(before) >= np.quantile(np.abs(before), progress)
        np.testing.assert_array_equal(value, before * kept)
        stored = student.written().main.ops[0].inputs[1]
        assert stored is not None
        assert not np.signbit(stored.values()[~kept]).any()
    assert len(student.masks) == len(student.weights)
    assert Student(model).masks == []
