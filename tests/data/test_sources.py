"""Every kind of source gives the same samples each time, and bad ones give one line."""

import gc
import os
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith import BadInput, Builder, Model, Quant
from litesmith.data.opened_samples import OpenedSamples
from litesmith.data.preparation import Preparation
from litesmith.data.samples import Sample, as_stored
from litesmith.data.sources import _choose_by_class, open_data
from litesmith.ir.types import Signature
from tests.data.test_images import noise, saved
from tests.platforms import has_proc
from tests.tflite.test_read_metadata import described

RAW = Preparation(norm="raw", label_offset=0)


def scorer(
    *shape: int, classes: int = 4, dtype: str = "float32", quant: Quant | None = None
) -> Model:
    """A model with one input and so many scores, which say nothing."""
    b = Builder()
    x = b.input("image", shape or (1, 8, 8, 3), dtype, quant)
    if quant is not None:
        x = b.op("DEQUANTIZE", x, dtype="float32")
    rows = x.shape[0]
    flat = b.op("RESHAPE", x, [rows, x.elements // rows])
    weights = np.zeros((classes, flat.shape[1]), np.float32)
    return b.model(b.op("SOFTMAX", b.op("FULLY_CONNECTED", flat, weights, None)))


def pair() -> Model:
    b = Builder()
    x, y = b.input("left:0", (1, 3)), b.input("right:0", (1, 3))
    model = b.model(b.op("ADD", x, y))
    names = (("a", x), ("b", y)), (("sum", model.main.outputs[0]),)
    return replace(model, signatures=(Signature("serve", 0, *names),))


def samples_of(source: object, model: Model, **settings: object) -> list[Sample]:
    settings = {"preparation": RAW, **settings}
    return list(open_data(source, model, **settings))  # type: ignore[arg-type]


def assert_equal(a: list[Sample], b: list[Sample]) -> None:
    assert [s.name for s in a] == [s.name for s in b]
    for one, other in zip(a, b, strict=True):
        for x, y in zip(one.inputs, other.inputs, strict=True):
            np.testing.assert_array_equal(x, y)
        np.testing.assert_array_equal(one.label, other.label)


def class_folder(root: Path, names: tuple[str, ...] = ("0", "1", "2"), each: int = 4) -> Path:
    for number, name in enumerate(names):
        for index in range(each):
            saved(root / name / f"{index}.png", noise(10, 12, 100 * number + index))
    return root


def test_class_folders_by_number(tmp_path: Path) -> None:
    found = samples_of(class_folder(tmp_path, ("3", "00", "12")), scorer(classes=13))
    assert [int(s.label[0]) for s in found if s.label is not None] == [0] * 4 + [12] * 4 + [3] * 4
    assert all(s.inputs[0].shape == (1, 8, 8, 3) for s in found)
    assert all(s.inputs[0].dtype == np.float32 for s in found)
    assert found[0].name == "00/0.png"


def test_class_folders_by_name_in_order_and_said(tmp_path: Path) -> None:
    data = open_data(class_folder(tmp_path, ("dog", "cat")), scorer(), preparation=RAW)
    assert [int(s.label[0]) for s in data if s.label is not None] == [0] * 4 + [1] * 4
    assert "in the order of their names: cat is 0" in data.notes[0]


def test_class_folders_by_the_models_labels(tmp_path: Path) -> None:
    model = described(scorer(), labels="fish\nDog\nbird\ncat")
    data = open_data(class_folder(tmp_path, ("dog", "cat")), model, preparation=RAW)
    assert {int(s.label[0]) for s in data if s.label is not None} == {1, 3}
    assert "model's label file" in data.notes[0]


def test_class_folders_by_a_label_file_beside_them(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("dog\ncat\n")
    data = open_data(class_folder(tmp_path, ("dog", "cat")), scorer(), preparation=RAW)
    assert [int(s.label[0]) for s in data if s.label is not None] == [1] * 4 + [0] * 4
    assert "labels.txt" in data.notes[0]


def test_a_flat_folder_has_no_labels(tmp_path: Path) -> None:
    for index in range(3):
        saved(tmp_path / f"{index}.png", noise(9, 9, index))
    assert [s.label for s in samples_of(tmp_path, scorer())] == [None] * 3


def test_the_order_of_a_listing_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = class_folder(tmp_path)
    before = open_data(folder, scorer(), preparation=RAW, samples=5)
    listed, scanned = Path.iterdir, os.scandir

    def shuffled(path: Path) -> Iterator[Path]:
        return iter(random.Random(1).sample(found := list(listed(path)), len(found)))

    class Scan:
        def __init__(self, path: Path) -> None:
            self.inner = scanned(path)

        def __enter__(self) -> list[os.DirEntry[str]]:
            return list(self.inner)[::-1]

        def __exit__(self, *_: object) -> None:
            self.inner.close()

    monkeypatch.setattr(Path, "iterdir", shuffled)
    monkeypatch.setattr(os, "scandir", Scan)
    after = open_data(folder, scorer(), preparation=RAW, samples=5)
    assert_equal(list(before), list(after))
    assert before.digest == after.digest


def numbered() -> Iterator[tuple[np.ndarray, int]]:
    for index in range(6):
        yield noise(8, 8, index), index % 3


def test_all_kinds_of_source_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = np.stack([a for a, _ in numbered()]), np.array([b for _, b in numbered()])
    np.savez(tmp_path / "d.npz", x=x, y=y)
    np.savez_compressed(tmp_path / "grouped.npz", x=x[:, None], y=y[:, None])
    (tmp_path / "own_source_of_data.py").write_text(
        "import numpy as np\n"
        "def give():\n"
        "    with np.load('d.npz') as z:\n"
        "        yield from zip(z['x'], z['y'])\n"
    )
    monkeypatch.chdir(tmp_path)
    sources = (
        tmp_path / "d.npz",
        str(tmp_path / "grouped.npz"),
        "own_source_of_data:give",
        {"x": x, "y": y},
        {"image": x, "y": y},
        numbered,
        numbered(),
        [(x[:4], y[:4]), (x[4:], y[4:])],
        [{"image": a[None], "y": b} for a, b in numbered()],
    )
    wanted = samples_of(sources[0], scorer())
    assert len(wanted) == 6
    for source in sources:
        data = open_data(source, scorer(), preparation=RAW)  # type: ignore[arg-type]
        for a, b in zip(wanted, data, strict=True):
            np.testing.assert_array_equal(a.inputs[0], b.inputs[0])
            np.testing.assert_array_equal(a.label, b.label)
        assert_equal(list(data), list(data))


def test_an_npy_has_no_labels_and_is_mapped(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((3, 8, 8, 3), np.float32))
    data = open_data(tmp_path / "x.npy", scorer())
    assert len(data) == 3 and all(s.label is None for s in data)
    assert isinstance(data, OpenedSamples) and isinstance(data.rows.read(0)[0][0], np.memmap)


def test_a_generator_is_read_once() -> None:
    given: list[int] = []

    def give() -> Iterator[list[np.ndarray]]:
        for index in range(5):
            given.append(index)
            yield [np.full((1, 8, 8, 3), index, np.float32)]

    data = open_data(give, scorer())
    first, second = list(data), list(data)
    assert given == [0, 1, 2, 3, 4]
    assert_equal(first, second)


def test_an_endless_generator_is_read_as_far_as_asked() -> None:
    def give() -> Iterator[np.ndarray]:
        while True:
            yield np.zeros((8, 8, 3), np.float32)

    assert len(open_data(give, scorer(), samples=3)) == 3


@has_proc
def test_the_temporary_file_goes_with_the_data() -> None:
    def places() -> set[str]:
        folder = Path("/proc/self/fd")
        return {os.readlink(p) for p in folder.iterdir() if p.is_symlink()}

    before = places()
    data = open_data(numbered, scorer(), preparation=RAW)
    assert any("litesmith" in p or "deleted" in p or "#" in p for p in places() - before)
    del data
    gc.collect()
    assert not places() - before


def test_several_inputs_by_name() -> None:
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    named = {"left:0": x, "right:0": -x}
    by_signature = {"a": x, "b": -x}
    listed = [[a, -a] for a in x]
    tuples = [(a, -a) for a in x]
    with_label = [((a, -a), 7) for a in x]
    keyed = [("serve", {"a": a, "b": -a}) for a in x]
    for source in (named, by_signature, listed, tuples, with_label, keyed):
        found = samples_of(source, pair(), preparation=Preparation())
        assert len(found) == 4
        np.testing.assert_array_equal(found[2].inputs[0], x[2:3])
        np.testing.assert_array_equal(found[2].inputs[1], -x[2:3])


def test_a_fixed_batch_is_filled_and_the_rest_goes() -> None:
    x = np.arange(7, dtype=np.float32).repeat(16).reshape(7, 4, 4, 1)
    data = open_data({"x": x, "y": np.arange(7)}, scorer(2, 4, 4, 1, classes=9))
    found = list(data)
    assert len(data) == len(found) == 3
    assert [s.label.tolist() for s in found if s.label is not None] == [[0, 1], [2, 3], [4, 5]]
    assert found[1].inputs[0][:, 0, 0, 0].tolist() == [2, 3]
    assert any("last 1 are left out" in note for note in data.notes)
    with pytest.raises(BadInput, match="1 items, and the model takes 2 at a time"):
        open_data(x[:1], scorer(2, 4, 4, 1))


def test_free_dimensions_are_the_datas() -> None:
    b = Builder()
    model = b.model(b.op("RELU", b.input("x", (1, -1, 3))))
    assert samples_of(np.zeros((2, 5, 3), np.float32), model)[0].inputs[0].shape == (1, 5, 3)
    with pytest.raises(BadInput, match="data has 5×4, the model's input 'x' wants any×3"):
        open_data(np.zeros((2, 5, 4), np.float32), model)


def test_inputs_without_a_batch() -> None:
    b = Builder()
    model = b.model(b.op("ADD", b.input("x", (5,)), b.input("y", (3, 5))))
    found = samples_of({"x": np.ones((2, 5)), "y": np.zeros((2, 3, 5))}, model)
    assert [a.shape for a in found[0].inputs] == [(5,), (3, 5)] and len(found) == 2


def test_a_row_of_numbers_is_one_item_unless_it_is_beside_a_batch() -> None:
    b = Builder()
    alone = b.model(b.op("RELU", b.input("x", (6,))))
    assert [s.inputs[0].shape for s in samples_of(np.ones((3, 6), np.float32), alone)] == [(6,)] * 3
    b = Builder()
    both = b.model(b.op("ADD", b.input("x", (4, 4)), b.input("each", (4,))))
    items = {"x": np.ones((8, 4), np.float32), "each": np.arange(8, dtype=np.float32)}
    found = samples_of(items, both)
    assert [s.inputs[0].shape for s in found] == [(4, 4)] * 2
    assert [s.inputs[1].tolist() for s in found] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_a_missing_channel_is_added() -> None:
    found = samples_of(np.zeros((3, 8, 8), np.uint8), scorer(1, 8, 8, 1))
    assert len(found) == 3 and found[0].inputs[0].shape == (1, 8, 8, 1)


def test_channels_first_inputs(tmp_path: Path) -> None:
    saved(tmp_path / "a.png", noise(8, 8))
    plan = Preparation(norm="raw", crop=0)
    [found] = samples_of(tmp_path, scorer(1, 3, 8, 8), preparation=plan)
    np.testing.assert_array_equal(found.inputs[0][0].transpose(1, 2, 0), noise(8, 8))


def test_pixels_of_a_quantized_input_are_stored_as_they_are() -> None:
    pixels = noise(8, 8)[None]
    for dtype, quant, shift in (
        ("uint8", Quant.of(0.0078, 128), 0),
        ("int8", Quant.of(0.5, -3), 128),
    ):
        model = scorer(1, 8, 8, 3, dtype=dtype, quant=quant)
        data = open_data(pixels, model)
        [sample] = data
        assert sample.inputs[0].dtype == np.float32 and "its own scale" in data.notes[0]
        stored = as_stored(model.main.inputs[0], sample.inputs[0])
        np.testing.assert_array_equal(stored.astype(int) + shift, pixels)


def test_stored_numbers_become_real_ones() -> None:
    model = scorer(1, 6, dtype="int8", quant=Quant.of(0.5, 2))
    [sample] = samples_of(np.full((1, 6), 4, np.int8), model, preparation=Preparation())
    np.testing.assert_array_equal(sample.inputs[0], np.full((1, 6), 1, np.float32))


def test_integers_without_a_scale_stay_integers() -> None:
    b = Builder()
    model = b.model(b.op("ADD", b.input("ids", (1, 4), "int32"), np.ones((1, 4), np.int32)))
    [sample] = samples_of(np.ones((1, 4), np.int64), model)
    assert sample.inputs[0].dtype == np.int32
    with pytest.raises(BadInput, match="'ids' is int32, which cannot hold the data's float64"):
        samples_of(np.full((1, 4), 0.5), model)


def test_float_arrays_are_left_alone_unless_told() -> None:
    x = np.full((1, 8, 8, 3), 255, np.float32)
    assert samples_of(x, scorer(), preparation=Preparation())[0].inputs[0].max() == 255
    assert samples_of(x, scorer(), preparation=Preparation(norm="unit"))[0].inputs[0].max() == 1


def test_data_is_returned_as_it_is() -> None:
    data = open_data(np.zeros((1, 8, 8, 3), np.float32), scorer())
    assert open_data(data, scorer()) is data


def test_one_hot_and_column_labels_are_class_numbers() -> None:
    x = np.zeros((3, 8, 8, 3), np.float32)
    for y in (np.eye(4)[[2, 0, 1]], np.array([[2], [0], [1]], np.uint8)):
        found = samples_of({"x": x, "y": y}, scorer())
        assert [s.label.tolist() for s in found if s.label is not None] == [[2], [0], [1]]


def test_labels_that_are_no_classes_stay() -> None:
    y = np.random.default_rng(0).normal(size=(2, 5))
    found = samples_of({"x": np.zeros((2, 8, 8, 3), np.float32), "y": y}, scorer())
    np.testing.assert_array_equal(found[1].label, y[1:])


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.data())
def test_chosen_samples_are_spread_over_the_classes(
    classes: list[int], data: st.DataObject
) -> None:
    wanted = data.draw(st.integers(1, len(classes)))
    numbers = np.array(classes)
    chosen = _choose_by_class(numbers, len(classes), wanted)
    assert len(set(chosen)) == wanted and chosen == sorted(chosen)
    counts = {c: int((numbers[chosen] == c).sum()) for c in set(classes)}
    whole = {c: classes.count(c) for c in counts}
    most = max(counts.values())
    assert all(n >= most - 1 or n == whole[c] for c, n in counts.items())


def test_fewer_samples_are_a_part_and_the_same_each_time() -> None:
    x = np.arange(100, dtype=np.float32).repeat(4).reshape(100, 4)
    found = [s.inputs[0][0, 0] for s in samples_of(x, scorer(1, 4), samples=10)]
    assert found == [s.inputs[0][0, 0] for s in samples_of(x, scorer(1, 4), samples=10)]
    assert np.diff(found).tolist() == [10] * 9
    data = open_data(x, scorer(1, 4), samples=500)
    assert len(data) == 100 and "there are 100" in data.notes[0]


def test_the_digest_depends_on_contents_labels_and_preparation_only(tmp_path: Path) -> None:
    first, second = class_folder(tmp_path / "a"), class_folder(tmp_path / "b")
    for index, path in enumerate(sorted((second / "1").iterdir())):
        path.rename(path.with_name(f"renamed{9 - index}.png"))
    digest = open_data(first, scorer(), preparation=RAW).digest
    assert open_data(second, scorer(), preparation=RAW).digest == digest
    (second / "2").rename(second / "3")
    others = [
        open_data(second, scorer(), preparation=RAW).digest,
        open_data(first, scorer(), preparation=RAW, samples=5).digest,
        open_data(first, scorer(1, 9, 9, 3), preparation=RAW).digest,
        open_data(first, scorer(), preparation=replace(RAW, norm="unit")).digest,
        open_data(first, scorer(), preparation=replace(RAW, crop=0.5)).digest,
        open_data(first, scorer(), preparation=replace(RAW, label_offset=1)).digest,
    ]
    assert len({digest, *others}) == 7


def test_the_digest_of_arrays_is_independent_of_their_order() -> None:
    x, y = np.arange(40, dtype=np.float32).reshape(10, 4), np.arange(10)
    mixed = np.random.default_rng(0).permutation(10)
    one = open_data({"x": x, "y": y}, scorer(1, 4, classes=10))
    other = open_data({"x": x[mixed], "y": y[mixed]}, scorer(1, 4, classes=10))
    wrong = open_data({"x": x[mixed], "y": y}, scorer(1, 4, classes=10))
    assert one.digest == other.digest != wrong.digest


BAD = [
    ("missing", "does not exist"),
    ("no_module_here:give", "no module 'no_module_here'"),
    ("os:no_function", "has no function 'no_function'"),
    ("os:getcwd", "data has|not an array|numbers"),
    ("text.txt", "neither a folder nor an .npz, an .npy or a table"),
    ("broken.npz", "cannot be read"),
    ("broken.npy", "cannot be read"),
    ("object.npy", "cannot be read"),
    ("object.npz", "cannot be read"),
    ("no_x.npz", r"needs x \(and y for labels\); it has z"),
    ("labels.npz", "2 labels for 3 items"),
    ("words.npz", "labels are <U1; give numbers"),
    ("empty.npz", "no items in it"),
    ("size.npz", "data has 32×32×3, the model's input 'image' wants 8×8×3"),
    ("empty", "no images in it or in the folders in it"),
    ("nested", "is .*train.* meant?"),
    ("mixed", "both directly"),
]


@pytest.mark.parametrize(("source", "message"), BAD)
def test_bad_sources_give_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, message: str
) -> None:
    x = np.zeros((3, 8, 8, 3), np.float32)
    objects = np.array([{}, []], object)
    (tmp_path / "text.txt").write_text("x")
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 nothing")
    (tmp_path / "broken.npy").write_bytes(b"\x93NUMPY")
    np.save(tmp_path / "object.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "object.npz", x=objects)
    np.savez(tmp_path / "no_x.npz", z=x)
    np.savez(tmp_path / "labels.npz", x=x, y=[1, 2])
    np.savez(tmp_path / "words.npz", x=x, y=["a", "b", "c"])
    np.savez(tmp_path / "empty.npz", x=x[:0])
    np.savez(tmp_path / "size.npz", x=np.zeros((3, 32, 32, 3), np.uint8))
    (tmp_path / "empty").mkdir()
    saved(tmp_path / "nested" / "train" / "0" / "a.png", noise(8, 8))
    saved(tmp_path / "mixed" / "a.png", noise(8, 8))
    saved(tmp_path / "mixed" / "0" / "a.png", noise(8, 8))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput) as caught:
        open_data(source, scorer())
    assert re.search(message, str(caught.value)) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "gives no items"),
        ([[np.zeros((8, 8, 3)), np.zeros(3)]], "has 2 arrays, the model 1 inputs"),
        ([object()], "object is not an array of numbers"),
        ([(np.zeros((8, 8, 3)), 1), np.zeros((8, 8, 3))], "some items have labels"),
        ([{"other": np.zeros((8, 8, 3))}], "it has other"),
        (lambda: 7, "gives int"),
        (lambda: 1 // 0, "own code failed with ZeroDivisionError"),
        (lambda: (1 // n for n in range(3)), "own code failed with ZeroDivisionError"),
        (7, "give a folder"),
    ],
)
def test_bad_generators_give_one_line(given: object, message: str) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        open_data(given, scorer())  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_images_for_a_model_that_takes_none(tmp_path: Path) -> None:
    saved(tmp_path / "a.png", noise(8, 8))
    with pytest.raises(BadInput, match="'image' of 1×640"):
        open_data(tmp_path, scorer(1, 640))


def test_no_samples_are_refused() -> None:
    with pytest.raises(BadInput, match="samples=0"):
        open_data(np.zeros((1, 8, 8, 3)), scorer(), samples=0)
