"""Tasks are recognised by models and data of every kind, without a stumble."""

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from litesmith.ir.types import Graph, Model, Op, Tensor
from litesmith.tasks.task import Settings
from litesmith.tasks.task_table import TASKS, recognise

SOURCES = ("data.npz", "list.csv", "list.tsv", "squad.json", "rows.jsonl", "folder", "missing.csv")
SHAPES = st.lists(st.sampled_from([0, 1, 2, 25, 85, 416, 2034]), max_size=5).map(tuple)
PORTS = st.lists(
    st.tuples(SHAPES, st.sampled_from(["float32", "int32", "int64", "uint8", "bool"])), max_size=4
)


def passing(inputs: list[tuple[tuple[int, ...], str]], outputs: list[tuple]) -> Model:
    ins = tuple(Tensor(f"in{i}", shape, dtype) for i, (shape, dtype) in enumerate(inputs))
    outs = tuple(Tensor(f"out{i}", shape, dtype) for i, (shape, dtype) in enumerate(outputs))
    ops = (Op("CUSTOM", ins, outs),)
    return Model((Graph("main", ins, outs, ops, (*ins, *outs)),))


@given(PORTS, PORTS, st.sampled_from(SOURCES))
def test_any_interface_beside_any_source_has_a_task_or_none(
    tmp_path_factory, inputs: list, outputs: list, name: str
) -> None:
    folder = tmp_path_factory.getbasetemp() / "sources"
    (folder / "folder").mkdir(parents=True, exist_ok=True)
    np.savez(folder / "data.npz", x=np.zeros((2, 3)))
    for text in SOURCES[1:5]:
        (folder / text).write_text("text,label\na,1\n")
    found = recognise(Path(folder / name), passing(inputs, outputs), Settings())
    assert found in ("", *TASKS)
