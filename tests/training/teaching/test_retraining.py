"""A retrained model knows the user's classes, says so, and is judged by what it has not seen."""

import shutil
import wave
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import litesmith
from litesmith import BadInput, Builder
from litesmith.data.preparation import Preparation
from litesmith.ir.types import Quant
from litesmith.numeric.softmax_regression import log_chances
from litesmith.tflite.file import digest, load, save
from litesmith.tflite.read_metadata import metadata
from litesmith.training.teaching.retrain_result import Retrained
from litesmith.transfer.embedding import cut_at, embedding_of
from litesmith.transfer.head import rows_of
from tests import zoo
from tests.draws import draws
from tests.training.flowers import backbone, classifier, write_pictures
from tests.zoo import noise

UNIT = Preparation(norm="unit")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    save(backbone(), tmp_path / "backbone.tflite")
    write_pictures(tmp_path / "data")
    return tmp_path


def retrained(place: Path, data: str = "data", **more: object) -> Retrained:
    settings = {"preparation": UNIT, **more}
    return litesmith.retrain(
        place / "backbone.tflite", place / data, place / "out.tflite", **settings
    )


def test_classes_that_differ_are_told(place: Path) -> None:
    found = retrained(place)
    assert found.value > 0.9 and found.low < found.value <= found.high
    assert found.classes == ("blue", "green", "red")
    assert found.n == len(found.found.labels) == 6
    assert found.found.table.sum() == 6


def test_a_classifier_loses_its_head(place: Path) -> None:
    save(classifier(), place / "backbone.tflite")
    found = retrained(place)
    model = load(found.out)
    assert found.value > 0.9
    assert model.main.outputs[0].shape == (1, 3)
    assert [op.kind for op in model.main.ops[-2:]] == ["FULLY_CONNECTED", "SOFTMAX"]
    assert sum(op.kind == "SOFTMAX" for op in model.main.ops) == 1


def test_the_file_gives_the_scores_that_were_solved(place: Path) -> None:
    found = retrained(place)
    model = backbone()
    features = cut_at(model, embedding_of(model).tensor)
    rows = rows_of(features, found.proof.data)
    assert found.head is not None
    expected = np.exp(log_chances(found.head.linear.scores(rows)))
    assert np.allclose(found.found.chances, expected, atol=1e-5)


def test_what_is_judged_by_was_not_learned_from(place: Path) -> None:
    found = retrained(place)
    assert not {*found.learned.data.digests} & {*found.proof.data.digests}
    assert found.learned.counts == (10, 10, 10)
    assert found.proof.counts == (2, 2, 2)
    assert any("held out" in note for note in found.notes)


def test_the_file_describes_itself(place: Path) -> None:
    found = retrained(place)
    told = metadata(load(found.out))
    assert told.labels == found.classes
    assert told.inputs[0] is not None and told.inputs[0].std == (255.0,)
    again = litesmith.evaluate(found.out, place / "data")
    assert again.metric == "top1" and again.value > 0.9


def test_names_and_order_of_files_change_nothing(place: Path) -> None:
    first = digest(retrained(place).out)
    for number, folder in enumerate(sorted((place / "data").iterdir())):
        files = sorted(folder.iterdir())
        for new, file in enumerate(reversed(files)):
            file.rename(folder / f"x{new + 100 * number}.png")
    assert digest(retrained(place).out) == first


def test_parts_of_a_data_set_are_used_as_such(place: Path) -> None:
    write_pictures(place / "set" / "train", 10)
    write_pictures(place / "set" / "val", 5, seed=9)
    found = retrained(place, "set")
    assert found.n == 15 and sum(found.learned.counts) == 30
    assert any("judged by" in note for note in found.notes)


def test_what_is_in_both_parts_is_not_learned_from(place: Path) -> None:
    write_pictures(place / "val", 3, seed=9)
    shutil.copy(place / "val" / "red" / "000.png", place / "data" / "red" / "copy.png")
    found = retrained(place, val=place / "val")
    assert found.learned.counts == (12, 12, 12)
    assert any("not learned from" in note for note in found.notes)


def test_the_normalisation_is_chosen_by_what_it_tells(place: Path) -> None:
    found = litesmith.retrain(place / "backbone.tflite", place / "data", place / "out.tflite")
    assert any("heads tell 30 images apart best with it" in note for note in found.notes)
    assert metadata(load(found.out)).inputs[0] is not None


def test_what_judges_has_no_say_in_what_comes_out(place: Path) -> None:
    def made(data: str, **more: object) -> str:
        return digest(retrained(place, data, preparation=Preparation(), **more).out)

    whole = made("data")
    held = retrained(place).proof.data.names
    for name in held:
        (place / "val" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(place / "data" / name, place / "val" / name)
    assert made("data", val=place / "val") == whole


def test_classes_that_nothing_judges_are_said(place: Path) -> None:
    write_pictures(place / "val", 3, ["blue"], seed=9)
    found = retrained(place, val=place / "val")
    assert any("judge by of class 'green', 'red'" in note for note in found.notes)
    assert found.proof.counts == (3, 0, 0)


def test_an_item_in_two_classes_is_said_and_on_one_side(place: Path) -> None:
    for number in range(12):
        shutil.copy(place / "data" / "red" / f"{number:03d}.png", place / "data" / "blue")
        shutil.move(
            place / "data" / "blue" / f"{number:03d}.png",
            place / "data" / "blue" / f"again{number}.png",
        )
    write_pictures(place / "more", 12, ["blue"], seed=5)
    for file in (place / "more" / "blue").iterdir():
        shutil.copy(file, place / "data" / "blue")
    found = retrained(place)
    assert any("12 items are in two classes, as " in note for note in found.notes)
    assert not {*found.learned.data.digests} & {*found.proof.data.digests}


@pytest.mark.parametrize("batch", [-1, 2])
def test_models_that_take_several_items_at_a_time(place: Path, batch: int) -> None:
    save(backbone(batch=batch), place / "backbone.tflite")
    found = retrained(place)
    assert found.value > 0.9 and found.n == 6
    output = load(found.out).main.outputs[0]
    assert (output.dynamic or output.shape) == (batch, 3)


def test_a_small_class_is_said_and_can_count_the_same(place: Path) -> None:
    for file in sorted((place / "data" / "red").iterdir())[3:]:
        file.unlink()
    assert any("--balance" in note for note in retrained(place).notes)
    assert not any("--balance" in note for note in retrained(place, balance=True).notes)


@draws(5)
@given(
    names=st.lists(
        st.text(st.characters(exclude_characters="/\0", exclude_categories=("Cs",)), min_size=1)
        .map(lambda name: f"n{name}"[:40])
        .filter(lambda name: len(name.encode()) < 200),
        min_size=3,
        max_size=3,
        unique_by=lambda name: name.strip().casefold(),
    )
)
def test_whatever_classes_are_called_they_are_found_again(
    names: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("named")
    save(backbone(), place / "backbone.tflite")
    try:
        write_pictures(place / "data", 4, names)
    except (OSError, FileExistsError):  # names that this file system holds for the same
        reject()
    found = retrained(place)
    assert [*found.classes] == sorted(names)
    again = litesmith.evaluate(found.out, place / "data")
    assert again.n == 12 and again.metric == "top1"


def test_arrays_with_gaps_between_their_classes(place: Path) -> None:
    x = np.concatenate([noise(20, 16, 16, 3, seed=1), noise(20, 16, 16, 3, seed=2) + 4])
    np.savez(place / "arrays.npz", x=x, y=np.repeat([3, 7], 20))
    found = retrained(place, "arrays.npz", preparation=Preparation())
    assert found.classes == ("3", "7") and found.value > 0.9
    assert any("without gaps" in note for note in found.notes)


def test_folders_of_numbers_are_found_again(place: Path) -> None:
    write_pictures(place / "numbers", 6, ("10", "3", "7"))
    found = retrained(place, "numbers")
    assert found.classes == ("3", "7", "10")
    assert litesmith.evaluate(found.out, place / "numbers").value > 0.9


def test_clips_are_learned_from(tmp_path: Path) -> None:
    b = Builder()
    x = b.op("RESHAPE", b.input("sound", (4000,)), [1, 50, 80])
    bands = b.op("FULLY_CONNECTED", x, noise(16, 80), None, keep_num_dims=True)
    save(b.model(b.op("MEAN", b.op("ABS", bands), [1])), tmp_path / "backbone.tflite")
    for name, pitch in (("high", 1300), ("low", 150)):
        (tmp_path / "data" / name).mkdir(parents=True)
        for number in range(8):
            _write_tone(tmp_path / "data" / name / f"{number}.wav", pitch + 10 * number)
    found = retrained(tmp_path, preparation=Preparation(rate=8000))
    assert found.classes == ("high", "low") and found.value == 1
    assert metadata(load(found.out)).rate == 8000
    assert litesmith.evaluate(found.out, tmp_path / "data").value > 0.9


def test_clips_of_any_length_and_rate_teach_an_integer_network_behind_a_float_front(
    tmp_path: Path,
) -> None:
    b = Builder()
    x = b.op("RESHAPE", b.input("sound", (4000,)), [1, 50, 80])
    bands = b.op("FULLY_CONNECTED", x, noise(16, 80), None, keep_num_dims=True)
    form = Quant.of(0.05, -128)
    codes = b.op("QUANTIZE", b.op("ABS", bands), dtype="int8", quant=form)
    pooled = b.op("MEAN", codes, [1], dtype="int8", quant=form)
    save(b.model(b.op("DEQUANTIZE", pooled)), tmp_path / "backbone.tflite")
    lengths = (0.2, 0.5, 1.7)
    for name, pitch in (("high", 1300), ("low", 150)):
        (tmp_path / "data" / name).mkdir(parents=True)
        for number in range(9):
            place = tmp_path / "data" / name / f"{number}.wav"
            rate = (8000, 11_025, 16_000)[number % 3]
            _write_tone(place, pitch + 10 * number, rate, lengths[number // 3])
    found = retrained(tmp_path, preparation=Preparation(rate=8000))
    assert found.value == 1 and found.embedding.tensor.dtype == "int8"
    assert litesmith.evaluate(found.out, tmp_path / "data").value > 0.9
    assert all(one.thumbnail for one in found.found.mistakes)
    with pytest.raises(BadInput, match="is quantized"):
        retrained(tmp_path, preparation=Preparation(rate=8000), fine_tune="last")


def _write_tone(path: Path, pitch: float, rate: int = 11_025, seconds: float = 0.5) -> None:
    random = np.random.default_rng(int(pitch))
    turns = 2 * np.pi * pitch * np.arange(int(rate * seconds)) / rate
    values = 0.5 * np.sin(turns + random.random()) + random.normal(0, 0.05, len(turns))
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((values * 32767).clip(-32768, 32767).astype("<i2").tobytes())


# What cannot be done is said in one line.


def test_one_class_is_refused(place: Path) -> None:
    write_pictures(place / "one", 4, ("only",))
    with pytest.raises(BadInput, match="one class only, 'only'"):
        retrained(place, "one")


def test_a_class_of_one_is_refused(place: Path) -> None:
    for file in sorted((place / "data" / "red").iterdir())[1:]:
        file.unlink()
    with pytest.raises(BadInput, match="class 'red' has fewer than 2 items"):
        retrained(place)


def test_pictures_without_classes_are_refused(place: Path) -> None:
    with pytest.raises(BadInput, match="no classes to learn"):
        retrained(place, "data/red")


def test_other_classes_to_judge_by_are_refused(place: Path) -> None:
    write_pictures(place / "val", 3, ("blue", "mauve"), seed=9)
    with pytest.raises(BadInput, match="class 'mauve' is not in"):
        retrained(place, val=place / "val")


def test_a_quantized_backbone_is_refused(place: Path) -> None:
    save(zoo.residual_int8(), place / "backbone.tflite")
    with pytest.raises(BadInput, match=r"is quantized .* give the float file"):
        retrained(place)


def test_where_the_weights_alone_are_quantized_the_step_that_unpacks_them_is_named(
    place: Path,
) -> None:
    change = litesmith.apply(backbone(width=64), "quantize(to=dynamic)")
    save(change.model, place / "backbone.tflite")
    with pytest.raises(BadInput, match=r"in its weights alone; .*'rewrite\(unpack=true\)'"):
        retrained(place)
    save(litesmith.apply(change.model, "rewrite(unpack=true)").model, place / "backbone.tflite")
    assert retrained(place).value > 0.9


def test_float16_weights_are_unpacked(place: Path) -> None:
    change = litesmith.apply(backbone(), "quantize(to=float16)")
    save(change.model, place / "backbone.tflite")
    assert retrained(place).value > 0.9


def test_the_backbone_is_not_overwritten(place: Path) -> None:
    with pytest.raises(BadInput, match="is the input"):
        litesmith.retrain(place / "backbone.tflite", place / "data", place / "backbone.tflite")


def test_nothing_is_left_of_what_fails(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(BadInput, match="cannot be written"):
        retrained(place)
    assert not (place / "out.tflite").exists()
    assert not list(place.glob(".litesmith-*"))


def test_a_few_damaged_pictures_are_left_out_and_many_are_refused(place: Path) -> None:
    (place / "data" / "red" / "000.png").write_bytes(b"no picture")
    assert any("left out" in note for note in retrained(place).notes)
    for file in (place / "data" / "blue").iterdir():
        file.write_bytes(b"no picture")
    with pytest.raises(BadInput, match="images cannot be read"):
        retrained(place)
