"""The result of a search made again from its recipe.json, to the byte."""

import json
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest

import litesmith
from litesmith.errors import BadInput
from litesmith.search.tuning.replay import GivenAgain, replay
from litesmith.tflite.file import digest, save
from litesmith.tflite.write import to_bytes
from tests.search.choosing.taught import BLINK, examples, write_data, written


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A search that ends with integers, which depend on the data."""
    place = tmp_path_factory.mktemp("replay")
    model, data = written(place)
    write_data(place / "other.npz", examples(60, seed=3))
    litesmith.tune(
        model,
        str(data),
        max_drop="5pt",
        minimize="size",
        runs=BLINK,
        calibrate=str(place / "other.npz"),
        out=place / "out",
    )
    with_recipe(place, "cleanup | quantize | correct")
    return place


def with_recipe(place: Path, text: str) -> None:
    """The same search, had it ended with this recipe."""
    path = place / "out" / "recipe.json"
    facts = json.loads(path.read_bytes())
    facts["recipe"] = text
    path.write_text(json.dumps(facts))


@pytest.fixture
def copied(place: Path, tmp_path: Path) -> Path:
    """The same elsewhere, with its own data."""
    copy = copytree(place, tmp_path / "copy")
    path = copy / "out" / "recipe.json"
    path.write_text(
        path.read_text("utf-8").replace(json.dumps(str(place))[1:-1], json.dumps(str(copy))[1:-1])
    )
    return copy


def test_the_result_is_the_same_each_time(place: Path, tmp_path: Path) -> None:
    made: list[str] = []
    for number in range(2):
        change, _ = replay(place / "out" / "recipe.json", place / "model.tflite")
        out = tmp_path / f"{number}.tflite"
        save(change.model, out)
        made.append(digest(out))
    assert made[0] == made[1]


def test_what_a_search_ships_comes_back_to_the_byte(copied: Path, tmp_path: Path) -> None:
    found = litesmith.tune(
        copied / "model.tflite",
        str(copied / "data.npz"),
        max_drop="5pt",
        minimize="size",
        runs=BLINK,
        out=copied / "own",
    )
    change, wanted = replay(copied / "own" / "recipe.json", copied / "model.tflite")
    assert found.best is not None
    save(change.model, tmp_path / "again.tflite")
    assert (tmp_path / "again.tflite").read_bytes() == found.best.read_bytes()
    assert wanted == digest(found.best)


def test_data_in_another_order_is_the_same_data(copied: Path) -> None:
    before, _ = replay(copied / "out" / "recipe.json", copied / "model.tflite")
    with np.load(copied / "other.npz") as data:
        order = np.random.default_rng(0).permutation(len(data["y"]))
        shuffled = {name: data[name][order] for name in data.files}
    write_data(copied / "other.npz", shuffled)
    with pytest.raises(BadInput, match=r"not opened on the word of a recipe; .* calibrate='"):
        replay(copied / "out" / "recipe.json", copied / "model.tflite")
    again = GivenAgain(calibrate=copied / "other.npz")
    after, _ = replay(copied / "out" / "recipe.json", copied / "model.tflite", again)
    assert to_bytes(before.model) == to_bytes(after.model)


def test_data_that_has_changed_is_refused(copied: Path) -> None:
    write_data(copied / "other.npz", examples(60, seed=4))
    with pytest.raises(BadInput, match="has changed since"):
        replay(copied / "out" / "recipe.json", copied / "model.tflite")
    again = GivenAgain(calibrate=copied / "other.npz")
    with pytest.raises(BadInput, match="has changed since; the result would differ"):
        replay(copied / "out" / "recipe.json", copied / "model.tflite", again)


def test_data_that_is_gone_is_named(copied: Path) -> None:
    (copied / "other.npz").unlink()
    with pytest.raises(BadInput, match=r"other\.npz"):
        replay(copied / "out" / "recipe.json", copied / "model.tflite")


def test_another_model_is_refused(place: Path) -> None:
    with pytest.raises(BadInput, match=r"was found for another model than .*; give that one"):
        replay(place / "out" / "recipe.json", place / "out" / "best.tflite")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is not the recipe.json of a search"),
        (b"[1, 2]", "is not the recipe.json of a search"),
        (b'{"recipe": "cleanup"}', 'has no "schema"'),
        (b"\xff\xfe", "is not the recipe.json of a search"),
    ],
)
def test_a_file_that_is_no_recipe_is_refused(
    place: Path, tmp_path: Path, content: bytes, told: str
) -> None:
    other = tmp_path / "recipe.json"
    other.write_bytes(content)
    with pytest.raises(BadInput, match=told) as no:
        replay(other, place / "model.tflite")
    assert "\n" not in str(no.value)


def test_a_recipe_that_is_not_there_is_refused(place: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        replay(place / "none.json", place / "model.tflite")


def test_data_that_lived_in_a_program_cannot_be_opened_again(tmp_path: Path) -> None:
    model, _ = written(tmp_path)
    found = litesmith.tune(
        model, examples(), max_drop="5pt", minimize="size", runs=BLINK, out=tmp_path / "out"
    )
    assert found.best is not None
    with pytest.raises(BadInput, match="its data lived in a program"):
        replay(tmp_path / "out" / "recipe.json", model)
