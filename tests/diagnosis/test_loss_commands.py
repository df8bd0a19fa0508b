"""What a verdict prints can be typed: its commands do what was promised, its numbers are those of
the user's own file."""

import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from litesmith import evaluate
from litesmith.calibration.observe import tools
from litesmith.data.samples import Data
from litesmith.data.sources import open_data
from litesmith.diagnosis.accuracy_verdict import examine
from litesmith.diagnosis.float_pairs import inseparable
from litesmith.diagnosis.slowness import Diagnosis
from litesmith.diagnosis.without_reference import seen_codes
from litesmith.ir.build import Builder
from litesmith.ir.edit import regraph
from litesmith.ir.types import Model, Tensor
from litesmith.passes.core.recipe import apply
from litesmith.passes.core.step import Context
from litesmith.tflite.file import load
from litesmith.tflite.write import to_bytes
from tests import zoo
from tests.diagnosis.test_op_losses import BLINK, IMAGES, as_data, convnet, quantized, with_scale
from tests.pairwise import sampled

SEEDS = list(product(("float32", "float16"), range(4)))
ROWS = zoo.noise(40, 32, seed=3, scale=1.0)


def dense(b: Builder, x: Tensor, weights: np.ndarray, name: str) -> Tensor:
    return b.op("FULLY_CONNECTED", x, weights, np.zeros(len(weights), np.float32), name=name)


def loud(*, deep: bool, seed: int = 0) -> Model:
    """One channel is far louder than all others and hardly read; a curve keeps `equalize` out."""
    b = Builder()
    x = b.input("x", (1, 32))
    if deep:
        x = b.op("FULLY_CONNECTED", x, np.eye(32, dtype=np.float32), name="before")
    first, second = zoo.noise(32, 32, seed=seed, scale=1 / 6), zoo.noise(8, 32, seed=seed + 100)
    first[0] *= 400
    second[:, 0] = 1e-4
    x = b.op("HARD_SWISH", dense(b, x, first, "first"), name="curve")
    return b.model(dense(b, x, second, "second"))


def as_file(model: Model, dtype: str) -> Model:
    made = apply(model, "quantize(to=float16)").model if dtype == "float16" else model
    return load(to_bytes(made))


def rows(model: Model) -> Data:
    return open_data({"x": ROWS}, model)


def recipe_of(found: Diagnosis) -> str:
    match = re.search(r'"(.*)"', found.command)
    assert match, found
    return match[1]


def decibels_after(found: Diagnosis) -> float:
    match = re.search(r"(−?[\d.]+) dB with the command", found.costs)
    assert match, found.costs
    return float(match[1].replace("−", "-"))


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_command_does_what_was_promised(dtype: str, deep: bool) -> None:
    file = as_file(loud(deep=deep), dtype)
    data = rows(file)
    findings = examine(file, data, seconds=BLINK).findings
    commands = [one for one in findings if one.command]
    assert commands
    for one in commands:
        made = apply(file, recipe_of(one), Context(tools(data))).model
        seen = evaluate(made, data, against=file, metric="snr").value
        assert seen == pytest.approx(decibels_after(one), abs=1.0)


@pytest.mark.parametrize(("dtype", "seed"), sampled(SEEDS, lambda row: row[0], lambda row: row[1]))
def test_numbers_are_those_of_the_users_file(dtype: str, seed: int) -> None:
    file = as_file(loud(deep=True, seed=seed), dtype)
    data = rows(file)
    ops = file.main.ops
    findings = examine(file, data, seconds=BLINK).findings
    named = re.findall(r"op (\d+) (\w+) '([^']*)'", " ".join(one.where for one in findings))
    assert named
    for number, kind, name in named:
        assert ops[int(number)].kind == kind
        assert ops[int(number)].outputs[0].name == name
    kept = [re.search(r"keep=\[(.*)\]", f"{one.command} {one.costs}") for one in findings]
    numbers = {int(n) for match in kept if match for n in match[1].split(", ")}
    assert {ops[n].outputs[0].name for n in numbers} >= {"first", "curve", "second"}
    assert all(ops[n].kind != "DEQUANTIZE" for n in numbers)


def test_beside_its_float_file_a_model_is_numbered_by_its_own() -> None:
    model, data = convnet(), as_data(convnet())
    halves = as_file(model, "float16")
    broken = with_scale(quantized(model, data), 2, 0.25)
    (found, *_) = examine(broken, data, against=halves, seconds=BLINK).findings
    match = re.match(r"op (\d+) (\w+)", found.where)
    assert match and broken.main.ops[int(match[1])].kind == match[2] == "FULLY_CONNECTED"


def test_what_does_not_help_is_no_command() -> None:
    """An answer that is a difference far below what even 16 bits tell apart."""
    b = Builder()
    x = b.input("x", (1, 2))
    weights = np.array([[1, -1], [2, -2]], np.float32)
    y = b.op("FULLY_CONNECTED", x, np.eye(2, dtype=np.float32), np.zeros(2, np.float32))
    model = b.model(b.op("FULLY_CONNECTED", y, weights, np.zeros(2, np.float32)))
    first = np.abs(zoo.noise(40, 1))
    near = np.hstack([first, first + np.float32(1e-6)])
    data = open_data({"x": near}, model)
    findings = examine(model, data, seconds=BLINK).findings
    assert findings
    for one in findings:
        assert bool(one.command) == ("with the command" in one.costs)
        if not one.command:
            assert "tried in vain: " in one.costs
            assert "quantize(to=int16x8) (" in one.costs and "quantize(to=dynamic) (" in one.costs


def test_a_float_model_is_said_to_be_quantized_without_correction() -> None:
    told = examine(convnet(), as_data(convnet()), seconds=BLINK).sentence
    assert told.startswith("quantized to int8 here (ranges only")
    assert "litesmith quantize" in told


def test_labels_count_only_where_the_model_knows_them() -> None:
    model = convnet()
    with tools(as_data(model)).opened(model) as run:
        right = np.array([run([image[None]])[0].argmax() for image in IMAGES])
    known = examine(model, open_data({"x": IMAGES, "y": right}, model), seconds=BLINK)
    assert known.evaluation is not None and known.evaluation.metric == "top1"
    assert known.notes == ()
    strange = open_data({"x": IMAGES, "y": np.arange(24) % 10}, model)
    told = examine(model, strange, seconds=BLINK)
    assert "the labels are ignored" in told.notes[0]
    assert "top-1 agreement" in told.sentence
    scores = model.main.ops[-1].inputs[0]
    assert scores is not None
    points = replace(
        model, graphs=(regraph(model.main, ops=model.main.ops[:-1], outputs=[scores]),)
    )
    assert "top-1" not in examine(points, strange, seconds=BLINK).sentence


def with_custom_op() -> Model:
    """A custom op that the stock runtime has."""
    b = Builder()
    x = b.input("x", (1, 8, 8, 3))
    strides = {"stride_w": 1, "stride_h": 1, "padding": "SAME"}
    kernel = zoo.noise(4, 3, 3, 3, scale=1.0)
    y = b.op("CONV_2D", x, kernel, np.zeros(4, np.float32), **strides)
    weights = zoo.noise(2, 2, 2, 4, scale=1.0)
    settings = np.array([1, 2, 2], np.int32).tobytes()
    name = "Convolution2DTransposeBias"
    bias = np.zeros(2, np.float32)
    shape = (1, 16, 16, 2)
    return b.model(
        b.op("CUSTOM", y, weights, bias, custom=name, custom_options=settings, shape=shape)
    )


def test_a_custom_op_is_named_and_the_drift_is_told() -> None:
    model = with_custom_op()
    verdict = examine(model, open_data({"x": IMAGES}, model), seconds=BLINK)
    assert "is a custom op" in verdict.notes[-1] and "state" not in verdict.notes[-1]
    assert re.search(r"output SNR \d\d", verdict.sentence)
    assert verdict.findings == ()


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (zoo.custom(), "custom op"),
        (zoo.loop(), "runs another graph"),
        (zoo.stateful(), "keeps a state"),
        (zoo.convnet(), ""),
    ],
    ids=["custom", "loop", "stateful", "convnet"],
)
def test_why_ops_cannot_be_told_apart(model: Model, why: str) -> None:
    told = inseparable(model)
    assert why in told and bool(told) == bool(why)


def test_tensors_that_do_not_fit_at_once_wait() -> None:
    model = quantized(convnet(), as_data(convnet()))
    data = as_data(model)
    at_once = seen_codes(model, data)
    in_turns = seen_codes(model, data, at_once=1)
    assert len(at_once) > 3
    assert [(c.low, c.high, c.full) for c in in_turns] == [(c.low, c.high, c.full) for c in at_once]
    assert all(codes.samples == len(data) for codes in in_turns)


def test_labels_of_a_model_that_chooses_nothing_are_no_finding() -> None:
    model = loud(deep=False)  # eight numbers; the labels go to 19
    told = examine(model, open_data({"x": ROWS, "y": np.arange(40) % 20}, model), seconds=BLINK)
    assert "top-1" not in told.sentence
    assert not any("labels" in one.what for one in told.findings)
    assert not any("--trust-data" in one.command for one in told.findings)
    assert any("labels" in note for note in told.notes)
