"""Pages of small models for the tests of the graph."""

from dataclasses import replace
from pathlib import Path

import numpy as np

import litesmith
from litesmith.ir.edit import rewrite, with_graphs
from litesmith.ir.types import Graph, Model, Tensor
from litesmith.passes.core.recipe import apply
from tests.zoo_float import context

HOSTILE = "<script>document.title='mine'</script><img src=x onerror=\"document.title='mine'\">"


def blocks(count: int = 3, name: str = "net") -> Model:
    """Residual blocks whose names tell where each op belongs."""
    random = np.random.default_rng(0)
    b = litesmith.Builder()
    x = b.input("x", (1, 6, 6, 4))
    for block in range(count):
        y = x
        for layer in ("expand", "project"):
            weights = random.normal(0, 0.3, (4, 3, 3, 4)).astype(np.float32)
            bias = np.zeros(4, np.float32)
            y = b.op("CONV_2D", y, weights, bias, name=f"{name}/block_{block}/{layer}/out")
        x = b.op("ADD", x, y, name=f"{name}/block_{block}/add")
    return b.model(b.op("SOFTMAX", x, beta=1.0, name=f"{name}/scores"))


def int8_of(model: Model) -> Model:
    return apply(model, "quantize", context(model)).model


def write_pair(folder: Path, count: int = 3) -> Path:
    """The page of a float model beside its int8 one, with real errors and samples."""
    model = blocks(count)
    litesmith.save(model, folder / "float.tflite")
    litesmith.save(int8_of(model), folder / "int8.tflite")
    data = np.random.default_rng(1).normal(size=(6, 6, 6, 4)).astype(np.float32)
    np.save(folder / "data.npy", data)
    out = folder / "pair.html"
    paths = (folder / name for name in ("float.tflite", "int8.tflite", "data.npy"))
    litesmith.view(*paths, out=out, seconds=0.02)
    return out


def rename(model: Model, name: str) -> Model:
    """The model with every tensor and graph called so."""
    graphs: list[Graph] = []
    changed: dict[Tensor, Tensor] = {}
    for graph in model.graphs:
        own = {t: replace(t, name=f"{name}{n}") for n, t in enumerate(graph.tensors)}
        changed |= own
        graphs.append(replace(rewrite(graph, tensors=own), name=name))
    return with_graphs(model, graphs, changed)
