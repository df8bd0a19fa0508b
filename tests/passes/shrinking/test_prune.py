"""The laws of `prune`: exactly so many zeros, in blocks, where the data says; tuned or not."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest

from litesmith.anatomy.weights import promises
from litesmith.calibration.observe import tools
from litesmith.errors import BadInput, CannotApply
from litesmith.ir.build import Builder
from litesmith.ir.edit import rewrite, with_graphs
from litesmith.ir.types import Array, Model, Tensor
from litesmith.passes.core.layers import layers_of
from litesmith.passes.core.recipe import apply
from litesmith.passes.core.step import Context, Masks, Tuned
from litesmith.passes.core.weight_structure import codebook_of
from litesmith.tflite.write import to_bytes
from tests.quantized import worst
from tests.zoo import MODELS, noise
from tests.zoo_float import FLOATS, Few, context, conv, dense, few, image


def network() -> Model:
    b = Builder()
    x = conv(b, image(b, 8, 3), 16, fused_activation_function="RELU")
    x = conv(b, x, 16, 2, fused_activation_function="RELU")
    y = b.op("DEPTHWISE_CONV_2D", x, noise(1, 3, 3, 16, seed=9, scale=0.3), noise(16))
    x = b.op("ADD", x, conv(b, y, 16, 4, size=1))
    return b.model(b.op("SOFTMAX", dense(b, b.op("MEAN", x, [1, 2]), 32, 6)))


def weights(model: Model) -> list[np.ndarray]:
    return [layer.weight.values() for layer in layers_of(model.main).values()]


def zeros(model: Model) -> list[int]:
    return [int((values == 0).sum()) for values in weights(model)]


# Of the network: the second and third convolution and the last layer.
PRUNED = (1, 3, 4)
COUNT = 16 * 9 * 16 + 16 * 16 + 16 * 32


@pytest.mark.parametrize("data", [0, 12])
@pytest.mark.parametrize("sparsity", [0.0, 0.1, 0.5, 0.75, 0.99])
def test_the_share_of_zeros_is_the_one_asked_for(sparsity: float, data: int) -> None:
    model = network()
    given = context(model, data) if data else Context()
    change = apply(model, f"prune(sparsity={sparsity})", given)
    assert sum(zeros(change.model)) == round(sparsity * COUNT)
    assert zeros(change.model)[0] == zeros(change.model)[2] == 0
    reasons = " ".join(skip.why for skip in change.skipped)
    assert "first layer, on 3 channels" in reasons and "depthwise" in reasons


@pytest.mark.parametrize("data", [0, 12])
def test_blocks_are_whole(data: int) -> None:
    model = network()
    given = context(model, data) if data else Context()
    change = apply(model, "prune(sparsity=0.75, block=1x4)", given)
    assert sum(zeros(change.model)) == round(0.75 * COUNT)
    for place in PRUNED:
        blocks = weights(change.model)[place].reshape(-1, 4) == 0
        assert (blocks.all(axis=1) == blocks.any(axis=1)).all()


def test_two_of_each_four_are_zero() -> None:
    change = apply(network(), "prune(block=2:4)")
    for place in PRUNED:
        assert ((weights(change.model)[place].reshape(-1, 4) == 0).sum(axis=1) == 2).all()


@pytest.mark.parametrize("block", ["1x1", "1x4", "2:4"])
@pytest.mark.parametrize("data", [0, 12])
def test_pruning_what_is_pruned_changes_nothing(block: str, data: int) -> None:
    model = network()
    given = context(model, data) if data else Context()
    once = apply(model, f"prune(block={block}, schedule=gradual)", given).model
    assert to_bytes(
        apply(once, f"prune(block={block}, schedule=gradual)", given).model
    ) == to_bytes(once)


def test_zeros_survive_int8_and_the_quantized_model_is_refused() -> None:
    model = network()
    given = context(model)
    before = apply(model, "prune", given).model
    after = apply(model, "prune | quantize", given).model
    for a, b in zip(weights(before), weights(after), strict=True):
        assert not b[a == 0].any()
    with pytest.raises(CannotApply, match="is quantized; prune the float model, then quantize it"):
        apply(after, "prune", given)


def test_a_layer_that_matters_more_keeps_more() -> None:
    """Two layers alike, one of which hardly reaches the output."""
    b = Builder()
    x = b.input("x", (1, 32))
    loud, quiet = (dense(b, x, 32, seed) for seed in (0, 2))
    model = b.model(b.op("ADD", loud, b.op("MUL", quiet, np.float32(0.01))))
    blind = zeros(apply(model, "prune").model)
    seeing = zeros(apply(model, "prune", context(model)).model)
    assert sum(blind) == sum(seeing) == 1024
    assert abs(blind[0] - blind[1]) < 100
    assert seeing[1] > 2 * seeing[0]


def test_weights_on_large_inputs_stay() -> None:
    b = Builder()
    x = b.input("x", (1, 16))
    scaled = b.op("MUL", x, np.array([100.0] * 8 + [0.01] * 8, np.float32))
    model = b.model(dense(b, scaled, 32))
    (mask,) = (values != 0 for values in weights(apply(model, "prune", context(model)).model))
    assert mask[:, :8].all() and not mask[:, 8:].any()


def test_data_puts_back_what_was_lost() -> None:
    model = network()
    data = few(model, 64)
    given = Context(tools(data, threads=1))
    blind = apply(model, "prune(block=2:4)").model
    seeing = apply(model, "prune(block=2:4)", given).model
    assert worst(model, seeing, few(model, 32, seed=9)) > worst(
        model, blind, few(model, 32, seed=9)
    )


def test_the_order_of_samples_does_not_matter() -> None:
    model = network()
    data = few(model, 24)
    results = [
        to_bytes(apply(model, "prune", Context(tools(Few(rows), threads=1))).model)
        for rows in (data.rows, data.rows[::-1])
    ]
    assert results[0] == results[1]


def test_only_and_keep() -> None:
    model = network()
    assert [n > 0 for n in zeros(apply(model, "prune(only=[2])").model)] == [
        *(False, False, True, False, False)
    ]
    assert zeros(apply(model, "prune(only=[0])").model)[0] == 16 * 27 // 2
    assert [n > 0 for n in zeros(apply(model, "prune(keep=[FULLY_CONNECTED])").model)] == [
        *(False, True, False, True, False)
    ]


def test_shared_weights_are_pruned_once() -> None:
    change = apply(FLOATS["shared_weights"](), "prune")
    one, two = (layer.weight for layer in layers_of(change.model.main).values())
    assert one is two and (one.values() == 0).sum() == 8 * 9 * 8 // 2


def test_a_table_that_is_a_weight_too_stays() -> None:
    with pytest.raises(CannotApply, match="other ops use its weights too"):
        apply(FLOATS["tied"](), "prune")


@pytest.mark.parametrize(
    ("recipe", "why"),
    [
        ("prune(sparsity=1)", "a share of zeros from 0 to below 1"),
        ("prune(sparsity=-0.1)", "a share of zeros from 0 to below 1"),
        ("prune(sparsity=nan)", "a share of zeros from 0 to below 1"),
        ("prune(block=3x3)", "there are 1x1, 1x4, 2:4, channels"),
        ("prune(schedule=later)", "there are constant, gradual"),
        ("prune(sparsity=0.8, block=2:4)", "two of four are half of them"),
    ],
)
def test_settings_that_cannot_be(recipe: str, why: str) -> None:
    with pytest.raises(BadInput, match=why) as caught:
        apply(network(), recipe)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("recipe", ["prune", "cluster(k=4)"])
def test_data_that_is_no_number_or_none_at_all(recipe: str) -> None:
    model = network()
    rows = few(model, 4).rows
    spoiled = Few((*rows, (np.full_like(rows[0][0], np.nan),)))
    with pytest.raises(BadInput, match="sample 4 holds numbers that are infinite or not numbers"):
        apply(model, recipe, Context(tools(spoiled, threads=1)))
    with pytest.raises(BadInput, match="holds no samples"):
        apply(model, recipe, Context(tools(Few(()), threads=1)))


def test_nothing_to_prune_is_said() -> None:
    with pytest.raises(CannotApply, match="no layer of the model can be pruned"):
        apply(MODELS["branches"](), "prune")


class Trainer:
    """Moves every weight a little at each point of a training, under the masks it is given."""

    def __init__(self, forget: bool = False) -> None:
        self.shares: list[float] = []
        self.forget = forget

    def __call__(
        self, model: Model, *, origin: Model | None = None, masks: Masks | None = None
    ) -> Tuned:
        held = {layer.weight: layer.weight.values() for layer in layers_of(model.main).values()}
        for progress in (0.0, 0.25, 0.5, 1.0):
            held = self._moved(held, masks, progress)
        new = {t: replace(t, data=values) for t, values in held.items()}
        graph = rewrite(model.main, tensors=new)
        return Tuned(with_graphs(model, (graph, *model.graphs[1:])), ("it was trained",))

    def _moved(
        self, held: Mapping[Tensor, Array], masks: Masks | None, progress: float
    ) -> dict[Tensor, Array]:
        moved = {t: (v * np.float32(1.1)).astype(np.float32) for t, v in held.items()}
        if masks is None:
            return {t: v + self.forget for t, v in moved.items()}
        found = masks(progress, moved)
        gone = sum(int((~mask).sum()) for mask in found.values())
        self.shares.append(gone / sum(mask.size for mask in found.values()))
        return {t: v * found[t] if t in found else v for t, v in moved.items()}


@pytest.mark.parametrize("block", ["1x1", "1x4", "2:4"])
def test_gradual_pruning_ends_at_the_target(block: str) -> None:
    trainer = Trainer()
    model = network()
    given = replace(context(model), tune=trainer)
    change = apply(model, f"prune(block={block}, schedule=gradual)", given)
    assert trainer.shares[0] == 0 and trainer.shares[-1] == pytest.approx(0.5, abs=1e-3)
    assert trainer.shares[1] == pytest.approx(0.5 * (1 - 0.75**3), abs=0.01)
    assert sum(zeros(change.model)) == COUNT // 2
    assert "it was trained" in change.notes
    assert not any("not tuned" in skip.why for skip in change.skipped)


def test_constant_pruning_trains_the_pruned_model() -> None:
    trainer = Trainer()
    model = network()
    change = apply(model, "prune", Context(tune=trainer))
    assert not trainer.shares and sum(zeros(change.model)) == COUNT // 2


def test_a_tuning_that_loses_zeros_is_caught() -> None:
    with pytest.raises(CannotApply, match="zeros after tuning where"):
        apply(network(), "prune", Context(tune=Trainer(forget=True)))


def test_tune_says_whether_to() -> None:
    model = network()
    told = apply(model, "prune").skipped
    assert any("not tuned to it: there is no data to train on" in skip.why for skip in told)
    assert not any("not tuned" in skip.why for skip in apply(model, "prune(tune=false)").skipped)
    with pytest.raises(CannotApply, match=r"prune\(tune=true\): there is no data"):
        apply(model, "prune(tune=true)")


@pytest.mark.parametrize("make", [network, FLOATS["residual"], FLOATS["attention"]])
def test_every_line_says_how_far(make: Callable[[], Model]) -> None:
    model = make()
    change = apply(model, "prune(only=[0])", context(model))
    (line,) = change.touched
    assert line.startswith("pruned ") and line.endswith(" to 50.0 %")


@pytest.mark.parametrize("block", ["1x1", "1x4", "2:4"])
@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("data", [0, 12])
def test_codes_stay_codes(block: str, per_channel: bool, data: int) -> None:
    """Of a clustered weight some become zero, the others stay what they are."""
    model = network()
    given = context(model, data) if data else Context()
    clustered = apply(model, f"cluster(k=6, per_channel={str(per_channel).lower()})", given).model
    change = apply(clustered, f"prune(block={block})", given)
    assert sum(zeros(change.model)) >= COUNT // 2
    assert promises(clustered, change.model).broken == ()
    layers = [list(layers_of(m.main).values()) for m in (clustered, change.model)]
    for place in PRUNED:
        before, after = (found[place] for found in layers)
        left = after.weight.values() != 0
        assert np.array_equal(before.weight.values()[left], after.weight.values()[left])
        assert codebook_of(after.weight.values(), after.axis if per_channel else None) is not None
    if data:
        biases = [[layer.bias for layer in found] for found in layers]
        assert any(
            not np.array_equal(a.values(), b.values())
            for a, b in zip(*biases, strict=True)
            if a is not None and b is not None
        )


def test_gradual_pruning_of_codes_is_refused_before_training() -> None:
    trainer = Trainer()
    clustered = apply(network(), "cluster(k=6)").model
    with pytest.raises(CannotApply, match=r"gradual\): .* is clustered; prune first, then cluster"):
        apply(clustered, "prune(schedule=gradual)", Context(tune=trainer))
    assert not trainer.shares
    apply(clustered, "prune(schedule=gradual, tune=false)", Context(tune=trainer))
