"""Zeros that would be skipped: layer by layer, as the kernels themselves decide."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import litesmith
from litesmith import Builder, Model
from litesmith.anatomy.sparse_speedup import expected_gain, skipping
from litesmith.cli.text.size_text import skipping_lines
from litesmith.diagnosis.slowness import ModelToDiagnose, diagnoses
from litesmith.kernels.litesmith_target import Kernels
from litesmith.profiling.op_times import profile_ops
from litesmith.regression.size_report import skipping_facts
from litesmith.run.core.target import Target
from tests import zoo
from tests.draws import draws
from tests.kernels.one_op import needs_float_codes, needs_numba


def layer(zeros: float, rows: int, inputs: int, channels: int) -> Model:
    rng = np.random.default_rng(0)
    kept = np.arange(channels * inputs // 4) >= zeros * channels * inputs // 4
    blocks = rng.normal(0, 1, (kept.size, 4)) * rng.permutation(kept)[:, None]
    weights = blocks.astype(np.float32).reshape(channels, inputs)
    b = Builder()
    x = b.input("x", (rows, inputs))
    return b.model(b.op("FULLY_CONNECTED", x, weights, np.zeros(channels, np.float32)))


@needs_numba
@draws(25)
@given(
    st.sampled_from([0.1, 0.5, 0.8, 0.95]),
    st.integers(1, 64),
    st.sampled_from([16, 64, 512]),
    st.sampled_from([16, 100, 512]),
)
def test_what_is_expected_is_what_is_taken(
    zeros: float, rows: int, inputs: int, channels: int
) -> None:
    model = layer(zeros, rows, inputs, channels)
    (found,) = skipping(model)
    assert found.facts.zeros == pytest.approx(zeros, abs=0.03)
    assert found.is_faster == (Kernels().claims(model.main.ops[0]) is True)
    even = found.facts.even
    assert found.is_faster == (even is not None and found.facts.zeros > even)


@needs_numba
@needs_float_codes
@pytest.mark.parametrize(("zeros", "is_faster"), [(0.2, False), (0.7, True), (0.95, True)])
def test_int8_layers_are_expected_to_be_what_they_are(zeros: float, is_faster: bool) -> None:
    data = np.random.default_rng(0).normal(0, 1, (64, 512)).astype(np.float32)
    model = litesmith.apply(layer(zeros, 64, 512, 512), "quantize(to=int8)", data).model
    (found,) = skipping(model)
    assert found.op.kind == "FULLY_CONNECTED" and found.facts.dtype == "int8"
    assert found.facts.zeros == pytest.approx(zeros, abs=0.03)
    assert found.is_faster == is_faster == (Kernels().claims(found.op) is True)
    assert expected_gain([found]) == pytest.approx(max(found.facts.gain, 1))
    assert "even at" in skipping_lines(model)[1]


def test_layers_without_zeros_are_not_told_of() -> None:
    assert skipping(zoo.convnet()) == []
    assert skipping_lines(zoo.convnet()) == []
    assert expected_gain([]) == 1


def test_the_lines_say_where_it_breaks_even() -> None:
    model = layer(0.9, 64, 512, 512)
    head, line = skipping_lines(model)
    assert head.startswith("on cpu:1:litesmith, 1 of 1 layers should be faster")
    (told,) = skipping_facts(model)
    even = told["even"]
    assert isinstance(even, float)
    assert f"even at {100 * even:.1f} %" in line and "expected" in line
    head, line = skipping_lines(layer(0.2, 64, 512, 512))
    assert "none of 1 layers" in head and line.endswith("stays dense")


def test_the_doctor_names_the_command_that_shows_it() -> None:
    model = layer(0.9, 64, 512, 512)
    found = diagnoses(ModelToDiagnose(model, Target(), profile_ops(model, runs=2), seconds=0.05))
    (one,) = [d for d in found if "1 layer multiplies by zeros" in d.what]
    assert one.command == "litesmith bench MODEL --on cpu:1,cpu:1:litesmith"
    assert one.us is not None and "from " in one.why
    on_ours = ModelToDiagnose(model, Target.parse("cpu:1:litesmith"), None)
    assert not [d for d in diagnoses(on_ours) if "zeros" in d.what]


@pytest.mark.parametrize("name", zoo.MODELS)
def test_every_sort_of_op_may_stand_beside_layers(name: str) -> None:
    assert skipping(zoo.MODELS[name]()) == []
