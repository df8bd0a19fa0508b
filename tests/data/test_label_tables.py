"""Tables of files and labels, and of numbers, give what folders and arrays of the same do."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from litesmith.accuracy.evaluate import evaluate_all
from litesmith.data.preparation import Preparation
from litesmith.data.sources import open_data
from litesmith.errors import BadInput
from litesmith.ir.build import Builder
from litesmith.ir.types import Model

COLOURS = ("red", "green", "blue")
UNIT = Preparation(norm="unit", crop=0.0)


def by_colour(classes: int = 3) -> Model:
    b = Builder()
    mean = b.op("MEAN", b.input("image", (1, 8, 8, 3)), [1, 2])
    return b.model(b.op("FULLY_CONNECTED", mean, np.eye(classes, 3, dtype=np.float32) * 3, None))


def summing(columns: int = 4) -> Model:
    b = Builder()
    x = b.input("v", (1, columns))
    return b.model(b.op("FULLY_CONNECTED", x, np.ones((1, columns), np.float32), None))


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    (tmp_path / "images").mkdir()
    random = np.random.default_rng(0)
    for number in range(9):
        pixels = random.integers(0, 60, (8, 8, 3)).astype(np.uint8)
        pixels[..., number % 3] = 200 + number
        Image.fromarray(pixels).save(tmp_path / "images" / f"{number}.png")
    (tmp_path / "classes.txt").write_text("\n".join(COLOURS))
    return tmp_path


def table(folder: Path, name: str, head: tuple[str, str], labels: list[str]) -> Path:
    rows = [head, *((f"images/{n}.png", label) for n, label in enumerate(labels))]
    between = "\t" if name.endswith(".tsv") else ","
    (folder / name).write_text("\n".join(between.join(row) for row in rows))
    return folder / name


def score(source: Path, model: Model, metric: str, **more: str) -> float:
    preparation = Preparation(norm="unit", crop=0.0, **more)  # pyright: ignore[reportArgumentType]
    data = open_data(source, model, preparation=preparation)
    return evaluate_all([model], data, metric=metric)[0].value


@pytest.mark.parametrize(
    ("name", "head"),
    [("a.csv", ("file", "label")), ("a.tsv", ("image", "class")), ("a.csv", ("Path", "Target"))],
)
@pytest.mark.parametrize("is_named", [False, True])
def test_classes_by_number_or_name(
    pictures: Path, name: str, head: tuple[str, str], is_named: bool
) -> None:
    labels = [COLOURS[n % 3] if is_named else str(n % 3) for n in range(9)]
    given = table(pictures, name, head, labels)
    names = {"class_names": str(pictures / "classes.txt")} if is_named else {}
    assert score(given, by_colour(), "auto", **names) == 1.0


def test_real_numbers_make_a_regression(pictures: Path) -> None:
    model = by_colour(1)
    reds = [np.asarray(Image.open(pictures / f"images/{n}.png"))[..., 0] for n in range(9)]
    labels = [f"{3 * red.mean() / 255 + 0.125:.6f}" for red in reds]
    given = table(pictures, "real.csv", ("file", "value"), labels)
    assert score(given, model, "auto") == pytest.approx(0.125, abs=1e-4)


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_several_labels_are_zeros_and_ones(pictures: Path, ending: str) -> None:
    several = [[COLOURS[n % 3], *(["blue"] if n % 3 == 0 else [])] for n in range(9)]
    if ending == "csv":
        given = table(pictures, "a.csv", ("file", "labels"), ["|".join(s) for s in several])
    else:
        rows = [{"file": f"images/{n}.png", "tags": s} for n, s in enumerate(several)]
        given = pictures / "a.jsonl"
        given.write_text("\n".join(map(json.dumps, rows)))
    names = str(pictures / "classes.txt")
    data = open_data(given, by_colour(), preparation=Preparation(class_names=names, norm="unit"))
    found = [sample.label for sample in data]
    wanted = [[[float(colour in row) for colour in COLOURS]] for row in several]
    assert np.array_equal(np.array(found), wanted)
    assert 0 < score(given, by_colour(), "auto", class_names=names) < 1


def test_a_folder_may_hold_its_table(pictures: Path) -> None:
    labels = [str(n % 3) for n in range(9)]
    table(pictures, "metadata.csv", ("file_name", "label"), labels)
    data = open_data(pictures, by_colour(), preparation=UNIT)
    assert any("metadata.csv" in note for note in data.notes)
    assert [int(sample.label[0]) for sample in data if sample.label is not None] == [
        int(label) for label in labels
    ]


def test_files_that_are_missing_are_counted(pictures: Path) -> None:
    given = table(pictures, "a.csv", ("file", "label"), [str(n % 3) for n in range(12)])
    data = open_data(given, by_colour(), preparation=UNIT)
    assert len(list(data)) == 9
    assert any("not there: 3, first images/9.png" in note for note in data.notes)


def test_rows_of_numbers(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(0, 1, (20, 4)).round(3)
    lines = [",".join(map(str, [*row, row.sum() + 0.5])) for row in x]
    (tmp_path / "a.csv").write_text("\n".join(["a,b,c,d,y", *lines]))
    model = summing()
    data = open_data(tmp_path / "a.csv", model)
    assert np.allclose([sample.inputs[0][0] for sample in data], x, atol=1e-6)
    assert evaluate_all([model], data)[0].value == pytest.approx(0.5, abs=1e-4)


BAD = [
    ("file,label\nnone.png,0", "none of its 1 images is there, first none.png"),
    ("file,label\n/etc/passwd,0", "none of its 1 images is there"),
    ("file,label\nimages/0.png,red\nimages/1.png,\n", "item 2 has no label"),
    ("file,label\nimages/0.png,pink\nimages/1.png,grey", "none of its classes .*--class-names"),
    ("file,label\nimages/0.png,7|8", "the class 7 is none of the model's 3"),
    ("file,note\nimages/0.png,x", "a column file and a column label are needed"),
    ("a,b\n1,2", r"the input 'image' takes 192 numbers \(a table of files has a column file\)"),
    ("file,label\nimages/0.png", "row 2 has 1 columns; the first has 2"),
    ("file,label\nimages/0.png,1|" + "1" * 5000, "none of its classes .*--class-names"),
    (f"file,label\n{'a' * 300}.png,0", "none of its 1 images is there"),
    ("", "no rows in it"),
]


@pytest.mark.parametrize(("text", "told"), BAD)
def test_bad_tables_are_named(pictures: Path, text: str, told: str) -> None:
    (pictures / "bad.csv").write_text(text)
    with pytest.raises(BadInput, match=told):
        open_data(pictures / "bad.csv", by_colour(), preparation=UNIT)


@pytest.mark.parametrize(
    ("second", "told"),
    [
        ({"label": 1}, "not there: 1, first"),
        ({}, "not there: 1, first"),
        ({"file": "images/1.png"}, "item 2 has no label"),
        ({"file": "a" * 300, "label": 1}, "not there: 1, first"),
    ],
)
def test_rows_of_json_need_not_have_every_column(
    pictures: Path, second: dict[str, object], told: str
) -> None:
    rows = [{"file": "images/0.png", "label": 1}, second]
    (pictures / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    try:
        said = open_data(pictures / "a.jsonl", by_colour(), preparation=UNIT).notes
    except BadInput as error:
        said = (str(error),)
    assert any(told in one for one in said)


@pytest.mark.parametrize(
    ("missing", "told"), [("b", "row 2, column b: '' is no number"), ("y", "item 2 has no label")]
)
def test_a_number_that_a_row_of_json_lacks_is_named(
    tmp_path: Path, missing: str, told: str
) -> None:
    row = {"a": 1, "b": 2, "c": 3, "d": 4, "y": "red"}
    rows = [row, {name: value for name, value in row.items() if name != missing}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(BadInput, match=told):
        open_data(tmp_path / "a.jsonl", summing())


def test_a_cell_that_is_no_number_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b,c,d\n1,2,3,4\n1,2,x,4")
    with pytest.raises(BadInput, match="row 2, column c: 'x' is no number"):
        open_data(tmp_path / "a.csv", summing())
