"""A view of one model or two: everything is told, nothing is made up."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from litesmith.anatomy.source_file import SourceFile
from litesmith.graph_view.gather_view import GraphView, ViewRequest, gather_view
from litesmith.graph_view.row_order import OP
from litesmith.ir.build import Builder
from litesmith.ir.edit import with_main
from litesmith.ir.types import Model
from litesmith.passes.core.recipe import apply
from litesmith.run.core.placement import MEASURED, PREDICTED
from litesmith.run.core.target import Target
from tests import zoo, zoo_float
from tests.zoo_float import context, few

ODD = [
    *(zoo.loop, zoo.variables, zoo.custom, zoo.strings, zoo.sparse, zoo.blockwise, zoo.nothing),
    *(zoo.resizable, zoo.two_signatures, zoo.same_names, zoo.half_weights, zoo.int4_weights),
]


def look(*models: Model, seconds: float | None = None, **more: object) -> GraphView:
    request = ViewRequest(Target.parse("cpu:1"), seconds)
    return gather_view([SourceFile(model) for model in models], more.get("data"), request)  # type: ignore[arg-type]


def int8_of(model: Model, recipe: str = "quantize") -> Model:
    return apply(model, recipe, context(model)).model


@pytest.mark.parametrize("make", ODD, ids=lambda make: make.__name__)
def test_odd_models_are_shown_whole(make: Callable[[], Model]) -> None:
    model = make()
    view = look(model)
    shown = sum(row.kind == OP for graph in view.graphs for row in graph.rows)
    assert shown == len(view.models[0].ops) == sum(len(graph.ops) for graph in model.graphs)
    assert view.models[0].timing.how == PREDICTED
    pair = look(model, model)
    assert len(pair.graphs) == len(model.graphs)


def test_models_without_an_output_are_shown_beside_each_other() -> None:
    whole = zoo_float.residual()
    silent = with_main(whole, replace(whole.main, outputs=()))
    view = look(silent, silent, seconds=0.01, data=few(whole))
    assert view.samples == ()


def test_answers_without_axes_are_held_against_each_other() -> None:
    b = Builder()
    model = b.model(b.op("MEAN", b.input("x", (4,)), np.int32([0]), keep_dims=False))
    assert model.main.outputs[0].shape == ()
    half = Builder()
    mean = half.op("MEAN", half.input("x", (4,)), np.int32([0]), keep_dims=False)
    other = half.model(half.op("MUL", mean, np.float32(0.5)))
    assert len(look(model, other, seconds=0.01, data=few(model)).samples) > 0


def test_what_is_measured_is_marked_so() -> None:
    view = look(zoo.convnet(), seconds=0.01)
    (model,) = view.models
    assert model.timing.how == MEASURED and (model.timing.run_us or 0) > 0
    assert all(place in model.timing.ops for place in model.ops)


def test_two_models_have_errors_a_path_and_weights_on_one_axis() -> None:
    model = zoo_float.residual()
    made = int8_of(model)
    view = look(model, made, seconds=0.01, data=few(model))
    assert view.errors.ops and not view.errors.is_random
    for error in view.errors.ops.values():
        assert error.total_db is not None and math.isfinite(error.total_db)
        assert error.seen is not None and error.seen[0] <= error.seen[1]
    assert view.path and view.path[-1] == len(made.main.ops) - 1
    before, after = (one.bars for one in view.models)
    assert before and len(before) == len(after)
    axes = {(bars.low, bars.high) for bars in (*before.values(), *after.values())}
    assert len(axes) == len(before)
    for bars in before.values():
        assert math.isclose(sum(bars.bars), 1.0)


def test_without_data_errors_are_seen_on_random_inputs() -> None:
    model = zoo_float.residual()
    view = look(model, int8_of(model), seconds=0.01)
    assert view.errors.is_random and view.errors.samples and not view.samples


def test_samples_are_told_apart_by_their_answers() -> None:
    model = zoo_float.tiny_output()
    view = look(model, int8_of(model), seconds=0.01, data=few(model, 4))
    assert len(view.samples) <= 4
    for one in view.samples:
        assert one.place is None or 0 <= one.place < len(view.models[1].ops)


def test_errors_that_cannot_be_told_apart_have_a_reason() -> None:
    model = zoo_float.looping()
    view = look(model, model, seconds=0.01)
    assert not view.errors.ops and "cannot be separated" in view.notes[-1]


def test_ops_to_keep_float_are_those_that_a_scheme_changes() -> None:
    model = zoo_float.residual()
    view = look(model, int8_of(model, "quantize(keep=[0])"))
    assert view.keep is not None and view.keep.scheme == "int8"
    assert 0 in view.keep.kept and view.keep.choices
    alone = look(model)
    assert alone.keep is not None and alone.keep.kept == ()
    assert look(zoo.residual_int8()).keep is None
    assert look(model, model).keep is None


def test_every_op_has_a_home_or_a_reason() -> None:
    view = look(zoo.convnet())
    for homes in view.models[0].homes.values():
        assert len(homes) == len(view.models[0].ops)
        assert all(home.why for home in homes)


def test_what_is_no_number_has_no_bars() -> None:
    assert look(zoo.strings()).models[0].bars == {}
