"""Texts are learned from a table, and the file that comes out reads text by itself."""

from pathlib import Path

import numpy as np
import pytest

import litesmith
from litesmith import BadInput, Builder
from litesmith.tflite.file import load, save
from litesmith.tflite.read_metadata import metadata, vocabulary_file
from litesmith.training.teaching.retrain_result import Retrained
from tests.zoo import noise

GOOD, BAD, OTHER = ("fine", "lovely"), ("awful", "dull"), ("film", "was", "the", "a")
WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", *GOOD, *BAD, *OTHER)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    b = Builder()
    ids, mask = b.input("ids", (1, 8), "int32"), b.input("mask", (1, 8), "int32")
    vectors = b.op("GATHER", noise(len(WORDS), 12), ids)
    weighed = b.op("MUL", vectors, b.op("RESHAPE", b.op("CAST", mask, dtype="float32"), [1, 8, 1]))
    save(b.model(b.op("MEAN", weighed, [1])), tmp_path / "backbone.tflite")
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS))
    return tmp_path


def write_table(path: Path, count: int = 40, names: tuple[str, str] = ("bad", "good")) -> Path:
    random = np.random.default_rng(len(path.name))
    lines = ["text\tlabel"]
    for number in range(count):
        own = (BAD, GOOD)[number % 2]
        words = [*random.choice(OTHER, 3), random.choice(own)]
        lines.append(f"{' '.join(random.permutation(words))} {number}\t{names[number % 2]}")
    path.write_text("\n".join(lines) + "\n")
    return path


def retrained(place: Path, data: Path, **more: object) -> Retrained:
    options = {"vocab": str(place / "vocab.txt")} | more
    return litesmith.retrain(place / "backbone.tflite", data, place / "out.tflite", **options)  # pyright: ignore


@pytest.mark.parametrize("names", [("bad", "good"), ("0", "1"), ("3", "7")])
def test_a_table_is_learned_and_the_file_reads_text_without_a_flag(
    place: Path, names: tuple[str, str]
) -> None:
    table = write_table(place / "all.tsv", names=names)
    found = retrained(place, table)
    assert found.classes == names and found.value > 0.85
    made = load(found.out)
    assert metadata(made).labels == names
    words = vocabulary_file(made)
    assert words is not None and words.content == (place / "vocab.txt").read_bytes()
    if names[0] != "3":  # numbers of a table are a model's own classes
        assert litesmith.evaluate(found.out, table).value > 0.85
    again = litesmith.retrain(found.out, table, place / "again.tflite")
    assert again.value > 0.85 and vocabulary_file(load(again.out)) == words


def test_train_and_dev_in_a_folder_are_taken_as_such(place: Path) -> None:
    (place / "data").mkdir()
    write_table(place / "data" / "train.tsv")
    write_table(place / "data" / "dev.tsv", 10)
    found = retrained(place, place / "data")
    assert found.n == 10 and found.learned.data.source.endswith("train.tsv")


def test_the_words_that_decided_are_told(place: Path) -> None:
    table = write_table(place / "all.tsv", 80)
    lied = write_table(place / "mislabelled.tsv", 24, ("good", "bad"))
    found = retrained(place, table, val=lied)
    said_bad = [one for one in found.found.mistakes if one.said == "bad"]
    assert len(said_bad) > 5 and all(one.words for one in found.found.mistakes)
    assert all(max(one.words, key=lambda word: word.weight).word in BAD for one in said_bad)


def test_fine_tuning_keeps_text(place: Path) -> None:
    table = write_table(place / "all.tsv", 60)
    found = retrained(place, table, fine_tune="all", epochs=2)
    assert found.tuned is not None and litesmith.evaluate(found.out, table).value > 0.85


def test_what_is_missing_is_said_in_one_line(place: Path) -> None:
    table = write_table(place / "all.tsv")
    with pytest.raises(BadInput, match="brings no vocabulary"):
        litesmith.retrain(place / "backbone.tflite", table, place / "out.tflite")
    titled = place / "titled.tsv"
    titled.write_text(table.read_text("utf-8").replace("text\tlabel", "title\tlabel"))
    with pytest.raises(BadInput, match="a column text and a column label are needed"):
        retrained(place, titled)
    (place / "one.tsv").write_text("text\tlabel\n" + "a film\tgood\n" * 4)
    with pytest.raises(BadInput, match="one class only, 'good'"):
        retrained(place, place / "one.tsv")
