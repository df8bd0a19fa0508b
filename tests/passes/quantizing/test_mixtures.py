"""Random graphs, and random mixtures of schemes in one model: what comes out is always sound."""

import numpy as np
from hypothesis import HealthCheck, given, reject
from hypothesis import strategies as st

from litesmith.errors import CannotApply
from litesmith.ir.types import Model
from litesmith.passes.core.recipe import apply
from litesmith.tflite.write import to_bytes
from tests.draws import draws
from tests.quantized import TARGETS, broken_laws, float_inside, results, snr
from tests.random_graphs import graphs
from tests.zoo_float import context, few

# Signal to noise below which something is broken, not merely rounded: the small models of random
# numbers have sign flips and cancellations that cost more than any rounding of a real one.
LEAST = {"int8": 4.0, "int16x8": 20.0}


def sound(model: Model, recipe: str, least: float) -> Model:
    """The model after a recipe, once every law was seen to hold."""
    data, before = few(model, 5), to_bytes(model)
    change = apply(model, recipe, context(model, 5))
    assert to_bytes(model) == before
    assert broken_laws(change.model) == []
    wanted = results(model, data)
    for target in TARGETS:
        for a, b in zip(wanted, results(change.model, data, target), strict=True):
            if np.abs(a).max() <= 1e-6:  # nothing but zeros, which has no ratio to any noise
                assert np.abs(b).max() <= len(model.main.ops) * widest_step(change.model), target
            else:
                assert np.abs(a - b).max() <= 1e-6 or snr(a, b) >= least, target
    return change.model


def widest_step(model: Model) -> float:
    """The most that an op adds to an error: what makes one larger makes the steps wider alike."""
    made = (tensor.quant for op in model.main.ops for tensor in op.outputs)
    return max(float(quant.scale[0]) for quant in made if quant is not None)


@draws(50, HealthCheck.too_slow)
@given(graphs(), st.sampled_from(["float", "int8", "uint8"]))
def test_int8(model: Model, io: str) -> None:
    sound(model, f"quantize(io={io})", LEAST["int8"])


@draws(25, HealthCheck.too_slow)
@given(graphs(), st.sampled_from(["float", "int16"]))
def test_int16(model: Model, io: str) -> None:
    sound(model, f"quantize(to=int16x8, io={io})", LEAST["int16x8"])


@draws(40, HealthCheck.too_slow)
@given(graphs(), st.data())
def test_schemes_join_in_one_model(model: Model, data: st.DataObject) -> None:
    """What the first step leaves out is the second one's; together they leave nothing but detours
    that are needed."""
    ops = range(len(model.main.ops))
    chosen = data.draw(st.lists(st.sampled_from(ops), min_size=1, max_size=3, unique=True))
    first, second = data.draw(st.permutations(["int8", "int16x8"]))
    steps = [f"quantize(to={first}, only={chosen})", f"quantize(to={second})"]
    applied: list[str] = []
    for step in steps:
        try:
            apply(model, " | ".join([*applied, step]), context(model, 5))
        except CannotApply as error:
            assert "\n" not in str(error)
        else:
            applied.append(step)
    sound(model, " | ".join(applied), LEAST["int8"])


@draws(25, HealthCheck.too_slow)
@given(graphs(), st.sampled_from(["correct", "round"]), st.sampled_from(["int8", "int16x8"]))
def test_what_follows_spoils_nothing(model: Model, step: str, to: str) -> None:
    sound(model, f"quantize(to={to}) | {step}", LEAST["int8"])


@draws(25, HealthCheck.too_slow)
@given(graphs(), st.data())
def test_kept_ops_stay_float_and_no_others(model: Model, data: st.DataObject) -> None:
    ops = range(len(model.main.ops))
    kept = data.draw(st.lists(st.sampled_from(ops), max_size=3, unique=True))
    everything = apply(model, "quantize", context(model, 5)).model
    can = len(model.main.ops) - len(float_inside(everything.main))
    try:
        part = apply(model, f"quantize(keep={kept})", context(model, 5)).model
    except CannotApply as error:
        assert "no layer" in str(error)
        reject()
    names = {model.main.ops[place].outputs[0].name for place in kept}
    float_outputs = {op.outputs[0].name for op in part.main.ops if not _is_integer(op)}
    assert names <= {name.removesuffix("/float32") for name in float_outputs}
    assert len(float_inside(part.main)) <= len(model.main.ops) - can + len(kept)


def _is_integer(op) -> bool:
    return any(t.quant is not None for t in op.outputs)
