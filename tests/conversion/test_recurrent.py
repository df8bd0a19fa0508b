"""Layers with a memory give what onnxruntime gives, written out or in a loop."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conversion.beside_onnx import converted, lowered_model, onnx, onnx_model, same

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
PLACES = {"LSTM": 3, "GRU": 2, "RNN": 1}


def cell_model(
    kind: str,
    *,
    steps: int = 5,
    batch: int = 2,
    width: int = 3,
    hidden: int = 4,
    direction: str = "forward",
    starts: bool = False,
    lengths: tuple[int, ...] | None = None,
    peepholes: bool = False,
    bias: bool = True,
    **settings,
):
    """A layer and what it is fed with."""
    rng = np.random.default_rng(steps + 10 * hidden)
    gates, ways = GATES[kind], 2 if direction == "bidirectional" else 1

    def numbers(*shape: int):
        return rng.uniform(-0.7, 0.7, shape).astype(np.float32)

    constants = {
        "w": numbers(ways, gates * hidden, width),
        "r": numbers(ways, gates * hidden, hidden),
    }
    names = ["x", "w", "r", "", "", "", "", ""]
    if bias:
        constants["b"], names[3] = numbers(ways, 2 * gates * hidden), "b"
    if lengths is not None:
        constants["lengths"], names[4] = np.array(lengths, np.int32), "lengths"
    fed = {"x": numbers(steps, batch, width)}
    if starts:
        names[5], fed["h"] = "h", numbers(ways, batch, hidden)
        if kind == "LSTM":
            names[6], fed["c"] = "c", numbers(ways, batch, hidden)
    if peepholes:
        constants["p"], names[7] = numbers(ways, 3 * hidden), "p"
    while names[-1] == "":
        names.pop()
    outputs = ["y", "y_h", "y_c"][: 3 if kind == "LSTM" else 2]
    node = onnx.helper.make_node(
        kind, names, outputs, hidden_size=hidden, direction=direction, **settings
    )
    state = (ways, batch, hidden)
    shapes = [(steps, ways, batch, hidden), state, state]
    made = [(o, np.float32, s) for o, s in zip(outputs, shapes, strict=False)]
    return onnx_model(
        [node], [(n, np.float32, a.shape) for n, a in fed.items()], made, constants
    ), fed


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("starts", [False, True])
def test_a_layer_gives_what_onnxruntime_gives(
    kind: str, direction: str, starts: bool, tmp_path: Path
) -> None:
    model, fed = cell_model(kind, direction=direction, starts=starts)
    assert same(model, fed, tmp_path).main.ops


@pytest.mark.parametrize(
    ("kind", "extra"),
    [
        ("LSTM", {"peepholes": True}),
        ("LSTM", {"peepholes": True, "starts": True}),
        ("LSTM", {"clip": 0.3}),
        ("LSTM", {"input_forget": 1}),
        ("LSTM", {"bias": False}),
        ("LSTM", {"activations": ["HardSigmoid", "ScaledTanh", "Softsign"],
                  "activation_alpha": [0.3, 0.9], "activation_beta": [0.4, 0.8]}),
        ("GRU", {"linear_before_reset": 1}),
        ("GRU", {"linear_before_reset": 1, "bias": False}),
        ("GRU", {"linear_before_reset": 1, "starts": True, "clip": 0.4}),
        ("GRU", {"activations": ["Sigmoid", "LeakyRelu"], "activation_alpha": [0.2]}),
        ("RNN", {"activations": ["Relu"]}),
        ("RNN", {"activations": ["Affine"], "activation_alpha": [0.5], "activation_beta": [0.1]}),
        ("RNN", {"activations": ["Elu"], "activation_alpha": [0.5]}),
        ("RNN", {"activations": ["ThresholdedRelu"], "activation_alpha": [0.1]}),
        ("RNN", {"activations": ["Softplus"]}),
    ],
)  # fmt: skip
def test_its_settings_are_kept(kind: str, extra: dict, tmp_path: Path) -> None:
    model, fed = cell_model(kind, **extra)
    assert same(model, fed, tmp_path).main.ops


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("steps", [5, 37])
def test_sequences_end_at_different_times(
    kind: str, direction: str, steps: int, tmp_path: Path
) -> None:
    model, fed = cell_model(kind, steps=steps, direction=direction, lengths=(3, steps), starts=True)
    assert same(model, fed, tmp_path).main.ops


@settings(max_examples=15, deadline=None)
@given(
    kind=st.sampled_from(sorted(GATES)),
    steps=st.sampled_from([1, 2, 32, 33, 35, 37]),
    batch=st.integers(1, 3),
    hidden=st.integers(1, 5),
    direction=st.sampled_from(["forward", "reverse", "bidirectional"]),
    linear=st.booleans(),
)
def test_few_steps_are_written_out_and_many_are_a_loop_of_the_same(
    kind: str, steps: int, batch: int, hidden: int, direction: str, linear: bool
) -> None:
    extra = {"linear_before_reset": 1} if linear and kind == "GRU" else {}
    model, fed = cell_model(
        kind, steps=steps, batch=batch, hidden=hidden, direction=direction, **extra
    )
    with TemporaryDirectory() as folder:
        made = same(model, fed, Path(folder))
    loops = sum(op.kind == "WHILE" for op in made.main.ops)
    assert loops == (0 if steps <= 32 else 2 if direction == "bidirectional" else 1)


def test_large_weights_are_not_packed_for_every_step(tmp_path: Path) -> None:
    model, _ = cell_model("LSTM", steps=20, hidden=128)
    assert len(lowered_model(model, tmp_path).graphs) == 3


def test_an_activation_that_onnx_does_not_have_is_named(tmp_path: Path) -> None:
    model, _ = cell_model("RNN", activations=["Wobble"])
    (left,) = converted(model, tmp_path).left
    assert "wobble" in left.why
