"""Bands: every region in any number of bands gives the same bits, with less alive at once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litesmith.errors import BadInput
from litesmith.ir.build import Builder
from litesmith.ir.check import check
from litesmith.ir.edit import MEMORY_PLAN
from litesmith.ir.types import Model, Quant, Tensor
from litesmith.micro.arena import add_up_arena
from litesmith.micro.bands import Region, list_regions, split_region
from litesmith.micro.op_order import peak_bytes
from litesmith.micro.plan_file import check_file
from litesmith.passes.core.recipe import apply
from litesmith.run.session import Session
from tests.micro.test_plan_file import weights

QUANT = Quant.of(0.05, 3)


def conv(b: Builder, x: Tensor, made: int, window: int, stride: int, padding: str) -> Tensor:
    random = np.random.default_rng(made + window)
    w = random.integers(-9, 9, (made, window, window, x.shape[3])).astype(np.int8)
    slide = {"stride_h": stride, "stride_w": stride, "padding": padding}
    return b.op("CONV_2D", x, *weights(b, w, made), quant=QUANT, version=3, **slide)


def early_peak(height: int = 32, window: int = 3, padding: str = "SAME") -> Model:
    """A wide first block with a shortcut, then less and less."""
    b = Builder()
    x = b.input("x", (1, height, 16, 2), "int8", QUANT)
    wide = conv(b, x, 16, window, 1, padding)
    again = conv(b, wide, 16, 1, 1, padding)
    y = b.op("ADD", wide, again, quant=QUANT, version=2)
    y = b.op("RELU", y, quant=QUANT, version=2)
    y = conv(b, y, 8, window, 2, padding)
    y = conv(b, y, 4, 3, 2, "SAME")
    return b.model(y)


def answer(model: Model, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    x = random.integers(-128, 128, model.main.inputs[0].shape).astype(np.int8)
    with Session(model, "cpu:1:reference") as session:
        return next(iter(session(x).values()))


@settings(max_examples=25, deadline=None)
@given(
    st.integers(9, 24), st.sampled_from([1, 2, 3, 5]), st.sampled_from(["SAME", "VALID"]), st.data()
)
def test_a_region_in_bands_gives_the_same_bits(
    height: int, window: int, padding: str, data: st.DataObject
) -> None:
    model = early_peak(height, window, padding)
    heights = {r: r.ops(model.main)[-1].outputs[0].shape[1] for r in list_regions(model.main, 2, 6)}
    region = data.draw(st.sampled_from([r for r, rows in heights.items() if rows > 1]))
    rows = heights[region]
    changed = split_region(model, region, data.draw(st.integers(2, rows)))
    check(changed)
    np.testing.assert_array_equal(answer(changed), answer(model))


def test_padding_of_its_own_is_part_of_a_region() -> None:
    b = Builder()
    x = b.input("x", (1, 12, 12, 3), "int8", QUANT)
    y = conv(b, x, 8, 1, 1, "SAME")
    edges = b.const(np.array([[0, 0], [0, 1], [0, 1], [0, 0]], np.int32))
    y = b.op("PAD", y, edges, quant=QUANT, version=2)
    y = conv(b, y, 4, 3, 2, "VALID")
    model = b.model(y)
    changed = split_region(model, Region(0, 2), 3)
    assert peak_bytes(changed) < peak_bytes(model)
    np.testing.assert_array_equal(answer(changed), answer(model))


def test_what_is_read_elsewhere_or_padded_by_a_pool_is_no_region() -> None:
    b = Builder()
    x = b.input("x", (1, 8, 8, 4), "int8", QUANT)
    y = conv(b, x, 4, 3, 1, "SAME")
    pool = {"filter_height": 3, "filter_width": 3, "stride_h": 1, "stride_w": 1}
    z = b.op("MAX_POOL_2D", y, quant=QUANT, version=2, padding="SAME", **pool)
    model = b.model(z, y)
    assert list(list_regions(model.main, 0, 4)) == []
    with pytest.raises(ValueError, match="cannot be made in bands"):
        split_region(model, Region(0, 1), 2)


def test_arrange_splits_as_far_as_the_ram_asks_and_keeps_the_answer() -> None:
    model = early_peak()
    before = add_up_arena(model).needed
    plain, split = apply(model, "arrange"), apply(model, f"arrange(ram={before * 3 // 4})")
    assert len(plain.model.main.ops) == len(model.main.ops)
    assert add_up_arena(split.model).needed <= before * 3 // 4
    assert any("bands" in line for line in split.touched)
    check_file(split.model)
    np.testing.assert_array_equal(answer(split.model), answer(model))


def test_a_plan_survives_its_own_step_and_no_other() -> None:
    model = early_peak()
    arranged = apply(model, "arrange(overlap=reference)").model
    assert MEMORY_PLAN in dict(arranged.metadata)
    encoded = apply(arranged, "encode(least=0)").model  # changes the graph
    assert encoded is arranged or MEMORY_PLAN not in dict(encoded.metadata)
    with pytest.raises(BadInput, match=r"^arrange\(ram=-1, overlap=none\)"):
        apply(model, "arrange(ram=-1)")
