"""Torch modules through the converter: LiteRT gives what torch gives."""

import json
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from litesmith.errors import BadInput, LitesmithError
from litesmith.front.convert import convert
from litesmith.tflite.write import to_bytes

torch = pytest.importorskip("torch", reason="needs torch: pip install 'litesmith[train]'")
from torch import Tensor, nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from litesmith.conversion.lower_model import lowered  # noqa: E402
from litesmith.conversion.torch_archive import load_program  # noqa: E402
from litesmith.conversion.torch_program import read_module, read_program  # noqa: E402

FEW = settings(max_examples=3, deadline=None, derandomize=True, phases=[Phase.generate])


class Several(nn.Module):
    """Functions of the same inputs, their results by name: one export for all of them."""

    def __init__(self, functions: dict[str, Callable[..., Tensor]], parts: dict[str, nn.Module]):
        super().__init__()
        self.functions, self.parts = functions, nn.ModuleDict(parts)

    def forward(self, *inputs: Tensor) -> dict[str, Tensor]:
        own = {name: part(inputs[0]) for name, part in self.parts.items()}
        return {name: function(*inputs) for name, function in self.functions.items()} | own


def differences(module: nn.Module, *inputs: Tensor) -> dict[str, float]:
    """How far each output of the lowered model is from torch's, by its largest value."""
    source = read_module(module, inputs).model
    made = lowered(source)
    assert made.left == ()
    runner = Interpreter(model_content=to_bytes(made.model)).get_signature_runner()
    names = [value.name for value in source.graph.inputs]
    found = runner(**{n: v.numpy() for n, v in zip(names, inputs, strict=True)})
    with torch.no_grad():
        wanted = module(*inputs)
    wanted = wanted if isinstance(wanted, dict) else {"output": wanted}
    assert found.keys() == wanted.keys()
    gaps: dict[str, float] = {}
    for name, tensor in wanted.items():
        value = tensor.numpy()
        assert found[name].shape == value.shape
        assert found[name].dtype == value.dtype
        gap = np.abs(found[name].astype(np.float64) - value).max(initial=0)
        gaps[name] = gap / max(np.abs(value).max(initial=0), 1e-6)
    return gaps


def assert_same(functions: dict[str, Callable[..., Tensor]], *inputs: Tensor, **parts: nn.Module):
    torch.manual_seed(0)
    gaps = differences(Several(functions, parts).eval(), *inputs)
    assert {name: gap for name, gap in gaps.items() if gap > 1e-4} == {}


def seeded(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


VALUES = {
    "abs": torch.abs,
    "addcmul": lambda x: torch.addcmul(x, x, x, value=0.5),
    "alpha": lambda x: torch.sub(x, x * x, alpha=2),
    "arccos": lambda x: torch.acos(x.clamp(-0.9, 0.9)),
    "atan2": lambda x: torch.atan2(x, x * x + 1),
    "celu": lambda x: F.celu(x, 0.7),
    "clamp": lambda x: x.clamp(min=-0.3),
    "clamp_tensor": lambda x: torch.clamp(x, x * 0 - 1, x * 0 + 0.5),
    "compare": lambda x: (x > 0) & (x < 1) | ~(x <= 2),
    "elu": lambda x: F.elu(x, 0.5),
    "exp2": torch.exp2,
    "floor_divide": lambda x: torch.floor_divide(x * 5, 2),
    "fmod": lambda x: torch.fmod(x * 5, 2),
    "frac": lambda x: torch.frac(x * 3),
    "gelu": lambda x: F.gelu(x, approximate="tanh"),
    "glu": lambda x: F.glu(x, 1),
    "hardshrink": F.hardshrink,
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "integers": lambda x: (x * 9).to(torch.int64) // 2,
    "isnan": lambda x: torch.isnan(x / 1),
    "leaky": lambda x: F.leaky_relu(x, 0.2),
    "lerp": lambda x: torch.lerp(x, x * x, 0.3),
    "log": lambda x: torch.log2(x.abs() + 0.5) + torch.log1p(x.abs()),
    "logsigmoid": F.logsigmoid,
    "masked": lambda x: x.masked_fill(x > 0, -2.0),
    "mish": F.mish,
    "power": lambda x: x.abs() ** 1.5 + 2.0**x,
    "remainder": lambda x: torch.remainder(x * 5, 2),
    "rsqrt": lambda x: torch.rsqrt(x.abs() + 1),
    "rsub": lambda x: 1 - x,
    "selu": F.selu,
    "silu": F.silu,
    "softplus": lambda x: F.softplus(x, beta=2),
    "softshrink": F.softshrink,
    "softsign": F.softsign,
    "threshold": lambda x: F.threshold(x, 0.2, -1.0),
    "trunc": lambda x: torch.trunc(x * 3),
    "bits": lambda x: ((x * 9).long() << 2) + ((x * 99).long() >> 3) + ((x * 9).long() & 7),
    "borders": lambda x: torch.bucketize(x, torch.tensor([-0.5, 0.0, 0.5]), right=True),
    "hypot": lambda x: torch.hypot(x, x + 1),
    "rrelu": F.rrelu,
    "searchsorted": lambda x: torch.searchsorted(torch.tensor([-0.5, 0.0, 0.5]), x),
    "where": lambda x: torch.where(x > 0, x, 0.5),
}

REDUCTIONS = {
    "all": lambda x: (x > -9).all(1),
    "amax": lambda x: x.amax((1, 2)),
    "argmax": lambda x: x.argmax(2),
    "argmax_flat": lambda x: x.argmax(),
    "cdist": lambda x: torch.cdist(x, x[:, :, :2] + 1),
    "cummax": lambda x: x.cummax(3)[0],
    "cummin": lambda x: x.cummin(2)[0],
    "cumprod": lambda x: x.cumprod(3),
    "cumsum": lambda x: x.cumsum(1),
    "kth": lambda x: x.kthvalue(2, 3)[0],
    "kth_places": lambda x: x.kthvalue(2, 3)[1],
    "logsumexp": lambda x: x.logsumexp((1, 2), keepdim=True),
    "max": lambda x: x.max(1)[0],
    "max_places": lambda x: x.max(1)[1],
    "mean": lambda x: x.mean((2, 3)),
    "median": lambda x: x.median(),
    "median_along": lambda x: x.median(3)[0],
    "norm": lambda x: x.norm(dim=1),
    "normalize": lambda x: F.normalize(x, dim=1),
    "prod": lambda x: x.prod(3),
    "softmax": lambda x: x.softmax(1) + x.log_softmax(3),
    "sort": lambda x: x.sort(dim=3, descending=True)[0],
    "std": lambda x: x.std((2, 3)),
    "sum": lambda x: x.sum(),
    "topk": lambda x: x.topk(2, 3)[0],
    "var": lambda x: torch.var_mean(x, 1, unbiased=False)[0],
}

SHAPES = {
    "chunk": lambda x: torch.cat(x.chunk(2, 1)[::-1], 1),
    "diagonal": lambda x: torch.cat((x.diagonal(-1, 1, 3), x.diagonal(1, 1, 3)), 2),
    "embed": lambda x: F.one_hot(x.argmax(3), 7).float(),
    "grid": lambda x: F.grid_sample(x, x[..., :2].tanh(), align_corners=False),
    "expand": lambda x: x[:, :1].expand(-1, 4, -1, -1),
    "flip": lambda x: x.flip((2, 3)),
    "gather": lambda x: x.gather(3, x.argsort(3)),
    "index": lambda x: x[:, [2, 0, 1]],
    "index_two": lambda x: x[:, [2, 0, 1], [0, 1, 2]],
    "index_apart": lambda x: x[[1, 0, 1], :, [2, 0, 1]],
    "index_inside": lambda x: x[:, :, [2, 0, 1], [0, 1, 2]],
    "movedim": lambda x: x.movedim(1, 3),
    "narrow": lambda x: x.narrow(2, 1, 3),
    "outer": lambda x: torch.einsum("bchw,bdhw->bcd", x, x),
    "pad": lambda x: F.pad(x, (1, 2, 0, 1), value=3.0),
    "pad_circular": lambda x: F.pad(x, (1, 1, 1, 1), mode="circular"),
    "pad_reflect": lambda x: F.pad(x, (1, 2, 1, 0), mode="reflect"),
    "pixels": lambda x: F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2),
    "put": lambda x: torch.select_scatter(x, x[:, 0] * 2, 1, 2),
    "repeat": lambda x: x.repeat(1, 2, 1, 1) + x.repeat_interleave(2, 1),
    "roll": lambda x: x.roll((1, -2), (2, 3)),
    "slices": lambda x: x[..., 1::2, -3:-1],
    "stack": lambda x: torch.stack((x, x * 2), -1),
    "triangle": lambda x: x.tril(1) + x.triu(),
    "unbind": lambda x: x.unbind(1)[1],
    "unfold": lambda x: x.unfold(3, 3, 2),
    "unpool": lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2),
    "view": lambda x: torch.where(torch.arange(6) > 2, x, x.transpose(2, 3).reshape(x.shape)),
}

IN_PLACE = {
    "assign": lambda x: _assigned(x),
    "assign_mask": lambda x: _masked(x),
    "assign_places": lambda x: _put(x),
    "scatter_max": lambda x: x.scatter_reduce(3, x.argsort(3), x * 2, "amax"),
    "relu": lambda x: F.relu(x.clone(), inplace=True).add_(1),
}


def _assigned(x: Tensor) -> Tensor:
    y = torch.zeros_like(x)
    y[:, 1:3] = x[:, :2] * 2
    y[:, 0, ::2] += 1
    return y


def _masked(x: Tensor) -> Tensor:
    y = x.clone()
    y[y < 0] = 0.5
    y[x[:, :, 0, 0] > 0] = 2.0
    return y


def _put(x: Tensor) -> Tensor:
    y = x.clone()
    y[:, [0, 2]] = x[:, :2] * 3
    y[:, :, [1, 3], [0, 5]] = 7.0
    y[[0, 1], :, [2, 0]] = x[:, :, 0]
    return y.index_add(1, torch.tensor([1, 1]), x[:, :2])


def test_values_and_reductions_are_torchs() -> None:
    functions = {f"{n}_{k}": f for k, t in enumerate((VALUES, REDUCTIONS)) for n, f in t.items()}
    assert_same(functions, seeded(2, 4, 5, 6))


def test_shapes_are_torchs() -> None:
    assert_same(SHAPES | IN_PLACE, seeded(2, 4, 4, 6))


sizes = st.integers(1, 3)


@st.composite
def windows(draw: st.DrawFn) -> dict[str, nn.Module]:
    """Convolutions and pools with settings of all sorts."""
    parts: dict[str, nn.Module] = {}
    for name, kind in (("conv", nn.Conv2d), ("spread", nn.ConvTranspose2d)):
        groups = draw(st.sampled_from((1, 2, 4)))
        kernel, stride = draw(st.tuples(sizes, sizes)), draw(sizes)
        more = {"padding": draw(st.integers(0, 1)), "dilation": draw(st.integers(1, 2))}
        parts[name] = kind(4, 8, kernel, stride, groups=groups, bias=draw(st.booleans()), **more)
    parts["same"] = nn.Conv2d(4, 4, draw(sizes), padding="same", groups=4)
    kernel = draw(st.integers(2, 3))
    more = {"padding": draw(st.integers(0, 1)), "ceil_mode": draw(st.booleans())}
    stride = draw(sizes)
    parts["max"] = nn.MaxPool2d(kernel, stride, **more)
    counted = draw(st.booleans())
    parts["average"] = nn.AvgPool2d(kernel, stride, **more, count_include_pad=counted)
    parts["adaptive"] = nn.AdaptiveAvgPool2d(draw(st.tuples(sizes, sizes)))
    parts["adaptive_max"] = nn.AdaptiveMaxPool2d(draw(st.tuples(sizes, sizes)))
    return parts


@FEW
@given(windows())
def test_convolutions_and_pools_are_torchs(parts: dict[str, nn.Module]) -> None:
    assert_same({}, seeded(1, 4, 7, 9), **parts)


@FEW
@given(st.floats(0.5, 3), st.tuples(st.integers(2, 12), st.integers(2, 12)), st.booleans())
def test_images_of_another_size_are_torchs(
    scale: float, size: tuple[int, int], corners: bool
) -> None:
    functions: dict[str, Callable[..., Tensor]] = {
        "nearest": lambda x: F.interpolate(x, size=size),
        "exact": lambda x: F.interpolate(x, size=size, mode="nearest-exact"),
        "scaled": lambda x: F.interpolate(x, scale_factor=2.0),
        "linear": lambda x: F.interpolate(x, size=size, mode="bilinear", align_corners=corners),
        "half": lambda x: F.interpolate(x, scale_factor=scale, mode="bilinear"),
        "cubic": lambda x: F.interpolate(x, size=size, mode="bicubic", align_corners=corners),
        "smooth": lambda x: F.interpolate(x, size=size, mode="bilinear", antialias=True),
        "line": lambda x: F.interpolate(x[0], size=size[0], mode="linear"),
    }
    assert_same(functions, seeded(1, 2, 6, 5))


def test_norms_and_attention_are_torchs() -> None:
    parts = {
        "batch": nn.BatchNorm1d(6),
        "group": nn.GroupNorm(3, 6),
        "instance": nn.InstanceNorm1d(6, affine=True),
        "layer": nn.LayerNorm(8, elementwise_affine=False),
        "rms": nn.RMSNorm(8),
        "encoder": nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True),
        "prelu": nn.PReLU(6),
    }
    mask = torch.ones(6, 6).tril().bool()
    functions: dict[str, Callable[..., Tensor]] = {
        "causal": lambda x: F.scaled_dot_product_attention(x, x * 2, x, is_causal=True),
        "masked": lambda x: F.scaled_dot_product_attention(x, x, x, mask, scale=0.5),
        "added": lambda x: F.scaled_dot_product_attention(x, x, x, mask.float() * -3),
        "matmul": lambda x: x @ x.transpose(1, 2) + torch.bmm(x, x.mT),
    }
    assert_same(functions, seeded(2, 6, 8), **parts)


class First(nn.Module):
    """What a cell makes, with its last states behind it."""

    def __init__(self, cell: nn.Module):
        super().__init__()
        self.cell = cell

    def forward(self, x: Tensor) -> Tensor:
        made, last = self.cell(x)
        last = last if isinstance(last, tuple) else (last,)
        return torch.cat([made.flatten(), *(state.flatten() for state in last)])


@FEW
@given(st.integers(1, 2), st.booleans(), st.booleans(), st.booleans())
def test_cells_are_torchs(layers: int, both: bool, early: bool, bias: bool) -> None:
    more = {"num_layers": layers, "bidirectional": both, "batch_first": early, "bias": bias}
    cells = {
        "lstm": nn.LSTM(4, 3, **more),
        "gru": nn.GRU(4, 3, **more),
        "rnn": nn.RNN(4, 3, **more),
    }
    assert_same({}, seeded(3, 5, 4), **{name: First(cell) for name, cell in cells.items()})


class Named(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 4)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, ids: Tensor, bias: Tensor) -> dict[str, Tensor]:
        self.calls += 1
        return {"scores": self.table(ids) + bias, "count": self.calls + bias.sum()}


def test_names_modes_and_notes_are_kept() -> None:
    module = Named().train()
    source = read_module(module, {"ids": torch.zeros(1, 3, dtype=torch.int64), "bias": seeded(4)})
    assert [v.name for v in source.model.graph.inputs] == ["ids", "bias"]
    assert [v.name for v in source.model.graph.outputs] == ["scores", "count"]
    assert module.training
    assert len(source.model.notes) == 1
    assert "calls" in source.model.notes[0]
    weights = source.model.graph.constants["table.weight"]
    assert np.shares_memory(weights, module.table.weight.detach().numpy())


def test_what_is_converted_is_proven_with_torch() -> None:
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())
    made = convert(module, torch.zeros(1, 3, 8, 8))
    assert made.judge == "torch"
    assert [d.is_float_error for d in made.differences] == [True]
    assert made.turned == {"input"}
    assert made.model is not None
    assert [op.kind for op in made.model.main.ops] == ["CONV_2D", "TRANSPOSE", "RESHAPE"]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(dtype: torch.dtype) -> None:
    made = convert(
        nn.Sequential(nn.Linear(9, 4), nn.GELU()).to(dtype), torch.zeros(1, 9, dtype=dtype)
    )
    assert [d.is_float_error for d in made.differences] == [True]
    assert made.model is not None
    assert {t.dtype for t in (*made.model.main.inputs, *made.model.main.outputs)} == {"float32"}


class Places(nn.Module):
    """Whole numbers as inputs that are places in a tensor of four."""

    def forward(self, x: Tensor, places: Tensor) -> Tensor:
        return x.scatter(1, places, 0.0)


def test_whole_numbers_of_the_example_say_what_may_be_given() -> None:
    made = convert(Places(), (seeded(1, 4), torch.tensor([[3, 0]])))
    assert [d.is_float_error for d in made.differences] == [True]
    with pytest.raises(LitesmithError, match=r"out of bounds.*give samples with --data") as caught:
        convert(Places(), (seeded(1, 4), torch.tensor([[9, 0]])))
    assert "\n" not in str(caught.value)


class Unknown(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.linalg.eigvalsh(x) + torch.special.bessel_j0(x)


def test_operators_without_a_form_are_listed_at_once() -> None:
    made = convert(Unknown(), torch.eye(3))
    kinds = {left.kind for left in made.left}
    assert {"aten.special_bessel_j0.default", "aten._linalg_eigh.default"} <= kinds


class Refused(nn.Module):
    """What torch has and LiteRT has not, of each sort."""

    def __init__(self) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(4, 3)

    def forward(self, x: Tensor) -> list[Tensor]:
        branch = torch.cond(x.sum() > 0, lambda t: t * 2, lambda t: t - 1, (x,))
        found = [torch.fft.rfft(x).abs(), torch.linalg.inv(x), torch.rand_like(x), branch]
        return [*found, self.bag(x.long().clamp(0, 3)), (x > 0).nonzero()]


def test_what_is_refused_is_told_the_way_out() -> None:
    told = {
        left.kind.split(".")[-2 if "." in left.kind else 0]: left.why
        for left in convert(Refused(), torch.eye(3), check=False).left
    }
    assert {"_fft_r2c", "linalg_inv_ex", "rand_like", "cond", "nonzero"} <= set(told)
    assert all(";" in why and "custom op" not in why for why in told.values())


class Choosing(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x if x.sum() > 0 else -x


@pytest.mark.parametrize(
    ("source", "example", "words"),
    [
        (Choosing(), seeded(3), "depend on values"),
        (nn.Linear(3, 3).double(), torch.zeros(1, 3, dtype=torch.float64), "module.float"),
        (nn.Linear(3, 3), None, "needs example inputs"),
        (3.5, None, "give the path"),
    ],
)
def test_what_cannot_be_followed_is_told_in_a_line(
    source: object, example: object, words: str
) -> None:
    with pytest.raises(LitesmithError, match=words) as caught:
        convert(source, example)
    assert "\n" not in str(caught.value)


# Files


class Free(nn.Module):
    """A module whose batch and length are free."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x).reshape(x.shape[0] * x.shape[1], 4) + x.shape[1]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("programs") / "free.pt2"
    free = ({0: torch.export.Dim("batch", max=64), 1: torch.export.Dim("length", max=99)},)
    torch.manual_seed(0)
    torch.export.save(torch.export.export(Free(), (seeded(3, 5, 4),), dynamic_shapes=free), path)
    return path


def is_pickled(program: Path) -> bool:
    """True of what torch 2.8 and older write."""
    return not any(name.endswith("weights_config.json") for name in ZipFile(program).namelist())


def test_the_weights_of_an_older_torch_are_not_opened(program: Path, tmp_path: Path) -> None:
    with ZipFile(program) as file, ZipFile(tmp_path / "old.pt2", "w") as made:
        for name in file.namelist():
            if "data/weights/" not in name:
                made.writestr(name, file.read(name))
        made.writestr("old/data/weights/model.pt", b"")
    with pytest.raises(BadInput, match=r"is of an older torch.*save it again with torch 2\.9"):
        load_program(tmp_path / "old.pt2")


def test_a_program_file_is_the_program(program: Path) -> None:
    if is_pickled(program):
        pytest.skip("this torch pickles weights")
    made = convert(program, shape={"x": (2, 7, 4)})
    assert [d.is_float_error for d in made.differences] == [True]
    inputs = {"x": seeded(2, 7, 4).numpy()}
    opened = read_program(torch.export.load(program), {"x": (2, 7, 4)})
    own = read_program(load_program(program), {"x": (2, 7, 4)})
    assert np.array_equal(own.run([inputs], ())[0]["output"], opened.run([inputs], ())[0]["output"])


def with_json(source: Path, out: Path, part: str, old: str, new: str) -> Path:
    """The archive with something else in one of its parts."""
    with ZipFile(source) as file, ZipFile(out, "w") as made:
        for name in file.namelist():
            content = file.read(name)
            if name.endswith(part):
                assert old.encode() in content
                content = content.replace(old.encode(), new.encode(), 1)
            made.writestr(name, content)
    return out


HARM = "__import__('os').abort()"


@pytest.mark.parametrize(
    ("part", "old", "new"),
    [
        ("model.json", "torch.ops.aten.linear.default", "torch.hub.load"),
        ("model.json", '"expr_str": "', f'"expr_str": "{HARM} or '),
        ("model.json", r"\"builtins.tuple\"", r"\"collections.defaultdict\""),
        ("weights_config.json", '"use_pickle": false', '"use_pickle": true'),
        ("model.json", "as_tensor", "as_operator"),
        ("model.json", "{", "["),
    ],
)
def test_nothing_in_a_program_file_runs(
    program: Path, tmp_path: Path, part: str, old: str, new: str
) -> None:
    if part == "weights_config.json" and is_pickled(program):
        pytest.skip("this torch pickles weights")
    bad = with_json(program, tmp_path / "bad.pt2", part, old, new)
    with pytest.raises(LitesmithError, match="bad") as caught:
        load_program(bad)
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore:.*torch.jit.trace.* is (deprecated|not supported)")
def test_other_files_of_torch_are_told_what_they_lack(tmp_path: Path) -> None:
    module, path = nn.Linear(2, 2).eval(), tmp_path / "model.pt2"
    torch.save(module.state_dict(), path)
    with pytest.raises(LitesmithError, match=r"weights without the network.*litesmith\.convert"):
        load_program(path)
    torch.jit.trace(module, torch.zeros(1, 2)).save(str(path))
    with pytest.raises(LitesmithError, match=r"TorchScript.*litesmith\.convert"):
        load_program(path)
    path.write_text(json.dumps({}))
    with pytest.raises(LitesmithError, match="no file of torch"):
        load_program(path)
