"""Weights of a file in a network give what they gave where they came from."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import litesmith
from litesmith.errors import BadInput
from litesmith.ir.types import Model
from litesmith.networks import ROWS, Row, Spec, build, load_weights, save_weights
from litesmith.networks.weight_files import network_layers, read_tflite
from litesmith.tflite.file import save
from litesmith.tflite.write import to_bytes
from tests import zoo
from tests.draws import draws
from tests.networks.test_network_table import small
from tests.numeric.test_array_files import write_bomb, write_torch_bomb
from tests.runtime import run

ASSETS = Path(__file__).parents[3] / "shared" / "assets" / "models"
needs_assets = pytest.mark.skipif(not ASSETS.is_dir(), reason="no real models beside the checkout")


def tiny(style: str = "", classes: int = 4, seed: int = 0, name: str = "mobilenet_v2") -> Model:
    return build(Spec(name, 0.25, 32, classes, style), seed=seed)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
@pytest.mark.parametrize(("suffix", "style"), [(".npz", "torch"), (".tflite", "tf")])
def test_a_file_of_ours_comes_back(row: Row, suffix: str, style: str, tmp_path: Path) -> None:
    path = tmp_path / f"weights{suffix}"
    spec = replace(small(row, width=0.25), style=style)
    model = build(spec, seed=5)
    (save_weights if suffix == ".npz" else save)(model, path)
    assert to_bytes(load_weights(spec, path)) == to_bytes(model)


@pytest.mark.parametrize("style", ["tf", "torch"])
@pytest.mark.parametrize("suffix", [".npz", ".tflite"])
@pytest.mark.parametrize("name", ["mobilenet_v1", "efficientnet_lite0", "resnet8", "resnet18"])
def test_the_weights_decide_the_style(name: str, suffix: str, style: str, tmp_path: Path) -> None:
    path = tmp_path / f"weights{suffix}"
    model = build(Spec(name, 0.25, 32, 3, style))
    (save_weights if suffix == ".npz" else save)(model, path)
    assert to_bytes(load_weights(Spec(name, 0.25, 32), path)) == to_bytes(model)


@needs_assets
@pytest.mark.parametrize(
    ("name", "file", "classes"),
    [
        ("mobilenet_v1", "mobilenet_v1_1.0_224", 1001),
        ("mobilenet_v1:0.25", "mobilenet_v1_0.25_224", 1001),
        ("efficientnet_lite0", "efficientnet_lite0_f32", 1000),
        ("resnet8", "pretrainedResnet", 10),
        ("mobilenet_v1_vww", "vww_96_float", 2),
    ],
)
def test_a_real_file_gives_its_own_outputs(name: str, file: str, classes: int) -> None:
    path = ASSETS / f"{file}.tflite"
    (ours,) = run(load_weights(name, path))
    (theirs,) = run(path.read_bytes())
    assert ours.shape == (1, classes)
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


@needs_assets
def test_weights_of_dynamic_range_are_made_real() -> None:
    path = ASSETS / "kws_hybrid.tflite"
    model = load_weights("ds_cnn", path)
    (ours,), (theirs,) = run(model), run(path.read_bytes())
    np.testing.assert_allclose(ours, theirs, atol=5e-3)  # its kernels round the data too
    found, _ = read_tflite(path, ROWS[0])
    codes = litesmith.load(path).main.ops[0].inputs[1]
    assert codes is not None and codes.quant is not None and codes.dtype == "int8"
    real = codes.values() * codes.quant.scale.reshape(-1, 1, 1, 1)
    np.testing.assert_allclose(found[0].weight, real, rtol=1e-6)


@needs_assets
def test_the_features_of_a_torch_network_that_has_no_classifier() -> None:
    path = ASSETS / "mobilenet_v2_1.0_224_features.tflite"
    model = load_weights("mobilenet_v2/5", path, head=False)
    embedding = next(t for t in model.main.tensors if t.name == "embedding")
    graph = litesmith.ir.edit.regraph(model.main, outputs=(embedding,))
    (ours,) = run(replace(model, graphs=(graph,), signatures=()))
    (theirs,) = run(path.read_bytes())
    np.testing.assert_allclose(ours, theirs, atol=1e-5 * np.abs(theirs).max())
    with pytest.raises(BadInput, match=r"none for 'logits'.*--no-head"):
        load_weights("mobilenet_v2/5", path)


@pytest.mark.parametrize("pixels", [32, 45])
@pytest.mark.parametrize("name", ["mobilenet_v2", "mobilenet_v3_small", "resnet18", "resnet50"])
def test_a_state_dict_gives_the_outputs_of_torch(name: str, pixels: int, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from tests.networks.torch_nets import NETWORKS, taught

    network = taught(NETWORKS[name](), seed=pixels)
    torch.save({"epoch": 3, "state_dict": network.state_dict()}, tmp_path / "weights.pth")
    model = load_weights(f"{name}@{pixels}", tmp_path / "weights.pth")
    data = np.random.default_rng(0).normal(0, 1, (1, pixels, pixels, 3)).astype(np.float32)
    with torch.no_grad():
        theirs = network(torch.from_numpy(data.transpose(0, 3, 1, 2).copy())).numpy()
    with litesmith.Session(model) as session:
        session.inputs["image"][...] = data
        session.run()
        np.testing.assert_allclose(
            session.outputs["logits"], theirs, atol=2e-5 * np.abs(theirs).max()
        )


@pytest.mark.parametrize("recipe", ["quantize(to=float16)", "quantize(to=dynamic)"])
def test_stored_weights_are_made_real(recipe: str, tmp_path: Path) -> None:
    model = tiny()
    save(litesmith.apply(model, recipe).model, tmp_path / "stored.tflite")
    loaded = load_weights("mobilenet_v2:0.25@32", tmp_path / "stored.tflite")
    (ours,), (theirs,) = run(loaded), run(model)
    np.testing.assert_allclose(ours, theirs, atol=0.01)
    assert all(t.weight.dtype == "float32" for t in network_layers(loaded.main))


def test_a_model_says_which_it_is(tmp_path: Path) -> None:
    model = tiny("torch")
    save_weights(tiny("torch", seed=9), tmp_path / "nine.npz")
    save(model, tmp_path / "model.tflite")
    again = load_weights(litesmith.load(tmp_path / "model.tflite"), tmp_path / "nine.npz")
    assert to_bytes(again) == to_bytes(tiny("torch", seed=9))
    with pytest.raises(BadInput, match="not of the catalogue"):
        load_weights(zoo.convnet(), tmp_path / "nine.npz")


def test_codes_are_not_saved_as_weights(tmp_path: Path) -> None:
    coded = litesmith.apply(build("resnet8"), "quantize(to=dynamic)").model
    with pytest.raises(BadInput, match="no float weights and bias; take the model before"):
        save_weights(coded, tmp_path / "codes.npz")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", [".npz", ".tflite"])
def test_a_head_of_other_classes_is_left_random(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"weights{suffix}"
    (save_weights if suffix == ".npz" else save)(tiny(seed=7), path)
    model = load_weights("mobilenet_v2:0.25@32/9", path, head=False)
    assert model.main.outputs[0].shape == (1, 9)
    there = {t.name: t.weight.values() for t in network_layers(tiny(seed=7).main)}
    for target in network_layers(model.main)[:-1]:
        np.testing.assert_array_equal(target.weight.values(), there[target.name])
    assert network_layers(model.main)[-1].weight.values().any()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "mobilenet_v2:0.25@32/9",
            r"layer 'logits' has weights \(4, 1280\), the network's layer 'logits' \(9, 1280\); "
            r".*--no-head",
        ),
        ("mobilenet_v2@32", r"layer 'stem' has weights .* 'stem' \(32, 3, 3, 3\)"),
        ("mobilenet_v1:0.25@32", r"the network's layer 'block_1/pointwise' \(16, 1, 1, 8\)"),
        ("ds_cnn", "has weights"),
    ],
)
def test_a_mismatch_names_the_layer_and_both_shapes(
    name: str, message: str, tmp_path: Path
) -> None:
    save(tiny(), tmp_path / "weights.tflite")
    with pytest.raises(BadInput, match=message):
        load_weights(name, tmp_path / "weights.tflite")


def test_another_activation_is_another_network(tmp_path: Path) -> None:
    save(tiny(name="mobilenet_v1_vww"), tmp_path / "vww.tflite")
    with pytest.raises(BadInput, match=r"'stem' ends in RELU, .*'stem' RELU6: these are two"):
        load_weights("mobilenet_v1:0.25@32", tmp_path / "vww.tflite")


def test_another_stride_is_another_network(tmp_path: Path) -> None:
    stem = network_layers(build("resnet50:0.25@32/3").main)[0]
    b = litesmith.Builder()
    x = b.input("x", (1, 32, 32, 3))
    x = b.op("CONV_2D", x, stem.weight, stem.bias, fused_activation_function="RELU")
    save(b.model(x), tmp_path / "other.tflite")
    with pytest.raises(BadInput, match=r"has stride \(1, 1\), .*'stem' \(2, 2\): these are two"):
        load_weights("resnet50:0.25@32/3", tmp_path / "other.tflite")


def test_what_is_no_weight_file(tmp_path: Path) -> None:
    (tmp_path / "weights.h5").touch()
    with pytest.raises(BadInput, match=r"weights come from \.npz, \.pt, \.pth, \.tflite files"):
        load_weights("resnet8", tmp_path / "weights.h5")
    for suffix in (".npz", ".tflite", ".pth"):
        with pytest.raises(BadInput, match="no such file"):
            load_weights("resnet8", tmp_path / f"missing{suffix}")
    np.savez(tmp_path / "foreign.npz", a=np.zeros(3))
    with pytest.raises(BadInput, match=r"'a' is no weight or bias.*LAYER/weight"):
        load_weights("resnet8", tmp_path / "foreign.npz")
    np.savez(tmp_path / "few.npz", **{"stem/weight": np.zeros((16, 3, 3, 3))})
    with pytest.raises(BadInput, match="9 layers are missing, 'stage_1/block_1/conv_1' first"):
        load_weights("resnet8", tmp_path / "few.npz")


def test_an_archive_that_unpacks_to_far_more_is_not_unpacked(tmp_path: Path) -> None:
    write_bomb(tmp_path / "bomb.npz", "stem/weight")
    with pytest.raises(
        BadInput, match=r"bomb\.npz: unpacks to 1\.07 GB.*the weights of one network"
    ):
        load_weights("resnet8", tmp_path / "bomb.npz")


def test_numbers_that_are_none(tmp_path: Path) -> None:
    save_weights(tiny(), tmp_path / "good.npz")
    with np.load(tmp_path / "good.npz") as file:
        arrays = dict(file)
    arrays["stem/weight"] = np.full_like(arrays["stem/weight"], np.nan)
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(BadInput, match="layer 'stem' holds numbers that are infinite"):
        load_weights("mobilenet_v2:0.25@32", tmp_path / "bad.npz")


def test_a_state_dict_out_of_order_or_with_code(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "weights.pt"
    torch.save({"bn.running_var": torch.ones(3), "bn.running_mean": torch.ones(3)}, path)
    with pytest.raises(BadInput, match="'bn' does not follow its convolution"):
        load_weights("resnet18", path)
    torch.save(torch.nn.Linear(2, 2), path)
    with pytest.raises(BadInput, match=r"save model\.state_dict\(\)"):
        load_weights("resnet18", path)
    torch.save({"a": 1}, path)
    with pytest.raises(BadInput, match="holds no state dict"):
        load_weights("resnet18", path)


def test_a_torch_archive_that_unpacks_to_far_more_is_not_unpacked(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    write_torch_bomb(tmp_path / "bomb.pt")
    with pytest.raises(
        BadInput, match=r"bomb\.pt: unpacks to 1\.07 GB.*the weights of one network"
    ):
        load_weights("resnet18", tmp_path / "bomb.pt")


def test_a_torch_archive_without_a_list_is_refused(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save({"fc.weight": torch.ones(2, 2)}, tmp_path / "torn.pt")
    content = (tmp_path / "torn.pt").read_bytes()
    (tmp_path / "torn.pt").write_bytes(content[:-30])
    with pytest.raises(BadInput, match=r"torn\.pt: cannot be read as weights only"):
        load_weights("resnet18", tmp_path / "torn.pt")
    at = content.rindex(b"PK\x01\x02")  # the last file of the list: a name that is no UTF-8
    listed = bytearray(content)
    listed[at + 8 : at + 10], listed[at + 46] = b"\x00\x08", 0xFF
    (tmp_path / "torn.pt").write_bytes(listed)
    with pytest.raises(BadInput, match=r"torn\.pt: cannot be read as weights only"):
        load_weights("resnet18", tmp_path / "torn.pt")


def test_one_number_that_stands_for_many_is_not_unpacked(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    wide = torch.zeros(1, dtype=torch.float16).expand(1000, 1000, 1000)
    torch.save({"stem.weight": wide}, tmp_path / "wide.pt")
    with pytest.raises(BadInput, match=r"wide\.pt: cannot be read as weights only"):
        load_weights("resnet18", tmp_path / "wide.pt")


@pytest.mark.parametrize("sort", ["sparse", "meta", "complex", "quantized"])
@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_tensors_that_are_no_plain_numbers_are_refused(sort: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    plain = torch.eye(3)
    made = {
        "sparse": lambda: plain.to_sparse(),
        "meta": lambda: plain.to("meta"),
        "complex": lambda: plain.to(torch.complex64),
        "quantized": lambda: torch.quantize_per_tensor(plain, 1.0, 0, torch.qint8),
    }
    torch.save({"fc.weight": made[sort]()}, tmp_path / "odd.pt")
    with pytest.raises(BadInput, match=r"odd\.pt: cannot be read as weights only"):
        load_weights("resnet18", tmp_path / "odd.pt")


@pytest.mark.parametrize("name", ["running_mean", "weight", "bias"])
def test_a_batch_normalization_has_parts_of_one_size(name: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    parts = {"running_mean": torch.ones(4), "running_var": torch.ones(4), name: torch.ones(3)}
    norm = {f"bn1.{part}": array for part, array in parts.items()}
    torch.save({"conv1.weight": torch.ones(4, 3, 3, 3), **norm}, tmp_path / "odd.pt")
    with pytest.raises(BadInput, match="'bn1' does not follow its convolution"):
        load_weights("resnet18", tmp_path / "odd.pt")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("saved")
    model = build("resnet8:0.5/2")
    save_weights(model, folder / "a.npz")
    save(model, folder / "a.tflite")
    return {path.suffix: path for path in folder.iterdir()}


@draws(60)
@given(st.sampled_from([".npz", ".tflite"]), st.floats(0, 1), st.integers(0, 255))
def test_a_damaged_file_is_refused_or_read(
    saved: dict[str, Path], suffix: str, where: float, byte: int
) -> None:
    content = bytearray(saved[suffix].read_bytes())
    content[int(where * (len(content) - 1))] ^= byte
    path = saved[suffix].with_name(f"damaged{suffix}")
    path.write_bytes(content)
    try:
        model = load_weights("resnet8:0.5/2", path)
    except litesmith.LitesmithError as error:
        assert "\n" not in str(error)
    else:
        assert model.main.outputs[0].shape == (1, 2)
