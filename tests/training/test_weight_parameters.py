"""Parameters of a training: weights, scales, what is aimed at, and what is done to pictures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.draws import draws

torch = pytest.importorskip("torch", reason="torch is not installed: the extra `train`")

from litesmith.errors import BadInput  # noqa: E402
from litesmith.ir.build import Builder  # noqa: E402
from litesmith.ir.types import Graph  # noqa: E402
from litesmith.passes.core.weight_structure import Codebook  # noqa: E402
from litesmith.passes.quantizing.quantize import Quantize  # noqa: E402
from litesmith.training.augment import Augment, Mixed  # noqa: E402
from litesmith.training.lesson import Aim, aim_of, scores_place  # noqa: E402
from litesmith.training.settings import AUGMENTS, Training  # noqa: E402
from litesmith.training.student import Forms  # noqa: E402
from litesmith.training.weight_parameters import (  # noqa: E402
    Coded,
    Free,
    Rounded,
    round_straight_through,
    unit_of,
)
from tests.training.small import classifier, pictures, regression, several  # noqa: E402
from tests.zoo import noise  # noqa: E402
from tests.zoo_float import FLOATS, context  # noqa: E402

SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.sampled_from([0.0, 0.01, 1.0, 1000.0])


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> None:
    torch.set_num_threads(1)


def shake(parameters, size: float, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in parameters:
            parameter.add_(size * torch.randn(parameter.shape, generator=random))


def free(values: np.ndarray, mask: np.ndarray | None = None) -> Free:
    zeros = None if mask is None else torch.from_numpy(mask.astype(np.float32))
    return Free(torch.from_numpy(values), torch.from_numpy(unit_of(values, 0)), zeros)


@draws(25)
@given(SEEDS, SIZES)
def test_a_free_weight_begins_as_it_is_and_keeps_its_zeros(seed: int, size: float) -> None:
    values = noise(5, 7, seed=seed)
    mask = np.random.default_rng(seed).random(values.shape) < 0.5
    part = free(values, mask)
    np.testing.assert_allclose(part().detach().numpy(), values * mask, rtol=3e-7)
    shake(part.parameters(), size, seed)
    assert not part().detach().numpy()[~mask].any()


@draws(25)
@given(SEEDS, SIZES, st.sampled_from([4, 8]), st.booleans())
def test_a_rounded_weight_is_codes_times_scales(
    seed: int, size: float, bits: int, per_channel: bool
) -> None:
    values = noise(5, 7, seed=seed)
    most = 2 ** (bits - 1) - 1
    peaks = np.abs(values).max(axis=1) if per_channel else np.abs(values).max(keepdims=True)[0]
    scales = torch.from_numpy((peaks / most).astype(np.float32))
    part = Rounded(free(values), scales, 0, (1 - 2 ** (bits - 1), 2 ** (bits - 1) - 1))
    shake(part.parameters(), size, seed)
    now = part.scales().detach()
    numbers = (part().detach() / (now[:, None] if per_channel else now)).numpy()
    np.testing.assert_allclose(numbers, np.rint(numbers), atol=1e-3)
    assert np.abs(np.rint(numbers)).max() <= most
    assert (now > 0).all() and (now / scales).log().abs().max() < 0.71


@draws(25)
@given(SEEDS, SIZES)
def test_a_coded_weight_keeps_its_count_of_codes_its_ends_and_its_zeros(
    seed: int, size: float
) -> None:
    random = np.random.default_rng(seed)
    inner = random.choice(np.setdiff1d(np.arange(-126, 127), 0), 5, replace=False)
    book = np.sort([*inner, -127, 0, 127])
    codes = random.integers(0, book.size, (6, 9)).astype(np.uint8)
    found = Codebook(codes, book, random.uniform(0.1, 1, 6))
    part = Coded(found, codes.shape, 0)
    np.testing.assert_allclose(
        part().detach().numpy(), book[codes] * found.scales[:, None], rtol=1e-6
    )
    shake(part.parameters(), size, seed)
    numbers = part().detach().numpy() / part.scales().detach().numpy()[:, None]
    np.testing.assert_allclose(numbers, np.rint(numbers), atol=1e-3)
    numbers = np.rint(numbers)
    assert np.unique(numbers).size <= book.size and np.abs(numbers).max() <= 127
    for code in (-127, 0, 127):
        assert (numbers[book[codes] == code] == code).all()


def test_rounding_passes_gradients() -> None:
    value = torch.tensor([0.4, 0.5, 1.5, -2.6], requires_grad=True)
    result = round_straight_through(value)
    assert result.tolist() == [0, 0, 2, -3]
    (result * torch.tensor([1.0, 2, 3, 4])).sum().backward()
    assert value.grad is not None and value.grad.tolist() == [1, 2, 3, 4]


def test_units_suit_every_channel() -> None:
    values = noise(4, 50) * np.array([[1], [100], [1e-9], [0]], np.float32)
    units = unit_of(values, 0)
    assert units.shape == (4, 1)
    np.testing.assert_allclose(units[:2, 0], values[:2].std(axis=1), rtol=0.1)
    assert (units > 0).all()
    assert (unit_of(np.zeros((3, 4), np.float32), 0) > 0).all()


# What flows between the ops.


def same_scale_graph() -> Graph:
    model = FLOATS["gaps"]()
    return Quantize("int8").apply(model, context(model)).model.main


def test_tensors_in_one_scale_move_together() -> None:
    graph = same_scale_graph()
    forms = Forms(graph, torch.device("cpu"))
    assert not forms.moved()
    shake(forms.parameters(), 3.0, 1)
    moved = forms.moved()
    assert moved
    for op in graph.ops:
        if op.kind in ("TRANSPOSE", "STRIDED_SLICE", "TILE", "RESHAPE"):
            source, result = op.inputs[0], op.outputs[0]
            assert source is not None
            quants = [moved.get(t, t).quant for t in (source, result)]
            assert quants[0] is not None and quants[1] is not None
            assert quants[0].scale == quants[1].scale, op.kind
    for old, new in moved.items():
        assert old.quant is not None and new.quant is not None
        assert (new.name, new.dtype) == (old.name, old.dtype)
        assert np.array_equal(new.quant.zero_point, old.quant.zero_point)


@pytest.mark.parametrize("name", ["fixed_scales", "padded", "different_ranges", "picked"])
def test_what_is_dictated_stays(name: str) -> None:
    """Inputs, results of SOFTMAX and the like, and all that a constant is tied to."""
    model = FLOATS[name]()
    graph = Quantize("int8").apply(model, context(model)).model.main
    forms = Forms(graph, torch.device("cpu"))
    shake(forms.parameters(), 3.0, 1)
    moved = set(forms.moved())
    for op in graph.ops:
        if op.kind in ("SOFTMAX", "LOGISTIC", "TANH") or op.inputs[0] in graph.inputs:
            assert moved.isdisjoint(op.outputs), op.kind
        if op.kind in ("PADV2", "CONCATENATION"):
            tied = [t for t in op.inputs if t is not None and t.is_const and t.quant is not None]
            assert not tied or moved.isdisjoint((*op.inputs, *op.outputs))


def test_inputs_come_as_they_are() -> None:
    model = FLOATS["residual"]()
    graph = Quantize("int8", io="int8").apply(model, context(model)).model.main
    forms = Forms(graph, torch.device("cpu"))
    shake(forms.parameters(), 3.0, 1)
    assert forms.moved() and graph.inputs[0] not in forms.moved()


def test_fine_scales_stay() -> None:
    model = FLOATS["residual"]()
    graph = Quantize("int16x8").apply(model, context(model)).model.main
    forms = Forms(graph, torch.device("cpu"))
    shake(forms.parameters(), 3.0, 1)
    assert not forms.moved()


# What is aimed at.


def scores(model, count: int = 6, seed: int = 0) -> list[np.ndarray]:
    return [noise(count, *t.shape[1:], seed=seed + n) for n, t in enumerate(model.main.outputs)]


@pytest.mark.parametrize("make", [classifier, regression, several, pictures])
def test_nothing_is_nearer_than_the_wanted(make) -> None:
    model = make()
    wanted = scores(model)
    aim = aim_of(model.main, wanted)
    targets = [torch.from_numpy(w) for w in wanted]
    assert float(aim(targets, targets, None)) == pytest.approx(0, abs=1e-6)
    near, far = (
        float(aim([t + e * torch.randn_like(t) for t in targets], targets, None))
        for e in (0.01, 0.5)
    )
    assert 0 < near < far


def test_probabilities_are_told_from_numbers() -> None:
    """Scores that all move by the same stay the same classes, but not the same numbers."""
    for make, classes in ((classifier, (True,)), (regression, (False,)), (pictures, (True,))):
        model = make()
        assert aim_of(model.main, scores(model)).classes == classes
    wanted = scores(regression())
    assert aim_of(regression().main, wanted, scores=0, follow=0.5).classes == (True,)


def test_labels_weigh_what_they_should() -> None:
    model = classifier()
    wanted = scores(model)
    targets = [torch.from_numpy(w) for w in wanted]
    labels = torch.tensor([0, 1, 2, 3, 0, 1])
    alone = aim_of(model.main, wanted, scores=0, follow=0.0)
    half = aim_of(model.main, wanted, scores=0, follow=0.5)
    known = torch.nn.functional.cross_entropy(targets[0], labels)
    assert float(alone(targets, targets, labels)) == pytest.approx(float(known))
    assert float(half(targets, targets, labels)) == pytest.approx(float(known) / 2)
    off = [t + 0.3 * torch.randn(t.shape) for t in targets]
    followed = aim_of(model.main, wanted, scores=0, follow=1.0)
    parts = [float(aim(off, targets, labels)) for aim in (followed, alone, half)]
    assert parts[2] == pytest.approx((parts[0] + parts[1]) / 2)
    right = 20 * torch.nn.functional.one_hot(labels, 4).float()
    assert float(alone([right], targets, labels)) < 1e-4


def test_labels_are_about_the_scores_wherever_they_stand() -> None:
    b = Builder()
    x = b.input("x", (1, 6))
    features = b.op("FULLY_CONNECTED", x, noise(4, 6), noise(4))
    scores = b.op("SOFTMAX", b.op("FULLY_CONNECTED", features, noise(3, 4), noise(3)), beta=1.0)
    assert scores_place(b.model(features, scores).main, 1) == 1
    assert scores_place(b.model(features).main, 1) == 0
    assert scores_place(b.model(features).main, 4) is None


def test_an_output_that_hardly_varies_does_not_outweigh_the_others() -> None:
    """An error of a thousandth of the size of each output counts little, whatever they vary."""
    model = several()
    wanted = scores(model)
    for constant in (3.0, 0.1, 0.0):
        wanted[2] = np.full(6, constant, np.float32) + np.float32(1e-6) * np.arange(6)
        aim = aim_of(model.main, wanted)
        targets = [torch.from_numpy(w.astype(np.float32)) for w in wanted]
        answers = [t + 1e-3 * t.abs().max() for t in targets]
        assert float(aim(answers, targets, None)) < 0.1


def test_what_is_no_number_cannot_be_followed() -> None:
    model = several()
    wanted = scores(model)
    wanted[1][3, 0] = -np.inf
    with pytest.raises(BadInput, match="cannot be followed") as caught:
        aim_of(model.main, wanted)
    assert model.main.outputs[1].name in str(caught.value) and "\n" not in str(caught.value)


# Pictures.


def graph_of(*shapes: tuple[int, ...]) -> Graph:
    b = Builder()
    tensors = [b.input(f"x{n}", shape) for n, shape in enumerate(shapes)]
    return b.graph(*[b.op("RELU", t) for t in tensors])


PICTURE = (1, 16, 24, 3)


def numbered(count: int = 12):
    """Pictures in which every place has a number of its own."""
    size = count * int(np.prod(PICTURE))
    return torch.arange(size, dtype=torch.float32).reshape(count, *PICTURE[1:])


def test_pictures_are_changed_the_same_in_the_same_turn() -> None:
    x = numbered()
    results = [
        Augment(graph_of(PICTURE), "auto", seed)([x], turn).inputs[0] for seed, turn in TURNS
    ]
    assert all(r.shape == x.shape and r.dtype == x.dtype for r in results)
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])
    assert not torch.equal(results[0], results[3])


TURNS = ((0, 3), (0, 3), (0, 4), (1, 3))


def test_every_value_is_one_of_its_own_picture() -> None:
    x = numbered()
    (changed,) = Augment(graph_of(PICTURE), "auto", 0)([x], 0).inputs
    for before, after in zip(x, changed, strict=True):
        assert set(after.reshape(-1).tolist()) <= set(before.reshape(-1).tolist())
        assert torch.equal(after[..., 0] % 3, torch.zeros(16, 24)), "colours stay where they are"


def test_flips_are_flips() -> None:
    x = numbered(40)
    (changed,) = Augment(graph_of(PICTURE), "flip", 0)([x], 0).inputs
    ways = [
        0 if torch.equal(a, b) else 1 if torch.equal(a.flip(1), b) else 2
        for a, b in zip(x, changed, strict=True)
    ]
    assert 2 not in ways
    assert 8 < sum(ways) < 32


def test_shifts_are_shifts() -> None:
    """Inside, each picture is what it was, moved by at most an eighth."""
    x = numbered(20)
    (changed,) = Augment(graph_of(PICTURE), "shift", 0)([x], 0).inputs
    for before, after in zip(x, changed, strict=True):
        row, column = divmod(int(after[8, 12, 0] - before[8, 12, 0]) // 3, 24)
        row, column = (row + 1, column - 24) if column > 12 else (row, column)
        assert abs(row) <= 2 and abs(column) <= 3
        inner = before[2 + row : 14 + row, 3 + column : 21 + column]
        assert torch.equal(after[2:14, 3:21], inner)


def test_what_is_no_picture_is_left_alone() -> None:
    x = torch.rand(4, 49, 10, 1)
    for shape in ((1, 49, 10, 1), (1, 8, 8, 3), (1, 32, 32, 8), (1, 3, 32, 32), (1, 32, 3)):
        assert Augment(graph_of(shape), "auto", 0).is_idle, shape
    augment = Augment(graph_of((1, 49, 10, 1), PICTURE), "auto", 0)
    assert not augment.is_idle
    first, second = augment([x, numbered(4)], 0).inputs
    assert first is x
    assert not torch.equal(second, numbered(4))


def test_mixed_pictures_hold_the_other_by_the_share_that_is_said() -> None:
    """Each picture of one colour: what it became tells how much of which other it holds."""
    x = torch.arange(200.0)[:, None, None, None].expand(200, *PICTURE[1:])
    changed = Augment(graph_of(PICTURE), "mix", 0)([x], 0)
    (result,), mixed = changed.inputs, changed.mixed
    assert mixed is not None and sorted(mixed.others.tolist()) == list(range(200))
    own = torch.arange(200.0)
    wanted = mixed.kept * own + (1 - mixed.kept) * own[mixed.others]
    assert torch.allclose(result.mean((1, 2, 3)), wanted, atol=1e-2)
    assert torch.all((mixed.kept >= 0.4) & (mixed.kept <= 1))
    assert 60 < int((mixed.kept == 1).sum()) < 140
    pieces = [len(one.unique()) == 2 for one in result]
    assert 20 < sum(pieces) < 80, "pieces of another, and the other all over, both occur"


def test_labels_of_mixed_samples_count_by_their_shares() -> None:
    scores = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([0, 1, 2, 1])
    aim = Aim((True,), (1.0,), scores=0, follow=0.0)
    mixed = Mixed(torch.tensor([1, 0, 3, 2]), torch.tensor([1.0, 0.6, 0.5, 0.9]))
    shares = torch.zeros(4, 3)
    for place, (other, kept) in enumerate(zip(mixed.others, mixed.kept, strict=True)):
        shares[place, labels[place]] += kept
        shares[place, labels[other]] += 1 - kept
    wanted = torch.nn.functional.cross_entropy(scores, shares)
    assert float(aim([scores], [scores], labels, mixed)) == pytest.approx(float(wanted))


def test_only_one_picture_is_mixed() -> None:
    """Beside another input, what a mixture means is not known."""
    augment = Augment(graph_of(PICTURE, (1, 4)), "mix", 0)
    assert augment([numbered(4), torch.rand(4, 4)], 0).mixed is None


def test_none_is_idle_and_others_are_named() -> None:
    assert Augment(graph_of(PICTURE), "none", 0).is_idle
    with pytest.raises(BadInput, match="augment='spin'") as caught:
        Training(augment="spin")
    assert all(how in str(caught.value) for how in AUGMENTS)
    assert "\n" not in str(caught.value)
