"""Every place that a new op needs, told from its row: a forgotten one is named."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("torch")

from litesmith.ir.op_row import Row
from litesmith.ir.ops import OPS
from litesmith.ir.versions import VERSIONS
from litesmith.numeric.kernels import KERNELS
from litesmith.passes.shrinking.channel_rules import RULES as CHANNEL_RULES
from litesmith.profiling.alignment import TAGS
from litesmith.run.rules.all_rules import RULES as ACCELERATOR_RULES
from litesmith.training.ops.lift import TORCH_OPS
from tests.op_cases_shaping import CASES

GUIDE = Path(__file__).parents[1] / "docs" / "add-an-op.md"
TAGGED = {kind for kinds in TAGS.values() for kind in kinds}


class Place(NamedTuple):
    """A place in the code, the rows that need it, how it is seen to be there, and the kinds that
    do without it, each with a reason."""

    file: str
    needs: Callable[[Row], bool]
    has: Callable[[str, Row], bool]
    spared: Mapping[str, str] = {}


def is_computed(row: Row) -> bool:
    """True where inputs and options alone decide the outputs."""
    apart = row.has_effect or row.is_control_flow or row.varies
    return row.is_full and row.inputs != "" and not apart


def is_common(row: Row) -> bool:
    """True for what nearly every network is made of."""
    is_known = row.is_layer or row.moves_data or row.averages
    return is_known or bool(row.arithmetic) or row.clamps is not None or row.converts


PLACES: dict[str, Place] = {
    "shape rule": Place(
        "src/litesmith/ir/shapes.py",
        lambda row: is_computed(row) and not row.sized_by_values,
        lambda kind, row: row.shape is not None,
        {
            "BIDIRECTIONAL_SEQUENCE_LSTM": "an option decides how many outputs there are",
            "BIDIRECTIONAL_SEQUENCE_RNN": "an option decides how many outputs there are",
            "BITCAST": "the sizes of two element types decide",
            "HASHTABLE_LOOKUP": "the table decides",
            "STABLEHLO_COMPOSITE": "the graph that it stands for decides",
        },
    ),
    "multiply-accumulates": Place(
        "src/litesmith/ir/macs.py",
        lambda row: row.weight is not None and row.data is not None,
        lambda kind, row: row.macs is not None,
    ),
    "integer kernels": Place(
        "src/litesmith/ir/versions.py",
        lambda row: row.scale != "none",
        lambda kind, row: bool(VERSIONS.get(kind)),
        {
            "BIDIRECTIONAL_SEQUENCE_RNN": "the stock kernel has not been seen to be right",
            "DENSIFY": "it unpacks constants, whatever their type",
        },
    ),
    "reference kernel": Place(
        "src/litesmith/numeric/kernels.py",
        lambda row: is_computed(row) and row.shape is not None and "v" not in row.inputs,
        lambda kind, row: kind in KERNELS,
        {
            "DENSIFY": "sparse constants are unpacked as they are read",
            "NON_MAX_SUPPRESSION_V4": "no step computes it",
            "NON_MAX_SUPPRESSION_V5": "no step computes it",
            "QUANTIZE": "the scales of the tensors say all",
        },
    ),
    "torch form": Place(
        "src/litesmith/training/ops/lift.py",
        lambda row: row.scale != "none",
        lambda kind, row: kind in TORCH_OPS,
        dict.fromkeys(
            ("DYNAMIC_UPDATE_SLICE", "MATRIX_SET_DIAG", "SPARSE_TO_DENSE", "SVDF"),
            "nothing is learned through it",
        ),
    ),
    "channel rule": Place(
        "src/litesmith/passes/shrinking/channel_rules.py",
        is_common,
        lambda kind, row: kind in CHANNEL_RULES,
        {"QUANTIZE": "channels are removed from float models only"},
    ),
    "profiler tag": Place(
        "src/litesmith/profiling/alignment.py", is_common, lambda kind, row: kind in TAGGED
    ),
    "cases": Place(
        "tests/op_cases.py",
        lambda row: row.shape is not None,
        lambda kind, row: bool(CASES.get(kind)),
    ),
}


def forgotten(kind: str, row: Row) -> list[str]:
    """The places that a row needs and that are not there."""
    return [
        f"{kind} has no {name}: {place.file}"
        for name, place in PLACES.items()
        if place.needs(row) and not place.has(kind, row) and kind not in place.spared
    ]


@pytest.mark.parametrize("kind", OPS)
def test_every_place_is_there(kind: str) -> None:
    assert forgotten(kind, OPS[kind]) == []


def test_a_forgotten_place_is_named() -> None:
    row = Row("x w b?", "free", options="Conv2DOptions", axis=0, is_layer=True)
    assert forgotten("CONV_4D", row) == [
        "CONV_4D has no shape rule: src/litesmith/ir/shapes.py",
        "CONV_4D has no multiply-accumulates: src/litesmith/ir/macs.py",
        "CONV_4D has no integer kernels: src/litesmith/ir/versions.py",
        "CONV_4D has no torch form: src/litesmith/training/ops/lift.py",
        "CONV_4D has no channel rule: src/litesmith/passes/shrinking/channel_rules.py",
        "CONV_4D has no profiler tag: src/litesmith/profiling/alignment.py",
    ]
    shaped = row._replace(shape=OPS["CONV_2D"].shape)
    assert forgotten("CONV_4D", shaped)[2:3] + forgotten("CONV_4D", shaped)[-1:] == [
        "CONV_4D has no reference kernel: src/litesmith/numeric/kernels.py",
        "CONV_4D has no cases: tests/op_cases.py",
    ]
    assert forgotten("CONV_4D", Row()) == []


@pytest.mark.parametrize("name", PLACES)
def test_a_spared_kind_is_spared_for_something(name: str) -> None:
    place = PLACES[name]
    for kind in place.spared:
        assert place.needs(OPS[kind]) and not place.has(kind, OPS[kind])


@pytest.mark.parametrize("name", PLACES)
def test_the_guide_names_every_place(name: str) -> None:
    assert PLACES[name].file in GUIDE.read_text("utf-8")


TABLES: dict[str, Collection[str]] = {
    "integer kernels": VERSIONS,
    "reference kernels": KERNELS,
    "torch forms": TORCH_OPS,
    "channel rules": CHANNEL_RULES,
    "profiler tags": TAGGED,
    **{name: rules.takes for name, rules in ACCELERATOR_RULES.items()},
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_name_ops_that_exist(name: str) -> None:
    assert set(TABLES[name]) <= set(OPS)
