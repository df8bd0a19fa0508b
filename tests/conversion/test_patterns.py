"""What exporters shatter comes back as one op, and only that."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from litesmith.conversion.lower_model import tidied
from litesmith.conversion.onnx_file import read_onnx
from litesmith.conversion.patterns import joined
from tests.conversion.beside_onnx import onnx, onnx_model, same
from tests.zoo import noise

make = onnx.helper.make_node
X = ("x", "float32", [1, 8, 4, 6])
NUMBERS = {
    "half": np.float32(0.5),
    "one": np.float32(1),
    "root": np.float32(np.sqrt(2)),
    "inverse": np.float32(1 / np.sqrt(2)),
    "zero": np.float32(0),
    "three": np.float32(3),
    "five": np.float32(5),
    "six": np.float32(6),
    "blocks": np.int64([1, 2, 2, 2, 4, 6]),
    "groups": np.int64([1, 2, 4, 4, 6]),
    "larger": np.int64([1, 2, 8, 12]),
    "as_before": np.int64([1, 8, 4, 6]),
}


def nodes(*texts: str) -> list:
    """Nodes from texts like `Mul x half -> y`, with settings behind a bar."""
    made = []
    for text in texts:
        call, _, settings = text.partition(" | ")
        kind, *inputs = call.partition(" -> ")[0].split()
        told = {k: eval(v, {}) for k, v in (one.split("=") for one in settings.split(";") if one)}
        made.append(make(kind, inputs, [call.partition(" -> ")[2]], **told))
    return made


WHOLE = {
    "gelu": (
        "Gelu",
        ["Div x root -> d", "Erf d -> e", "Add e one -> a", "Mul x a -> m", "Mul m half -> y"],
    ),
    "gelu, halved first": (
        "Gelu",
        ["Mul x inverse -> d", "Erf d -> e", "Add one e -> a", "Mul half x -> h", "Mul h a -> y"],
    ),
    "hard swish by its gate": (
        "HardSwish",
        ["HardSigmoid x -> g | alpha=1/6;beta=0.5", "Mul x g -> y"],
    ),
    "hard swish in pieces": (
        "HardSwish",
        ["Add x three -> a", "Clip a zero six -> c", "Mul x c -> m", "Div m six -> y"],
    ),
    "pixel shuffle": (
        "DepthToSpace",
        ["Reshape x blocks -> r", "Transpose r -> t | perm=[0,1,4,2,5,3]", "Reshape t larger -> y"],
    ),
    "channel shuffle": (
        "ChannelShuffle",
        [
            "Reshape x groups -> r",
            "Transpose r -> t | perm=[0,2,1,3,4]",
            "Identity t -> copy",
            "Reshape copy as_before -> y",
        ],
    ),
}
PIECES = {
    "another root": [
        "Div x three -> d",
        "Erf d -> e",
        "Add e one -> a",
        "Mul x a -> m",
        "Mul m half -> y",
    ],
    "another gate": ["HardSigmoid x -> g | alpha=0.2;beta=0.5", "Mul x g -> y"],
    "another bound": [
        "Add x three -> a",
        "Clip a zero five -> c",
        "Mul x c -> m",
        "Div m six -> y",
    ],
    "read twice": ["HardSigmoid x -> g | alpha=1/6;beta=0.5", "Mul x g -> m", "Add m g -> y"],
    "another order": [
        "Reshape x groups -> r",
        "Transpose r -> t | perm=[0,2,1,4,3]",
        "Reshape t as_before -> y",
    ],
}


def model_of(texts: list[str], shape: list[int]):
    return onnx_model(nodes(*texts), [X], [("y", "float32", shape)], NUMBERS)


def kinds(model, folder: Path) -> Counter[str]:
    path = folder / "pattern.onnx"
    path.write_bytes(model.SerializeToString())
    return Counter(node.kind for node in joined(read_onnx(path).graph).nodes)


@pytest.mark.parametrize("name", WHOLE)
def test_pieces_become_one_node_of_the_same_answers(name: str, tmp_path: Path) -> None:
    kind, texts = WHOLE[name]
    model = model_of(texts, [1, 2, 8, 12] if name == "pixel shuffle" else [1, 8, 4, 6])
    assert kinds(model, tmp_path) == {kind: 1}
    assert same(model, {"x": noise(1, 8, 4, 6, scale=2)}, tmp_path).main.ops


@pytest.mark.parametrize("name", PIECES)
def test_what_only_looks_alike_stays_in_pieces(name: str, tmp_path: Path) -> None:
    model = model_of(PIECES[name], [1, 8, 4, 6])
    assert sum(kinds(model, tmp_path).values()) == len(PIECES[name])
    assert same(model, {"x": noise(1, 8, 4, 6, scale=2)}, tmp_path).main.ops


def test_a_convolution_has_its_channels_in_the_order_of_the_pixel_shuffle(tmp_path: Path) -> None:
    shuffle = make("DepthToSpace", ["c"], ["y"], blocksize=2, mode="CRD")
    model = onnx_model(
        [make("Conv", ["x", "w", "b"], ["c"]), shuffle],
        [("x", "float32", [1, 3, 4, 6])],
        [("y", "float32", [1, 3, 8, 12])],
        {"w": noise(12, 3, 1, 1), "b": noise(12, seed=1)},
    )
    made = same(model, {"x": noise(1, 3, 4, 6, seed=2)}, tmp_path)
    plain = [op.kind for op in made.main.ops if op.kind != "TRANSPOSE"]
    assert plain == ["CONV_2D", "DEPTH_TO_SPACE"]


@pytest.mark.parametrize(("added", "wanted"), [(1e-5, ["RSQRT", "MUL"]), (-1e-5, ["SQRT", "DIV"])])
def test_values_by_a_few_roots_are_products(
    added: float, wanted: list[str], tmp_path: Path
) -> None:
    """The root of what may be 0 stays a divisor."""
    model = onnx_model(
        nodes(
            "Mul x x -> s",
            "ReduceMean s -> v | axes=[-1]",
            "Add v epsilon -> a",
            "Sqrt a -> r",
            "Div x r -> y",
        ),
        [X],
        [("y", "float32", X[2])],
        {"epsilon": np.float32(added)},
    )
    made = same(model, {"x": noise(1, 8, 4, 6)}, tmp_path)
    assert [op.kind for op in made.main.ops][-2:] == wanted


def test_windows_beside_each_other_are_channels_that_become_places(tmp_path: Path) -> None:
    upward = make("ConvTranspose", ["x", "w", "b"], ["c"], strides=[2, 2])
    model = onnx_model(
        [upward, make("Mul", ["c", "s"], ["m"]), make("Relu", ["m"], ["y"])],
        [("x", "float32", [1, 3, 4, 6])],
        [("y", "float32", [1, 5, 8, 12])],
        {"w": noise(3, 5, 2, 2), "b": noise(5, seed=1), "s": noise(1, 5, 1, 1, seed=2)},
    )
    neat = tidied(same(model, {"x": noise(1, 3, 4, 6, seed=2)}, tmp_path), keep_layout=False).model
    assert [op.kind for op in neat.main.ops] == ["CONV_2D", "DEPTH_TO_SPACE"]
