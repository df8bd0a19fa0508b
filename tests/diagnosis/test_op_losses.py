"""Where accuracy is lost: faults planted in a healthy model are found, and nothing else is."""

from dataclasses import replace

import numpy as np
import pytest

from litesmith.calibration.observe import tools
from litesmith.data.samples import Data
from litesmith.data.sources import open_data
from litesmith.diagnosis.accuracy_verdict import AccuracyVerdict, examine
from litesmith.diagnosis.causes import CAUSES, Cause
from litesmith.diagnosis.float_pairs import Twin, find_twins, scores
from litesmith.diagnosis.op_losses import FORM, WEIGHTS, DriftJudge, OpLoss, losses
from litesmith.ir.build import Builder
from litesmith.ir.edit import rewrite, with_graphs
from litesmith.ir.types import Array, Model, Quant, Tensor
from litesmith.passes.core.layers import layers_of
from litesmith.passes.core.recipe import apply, parse
from litesmith.passes.core.step import Context
from litesmith.tflite.file import load
from litesmith.tflite.write import to_bytes

RANDOM = np.random.default_rng(5)
WEIGHTS_1 = RANDOM.normal(size=(16, 3, 3, 3)).astype(np.float32) / 3
WEIGHTS_2 = RANDOM.normal(size=(16, 3, 3, 16)).astype(np.float32) / 8
WEIGHTS_3 = RANDOM.normal(size=(10, 16)).astype(np.float32)
BIAS = RANDOM.uniform(0.1, 0.5, 16).astype(np.float32)
BLINK = 0.02  # seconds that remedies are timed
IMAGES = RANDOM.uniform(-1, 1, size=(24, 8, 8, 3)).astype(np.float32)


def convnet(
    first: Array = WEIGHTS_1, second: Array = WEIGHTS_2, biases: tuple[Array, Array] = (BIAS, BIAS)
) -> Model:
    b = Builder()
    x = b.input("x", (1, 8, 8, 3))
    y = b.op("CONV_2D", x, first, biases[0], fused_activation_function="RELU", **_STRIDES)
    y = b.op("CONV_2D", y, second, biases[1], fused_activation_function="RELU", **_STRIDES)
    y = b.op("MEAN", y, np.array([1, 2], np.int32))
    y = b.op("FULLY_CONNECTED", y, WEIGHTS_3, np.zeros(10, np.float32))
    return b.model(b.op("SOFTMAX", y, beta=1.0))


_STRIDES = {"stride_w": 1, "stride_h": 1, "padding": "SAME"}


def as_data(model: Model, images: Array = IMAGES) -> Data:
    return open_data({"x": images}, model)


def quantized(model: Model, data: Data) -> Model:
    return load(to_bytes(apply(model, "quantize(to=int8)", Context(tools(data))).model))


def with_tensors(model: Model, changed: dict[Tensor, Tensor]) -> Model:
    return with_graphs(model, [rewrite(model.main, tensors=changed)], changed)


def with_scale(model: Model, place: int, factor: float) -> Model:
    """The output of one layer at another scale, as a wrong calibration gives it."""
    tensor = list(layers_of(model.main))[place].outputs[0]
    assert tensor.quant is not None
    quant = Quant.of(tensor.quant.scale * factor, tensor.quant.zero_point)
    return with_tensors(model, {tensor: replace(tensor, quant=quant)})


def first_finding(verdict: AccuracyVerdict) -> str:
    assert verdict.findings, verdict.sentence
    return verdict.findings[0].what


def test_a_healthy_model_has_no_finding() -> None:
    model = convnet()
    assert examine(model, as_data(model), seconds=BLINK).findings == ()
    verdict = examine(
        quantized(model, as_data(model)), as_data(model), against=model, seconds=BLINK
    )
    assert verdict.findings == ()
    assert "no loss beyond the noise" in verdict.sentence


def test_scores_that_are_cut_off() -> None:
    model = convnet()
    data = as_data(model)
    broken = with_scale(quantized(model, data), 2, 0.25)
    verdict = examine(broken, data, against=model, seconds=BLINK)
    assert first_finding(verdict) == "values cut off at the end of their range"
    found = verdict.findings[0]
    assert found.where.startswith("op 4 FULLY_CONNECTED")
    assert "quantize(to=int8)" in found.command and "FLOAT" in found.command
    assert found.share is not None and found.share > 0.9
    assert "with the command" in found.costs


def test_ranges_of_other_data() -> None:
    model = convnet()
    small = as_data(model, IMAGES / 8)
    verdict = examine(quantized(model, small), as_data(model), against=model, seconds=BLINK)
    assert any("ranges of other data" in one.what for one in verdict.findings)


def test_a_range_that_is_far_too_wide() -> None:
    model = convnet()
    data = as_data(model)
    verdict = examine(
        with_scale(quantized(model, data), 1, 200), data, against=model, seconds=BLINK
    )
    assert first_finding(verdict) == "a range far wider than the values"


def test_a_sample_far_from_all_others_is_named() -> None:
    model = convnet()
    images = np.concatenate([IMAGES, 60 * IMAGES[:1]])
    verdict = examine(model, as_data(model, images), seconds=BLINK)
    found = [one for one in verdict.findings if one.what == "one sample stretches the range"]
    assert found and "24" in found[0].why


def test_a_channel_far_from_all_others() -> None:
    first, second, bias = WEIGHTS_1.copy(), WEIGHTS_2.copy(), BIAS.copy()
    first[3] *= 200
    bias[3] *= 200
    second[..., 3] /= 200
    model = convnet(first, second, (bias, BIAS))
    verdict = examine(model, as_data(model), seconds=BLINK)
    found = verdict.findings[0]
    assert found.what == "one channel stretches the range"
    assert "channel 3" in found.why
    assert "equalize" in found.command


@pytest.mark.parametrize(
    ("dead", "what"),
    [
        (True, "dead channels whose bias does not fit"),
        (False, "a bias at the end of int32"),
    ],
)
def test_a_bias_at_the_end_of_its_type(dead: bool, what: str) -> None:
    first, bias = WEIGHTS_1.copy(), BIAS.copy()
    bias[2] = 3.0
    if dead:
        first[2] = 0
    model = convnet(first, biases=(bias, BIAS))
    data = as_data(model)
    good = quantized(model, data)
    layer = next(iter(layers_of(good.main).values()))
    assert layer.bias is not None and layer.weight.quant is not None
    scale = layer.weight.quant.scale.copy()
    codes, weights = layer.bias.values().copy(), layer.weight.values().copy()
    codes[2], weights[2] = np.iinfo(np.int32).max, 0
    scale[2] = 1e-9
    changed = {
        layer.bias: replace(
            layer.bias, data=codes, quant=Quant.of(scale * _input_scale(layer.data))
        ),
        layer.weight: replace(layer.weight, data=weights, quant=Quant.of(scale)),
    }
    assert (
        first_finding(examine(with_tensors(good, changed), data, against=model, seconds=BLINK))
        == what
    )


def _input_scale(tensor: Tensor) -> float:
    assert tensor.quant is not None
    return float(tensor.quant.scale[0])


def test_a_bias_of_another_model() -> None:
    model, data = convnet(), as_data(convnet())
    other = convnet(biases=(BIAS, BIAS + 2))
    verdict = examine(quantized(other, data), data, against=model, seconds=BLINK)
    assert first_finding(verdict) == "a bias that is not the float model's"


_DYNAMIC_AGAIN = 'litesmith apply FLOAT "quantize(to=dynamic)"'


def test_weights_that_were_all_rounded_down() -> None:
    model, data = convnet(), as_data(convnet())
    good = quantized(model, data)
    layer = list(layers_of(good.main).values())[1]
    codes = np.clip(layer.weight.values().astype(np.int16) - 4, -127, 127).astype(np.int8)
    broken = with_tensors(good, {layer.weight: replace(layer.weight, data=codes)})
    found = examine(broken, data, against=model, seconds=BLINK).findings[0]
    assert found.what == "rounded weights shift the mean of channels"
    assert found.where.startswith("op 2 CONV_2D")
    # Both help; which of them is faster, clocks say.
    remedies = ('litesmith apply MODEL "correct" --reference FLOAT', _DYNAMIC_AGAIN)
    assert found.command.startswith(remedies)
    assert "with the command" in found.costs


def test_one_scale_for_all_channels() -> None:
    first, second = WEIGHTS_1.copy(), WEIGHTS_2.copy()
    first[3] *= 400
    second[..., 3] = 0
    model = convnet(first, second)
    data = as_data(model)
    recipe = "quantize(to=int8, per_channel=false)"
    made = load(to_bytes(apply(model, recipe, Context(tools(data))).model))
    verdict = examine(made, data, against=model, seconds=BLINK)
    assert "one scale for weights of all channels" in {one.what for one in verdict.findings}


def test_the_parts_together_make_the_error_of_the_model() -> None:
    """The simulation in parts is faithful: all of them quantized drift as the file does."""
    model, data = convnet(), as_data(convnet())
    broken = with_scale(quantized(model, data), 1, 8)
    found = find_twins(broken, model)
    judged = scores(model, found)
    judge = DriftJudge(model, judged, data)
    whole = judge.drift(broken, [twin.ours for twin in judged])
    parts = [(twin, part) for twin in found for part in (FORM, WEIGHTS)]
    assert judge.alone(parts).decibels == pytest.approx(whole.decibels, abs=1.0)
    assert judge.alone([]).noise == 0


def test_every_op_has_a_twin_and_the_losses_add_up() -> None:
    model, data = convnet(), as_data(convnet())
    made = quantized(model, data)
    found = find_twins(made, model)
    assert [t.op.kind if t.op else "" for t in found] == ["", *(op.kind for op in model.main.ops)]
    for loss in losses(made, model, found, data):
        assert loss.signal.power > 0
        assert 0 <= loss.form.mean_share <= 1
        assert loss.noise("total") < 0.05


def test_another_order_of_layers_is_matched_by_what_ops_read() -> None:
    model = convnet()
    made = quantized(model, as_data(model))
    extra = Builder()
    x = extra.input("x", (1, 8, 8, 3))
    shorter = extra.model(
        extra.op("CONV_2D", x, WEIGHTS_1, BIAS, fused_activation_function="RELU", **_STRIDES)
    )
    (_, first) = find_twins(made, shorter)
    assert first.theirs is shorter.main.outputs[0]


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.what)
def test_every_cause_has_a_remedy_that_can_be_read(cause: Cause) -> None:
    for recipe in cause.remedies:
        assert parse(recipe.format(to="int8", keep="[1, 2]"))


def test_without_the_float_model() -> None:
    model, data = convnet(), as_data(convnet())
    good = quantized(model, data)
    assert "--against" in examine(good, data, seconds=BLINK).sentence
    assert examine(good, data, seconds=BLINK).findings == ()
    (found,) = examine(with_scale(good, 2, 0.25), data, seconds=BLINK).findings
    assert found.what == "codes at the end of their type"
    assert found.costs.startswith("not measured")


@pytest.mark.parametrize(("low", "is_mask"), [(-1e4, True), (-60.0, False)])
def test_a_mask_that_leaves_scores_no_steps_is_the_cause(low: float, is_mask: bool) -> None:
    real = Tensor("scores", (1, 4))
    stored = replace(real, dtype="int8", quant=Quant.of(-low / 255, 127))
    loss = OpLoss(Twin(stored, real))
    values = np.array([[low, 3.0, -2.0, 5.0]], np.float32)
    loss.add("one", values, np.array([[-128, 127, 127, 127]], np.int8))
    (cause,) = (one for one in CAUSES if "masks" in one.remedies[0])
    told = cause.seen(loss)
    assert bool(told) == is_mask and ("-10000" in told) == is_mask


def test_a_model_with_fewer_channels_is_held_against_the_float_one() -> None:
    """Its layers write what the float ones write, from other numbers of channels."""
    reference = convnet()
    narrow = convnet(WEIGHTS_1[:8], WEIGHTS_2[..., :8], (BIAS[:8], BIAS))
    data = as_data(reference)
    made = apply(narrow, "quantize", Context(tools(data, threads=1))).model
    found = losses(made, reference, find_twins(made, reference), data)
    kinds = {one.twin.op.kind for one in found if one.twin.op is not None}
    assert {"CONV_2D", "FULLY_CONNECTED"} <= kinds
    assert all(np.isfinite(one.noise("total")) for one in found)
