"""`convert` as a user meets it: from a source to a .tflite that gives the same."""

import json
from pathlib import Path

import numpy as np
import pytest

import litesmith
from litesmith.cli.text.convert_text import print_converted
from litesmith.errors import BadInput, BadModel, CannotApply
from tests.cli.typed import run_command
from tests.conversion.beside_onnx import onnx, onnx_model
from tests.platforms import links
from tests.zoo import noise

node = onnx.helper.make_node


def image_net(size: int | str = 12, batch: int | str = 1):
    weights = {"w": noise(4, 3, 3, 3), "b": noise(4), "v": noise(5, 4), "two": np.float32([2])}
    nodes = [
        node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        node("HardSigmoid", ["c"], ["g"], alpha=1 / 6, beta=0.5),
        node("Mul", ["c", "g"], ["s"]),
        node("GlobalAveragePool", ["s"], ["p"]),
        node("Flatten", ["p"], ["f"]),
        node("Gemm", ["f", "v"], ["y"], transB=1),
    ]
    inputs = [("x", "float32", [batch, 3, size, size])]
    return onnx_model(nodes, inputs, [("y", "float32", [batch, 5])], weights)


def written(model, folder: Path, name: str = "net.onnx") -> Path:
    path = folder / name
    path.write_bytes(model.SerializeToString())
    return path


def test_a_network_and_its_proof(tmp_path: Path) -> None:
    source, out = written(image_net(), tmp_path), tmp_path / "net.tflite"
    before = source.read_bytes()
    result = litesmith.convert(source, out=out)
    assert source.read_bytes() == before
    assert result.judge == "onnxruntime"
    assert [one.output for one in result.differences] == ["y"]
    assert all(one.is_float_error for one in result.differences)
    assert result.turned == {"x"}
    kinds = [op.kind for op in litesmith.load(out).main.ops]
    assert "TRANSPOSE" not in kinds
    assert "HARD_SWISH" in kinds  # in pieces in the source
    told = result.to_json()
    assert told["ops"] == len(kinds)
    assert told["left"] == []
    assert "6 nodes became" in repr(result)


def test_a_file_newer_than_onnxruntime_is_judged_by_onnx_itself(tmp_path: Path) -> None:
    model = image_net()
    model.ir_version = onnx.IR_VERSION + 40  # whatever onnxruntime is installed
    result = litesmith.convert(written(model, tmp_path))
    assert result.judge == "onnx" and result.judge_bytes > 0
    assert all(one.is_float_error for one in result.differences)


def test_the_order_of_the_source_can_be_kept(tmp_path: Path) -> None:
    kept = litesmith.convert(written(image_net(), tmp_path), keep_layout=True)
    assert not kept.turned
    assert kept.model.main.inputs[0].shape == (1, 3, 12, 12)


def test_a_free_batch_stays_free(tmp_path: Path) -> None:
    result = litesmith.convert(written(image_net(batch="n"), tmp_path))
    assert result.model.main.inputs[0].dynamic == (-1, 12, 12, 3)
    four = litesmith.resize(result.model, {"x": (4, 12, 12, 3)})
    x = noise(4, 12, 12, 3)
    together = litesmith.Session(four)(x)["y"]
    one = litesmith.Session(result.model)
    np.testing.assert_allclose(together, np.concatenate([one(v[None])["y"] for v in x]), atol=1e-5)


def test_sizes_that_cannot_stay_free_are_asked_for(tmp_path: Path) -> None:
    nodes = [node("Resize", ["x", "", "s"], ["y"], mode="nearest")]
    scales = {"s": np.float32([1, 1, 2, 2])}
    sizes = ["n", 3, "height", "width"]
    inputs, outputs = [("x", "float32", sizes)], [("y", "float32", ["n", 3, "h", "w"])]
    source = written(onnx_model(nodes, inputs, outputs, scales), tmp_path)
    with pytest.raises(BadInput, match=r"size height is free.*--shape x=1,3,224,224"):
        litesmith.convert(source)
    fixed = litesmith.convert(source, shape={"x": (1, 3, 4, 6)})
    assert fixed.model.main.inputs[0].shape == (1, 4, 6, 3)
    with pytest.raises(BadInput, match="the source says n,3,height,width"):
        litesmith.convert(source, shape="x=1,4,4,6")
    with pytest.raises(BadInput, match="no such input; it has x"):
        litesmith.convert(source, shape="z=1,3,4,6")


def test_a_size_that_no_guess_fits_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [node("Reshape", ["x", "shape"], ["r"]), node("Relu", ["r"], ["y"])]
    constants = {"shape": np.array([1, 9, 64])}
    inputs, outputs = [("x", "float32", ["n", "length"])], [("y", "float32", [1, 9, 64])]
    source = written(onnx_model(nodes, inputs, outputs, constants), tmp_path)
    refused = litesmith.convert(source)
    assert not refused.is_as_asked
    print_converted(refused)
    told = " ".join(capsys.readouterr().out.split())
    assert "do not fill the shape (1, 9, 64)" in told and "give them: --shape x=1,224" in told
    assert litesmith.convert(source, shape="x=1,576").is_as_asked


def test_sizes_are_not_asked_for_where_no_size_would_help(tmp_path: Path) -> None:
    nodes = [node("Unheard", ["x"], ["y"], domain="own")]
    inputs, outputs = [("x", "float32", ["n", "length"])], [("y", "float32", [1])]
    refused = litesmith.convert(written(onnx_model(nodes, inputs, outputs), tmp_path))
    assert not refused.is_as_asked and not refused.notes


def text_net():
    """Tokens and a mask of the same free sizes."""
    nodes = [
        node("Unsqueeze", ["mask", "one"], ["m"]),
        node("Cast", ["m"], ["f"], to=onnx.TensorProto.FLOAT),
        node("Gather", ["table", "ids"], ["e"]),
        node("MatMul", ["f", "e"], ["y"]),
    ]
    sizes = ["batch", "length"]
    return onnx_model(
        nodes,
        [("ids", "int64", sizes), ("mask", "int64", sizes)],
        [("y", "float32", ["batch", 1, 4])],
        {"table": noise(9, 4), "one": np.array([1])},
    )


def test_a_size_is_told_once_for_all_inputs_that_have_it(tmp_path: Path) -> None:
    source = written(text_net(), tmp_path)
    fixed = litesmith.convert(source, shape="ids=2,5", check=False)
    assert [t.shape for t in fixed.model.main.inputs] == [(2, 5), (2, 5)]


def test_sizes_without_a_name_are_those_of_one_input_alone(tmp_path: Path) -> None:
    """A state was given the length of the sound beside it, and did not convert."""
    nodes = [node("ReduceMean", ["x"], ["m"], axes=[1]), node("Add", ["m", "state"], ["y"])]
    inputs = [("x", "float32", [None, None]), ("state", "float32", [2, None, 3])]
    model = onnx_model(nodes, inputs, [("y", "float32", [2, None, 3])], {}, opset=13)
    made = litesmith.convert(written(model, tmp_path), shape="x=1,512", check=False).model
    state = made.main.inputs[1]
    assert state.shape == (2, 1, 3) or state.dynamic == (2, -1, 3)


def test_a_length_stays_free_before_the_batch_does(tmp_path: Path) -> None:
    free = litesmith.convert(written(text_net(), tmp_path), check=False)
    assert [t.dynamic for t in free.model.main.inputs] == [(1, -1), (1, -1)]
    assert any("batch is fixed at 1" in note for note in free.notes)


def test_an_image_that_is_channels_last_in_the_source_is_left_so(tmp_path: Path) -> None:
    nodes = [
        node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]),
        node("Conv", ["t", "w"], ["c"]),
        node("Transpose", ["c"], ["y"], perm=[0, 2, 3, 1]),
    ]
    ends = [("x", "float32", ["n", 8, 8, 3])], [("y", "float32", ["n", 6, 6, 4])]
    model = onnx_model(nodes, *ends, {"w": noise(4, 3, 3, 3)})
    made = litesmith.convert(written(model, tmp_path), check=False)
    assert [op.kind for op in made.model.main.ops] == ["CONV_2D"]
    assert made.model.main.inputs[0].dynamic == (-1, 8, 8, 3)


def test_an_input_can_become_a_constant(tmp_path: Path) -> None:
    nodes = [node("Mul", ["x", "rate"], ["y"])]
    inputs = [("x", "float32", [1, 4]), ("rate", "float32", [])]
    source = written(onnx_model(nodes, inputs, [("y", "float32", [1, 4])]), tmp_path)
    result = litesmith.convert(source, fix="rate=2.5")
    assert [t.name for t in result.model.main.inputs] == ["x"]
    x = noise(1, 4)
    np.testing.assert_allclose(litesmith.Session(result.model)(x)["y"], x * 2.5, rtol=1e-6)
    with pytest.raises(BadInput, match="--fix speed: the source has no such input"):
        litesmith.convert(source, fix={"speed": 1})


def test_what_has_no_form_is_listed_all_at_once(tmp_path: Path) -> None:
    nodes = [
        node("Unique", ["x"], ["u"], name="first"),
        node("NotThere", ["x"], ["y"], name="second"),
    ]
    model = onnx_model(
        nodes, [("x", "float32", [4])], [("u", "float32", ["n"]), ("y", "float32", [4])]
    )
    result = litesmith.convert(written(model, tmp_path), out=tmp_path / "no.tflite")
    assert not (tmp_path / "no.tflite").exists()
    assert [(left.kind, left.place) for left in result.left] == [
        ("Unique", "first"),
        ("NotThere", "second"),
    ]
    assert not result.is_as_asked
    with pytest.raises(
        CannotApply, match="2 of 2 nodes without a form in LiteRT: Unique, NotThere"
    ):
        _ = result.model


REFUSED = {
    "torn.onnx": (b"\x3a\xff\x7f\x0a", BadModel, "no ONNX model, or a damaged one"),
    "text.onnx": (b"this is a text", BadInput, "a text file, no ONNX model"),
    "pointer.onnx": (b"version https://git-lfs.github.com/spec/v1\n", BadInput, "git lfs pull"),
    "zipped.onnx": (b"PK\x03\x04\x14", BadInput, "unpack it and give the .onnx file inside"),
    "empty.onnx": (b"", BadModel, "the file is empty"),
    "weights.pt": (b"PK", BadInput, r"in Python: litesmith.convert\(module, example\)"),
    "old.h5": (b"\x89HDF", BadInput, "save.'model.keras'"),
    "frozen.pb": (b"\x08", BadInput, "tf2onnx.convert"),
    "notes.txt": (
        b"",
        BadInput,
        "not a model that can be converted; give a file that ends in .onnx, .pt2, .keras",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_files_are_told_the_way(name: str, tmp_path: Path) -> None:
    content, kind, told = REFUSED[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(kind, match=told) as caught:
        litesmith.convert(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_numbers_that_litert_does_not_compute_with(tmp_path: Path) -> None:
    nodes = [node("Add", ["x", "x"], ["y"])]
    double = onnx_model(nodes, [("x", "float64", [4])], [("y", "float64", [4])])
    with pytest.raises(BadInput, match="input 'x' is float64; LiteRT computes in float32"):
        litesmith.convert(written(double, tmp_path))
    old = onnx_model(nodes, [("x", "float32", [4])], [("y", "float32", [4])], opset=5)
    with pytest.raises(BadInput, match="opset 5 is older than 7"):
        litesmith.convert(written(old, tmp_path))
    new = onnx_model(nodes, [("x", "float32", [4])], [("y", "float32", [4])], opset=99)
    with pytest.raises(BadInput, match="opset 99 is newer than 28"):
        litesmith.convert(written(new, tmp_path))


def test_a_source_in_half_precision_is_proven_to_its_own_digits(tmp_path: Path) -> None:
    weights = noise(64, 64).astype(np.float16)
    nodes = [node("MatMul", ["x", "w"], ["h"]), node("MatMul", ["h", "w"], ["y"])]
    half = "float16"
    model = onnx_model(nodes, [("x", half, [1, 64])], [("y", half, [1, 64])], {"w": weights})
    (found,) = litesmith.convert(written(model, tmp_path)).differences
    assert found.is_float_error
    assert 1e-4 < found.share < 1e-2  # more than float32 would lose
    whole = written(image_net(), tmp_path, "whole.onnx")
    assert all(one.allowed < 1e-3 for one in litesmith.convert(whole).differences)


@pytest.mark.parametrize("name", ["net.onnx", "net.pt2", "net.keras"])
def test_an_empty_file_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises((BadInput, BadModel), match=name):
        litesmith.convert(tmp_path / name)


def test_weights_beside_the_model(tmp_path: Path) -> None:
    weights = noise(400, 400)
    nodes = [node("MatMul", ["x", "w"], ["y"])]
    model = onnx_model(
        nodes, [("x", "float32", [1, 400])], [("y", "float32", [1, 400])], {"w": weights}
    )
    path = tmp_path / "net.onnx"
    onnx.save(model, path, save_as_external_data=True, location="net.data", size_threshold=0)
    assert litesmith.convert(path).judge
    (tmp_path / "net.data").rename(tmp_path / "gone")
    with pytest.raises(BadInput, match=r"tensor 'w' lies in .*net.data, which is missing"):
        litesmith.convert(path)


@links
@pytest.mark.parametrize("way", ["../secret", "sub/../../secret", "link", "{folder}/secret"])
def test_weights_elsewhere_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """By a relative name too, and beside a model of the current folder."""
    weights, home = noise(8, 8), tmp_path / "home"
    (home / "sub").mkdir(parents=True)
    (tmp_path / "secret").write_bytes(weights.tobytes())
    (home / "link").symlink_to(tmp_path / "secret")
    net = onnx_model(
        [node("MatMul", ["x", "w"], ["y"])],
        [("x", "float32", [1, 8])],
        [("y", "float32", [1, 8])],
        {"w": weights},
    )
    kept = net.graph.initializer[0]
    kept.ClearField("raw_data")
    kept.data_location = onnx.TensorProto.EXTERNAL
    kept.external_data.add(key="location", value=way.format(folder=tmp_path))
    (home / "net.onnx").write_bytes(net.SerializeToString())
    monkeypatch.chdir(home)
    for path in (Path("net.onnx"), home / "net.onnx"):
        with pytest.raises(BadInput, match="outside the model's folder"):
            litesmith.convert(path)


@links
def test_a_model_that_is_a_link_has_its_weights_where_it_lies(tmp_path: Path) -> None:
    """As in the cache of a hub, which holds links to files by their digests."""
    net = onnx_model(
        [node("MatMul", ["x", "w"], ["y"])],
        [("x", "float32", [1, 400])],
        [("y", "float32", [1, 400])],
        {"w": noise(400, 400)},
    )
    blobs, shown = tmp_path / "blobs", tmp_path / "shown"
    blobs.mkdir()
    shown.mkdir()
    onnx.save(net, blobs / "a", save_as_external_data=True, location="net.data", size_threshold=0)
    (blobs / "net.data").rename(blobs / "b")
    (shown / "net.onnx").symlink_to(blobs / "a")
    (shown / "net.data").symlink_to(blobs / "b")
    assert litesmith.convert(shown / "net.onnx", check=False)


@links
def test_a_command_takes_a_source_and_keeps_its_file(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source = written(image_net(), tmp_path)
    for told in ("net.onnx: 6 nodes became", "net.onnx, converted before"):
        run_command("inspect", model=source, as_json=True)
        out, err = capfd.readouterr()
        assert json.loads(out)["schema"]
        assert told in err.replace("\n", " ")
    assert (tmp_path / "net.tflite").is_file()
    written(image_net(size=8), tmp_path)
    with pytest.raises(BadInput, match="was not made of"):
        run_command("inspect", model=source)
    (tmp_path / "net.tflite").unlink()
    (tmp_path / "net.tflite").symlink_to(tmp_path / "elsewhere")  # where nothing is yet
    with pytest.raises(BadInput, match="was not made of"):
        run_command("inspect", model=source)
    assert not (tmp_path / "elsewhere").exists()


def test_the_command_prints_what_differs(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    source = written(image_net(), tmp_path)
    run_command("convert", source=source, out=tmp_path / "out.tflite")
    out = capfd.readouterr().out
    assert "channels last now: x" in out
    assert "run beside onnxruntime on 2 inputs" in out
    assert all(len(line) <= 80 for line in out.splitlines() if "inspect" not in line)
