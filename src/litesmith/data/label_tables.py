"""Tables of labels: each row names a file and its label, or holds numbers for a model's input."""

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from litesmith.data.guess_norm import class_count
from litesmith.errors import BadInput
from litesmith.ir.types import Array, Model
from litesmith.operating_system import is_there
from litesmith.phrases import phrase
from litesmith.tasks.class_names import match_classes
from litesmith.tasks.texts import ENDINGS, ending, read_records
from litesmith.units import plain, total_text

FILES = (
    *("file", "file_name", "filename", "path", "image", "image_path", "img", "picture"),
    *("audio", "wav", "clip"),
)
LABELS = (
    *("label", "labels", "class", "classes", "target", "targets", "category", "tags", "y"),
    *("value", "score"),
)

# The names of tables in a folder of files.
_NAMES = ("labels", "metadata")

# The largest value of an input or label, which float32 must hold.
_LARGEST = float(np.finfo(np.float32).max)

# The separators of several labels in one row.
_BETWEEN = re.compile(r"[|;]")

Record = Mapping[str, str]


class TableLabels(NamedTuple):
    """The labels of a table.

    values   one per row: a class number, a real number, or zeros and ones for every class
    classes  class numbers; None where the labels are something else
    settled  True where the classes are matched with the model's own by name
    """

    values: Array
    classes: Array | None = None
    notes: tuple[str, ...] = ()
    settled: bool = False


class LabelledFiles(NamedTuple):
    """The files of a table that exist, with their labels."""

    files: list[Path]
    names: list[str]
    labels: list[str]
    notes: tuple[str, ...] = ()


def is_table(path: Path) -> bool:
    """Whether a path names a table."""
    return ending(path) in ENDINGS and path.is_file()


def find_table(source: Path) -> Path | None:
    """The table of files and labels at a path, or in a folder."""
    if is_table(source):
        return source
    places = [source / f"{name}{end}" for name in _NAMES for end in ENDINGS]
    tables = (place for place in places if source.is_dir() and place.is_file())
    return next((table for table in tables if _columns(read_records(table))), None)


def first_file(table: Path) -> Path | None:
    """The first file that a table names; None for a table that names no files."""
    records = read_records(table)
    column = _column(records, FILES)
    return Path(records[0][column]) if column else None


def _column(records: Sequence[Record], wanted: Collection[str]) -> str:
    """The column with one of these names; "" where there is none."""
    names = {name.casefold().strip(): name for name in records[0]} if records else {}
    return next((names[name] for name in wanted if name in names), "")


def _cell_text(record: Record, column: str) -> str:
    """The text of a row in a column; "" where a row of JSON lacks the column."""
    return record.get(column, "").strip()


def _columns(records: Sequence[Record]) -> tuple[str, str] | None:
    file, label = _column(records, FILES), _column(records, LABELS)
    return (file, label) if file and label else None


def read_labelled(table: Path, endings: Collection[str], what: str) -> LabelledFiles:
    """Reads the files that a table names, beside it or in folders there, with their labels."""
    records = read_records(table)
    columns = _columns(records)
    if columns is None:
        raise BadInput(
            "{path}: has the columns {names}; a column {first} and a column {second} are needed",
            plain(str(table)),
            ", ".join(map(plain, records[0])) if records else "none",
            FILES[0],
            LABELS[0],
        )
    pairs = [(_cell_text(record, columns[0]), _cell_text(record, columns[1])) for record in records]
    found = [(_find(table.parent, name, endings), name, label) for name, label in pairs]
    kept = [(path, name, label) for path, name, label in found if path is not None]
    lost = [name for path, name, _ in found if path is None]
    if not kept:
        raise BadInput(
            "{table}: none of its {count} {what} is there, first {name}; file names count from the "
            "table's folder",
            plain(str(table)),
            total_text(len(pairs)),
            what,
            plain(lost[0]) if lost else "",
        )
    note = phrase(
        "{what} of the table that are not there: {count}, first {name}",
        what,
        total_text(len(lost)),
        plain(lost[0]) if lost else "",
    )
    files, names, labels = ([row[n] for row in kept] for n in range(3))
    return LabelledFiles(files, names, labels, (note,) if lost else ())  # pyright: ignore[reportArgumentType]


def _find(folder: Path, name: str, endings: Collection[str]) -> Path | None:
    """A file by its name in a table; never outside the table's folder."""
    if not name or Path(name).is_absolute() or ".." in Path(name).parts:
        return None
    places = [folder / name, folder / "images" / name]
    places += [folder / f"{name}{end}" for end in sorted(endings)]
    return next((p for p in places if p.suffix.lower() in endings and is_there(p)), None)


def read_labels(
    texts: Sequence[str], names: Sequence[str], model: Model, source: Path
) -> TableLabels:
    """Reads the labels of a table: class numbers, real numbers, names of classes, or several of
    these per row with | or ; between them. `names` are the model's own, where it has names."""
    numbers = [_number(label) for label in texts]
    if all(number is not None for number in numbers):
        values = np.array(numbers, np.float64)
        if (values == np.floor(values)).all() and (values >= 0).all() and (values < 2**31).all():
            whole = values.astype(np.int64)
            return TableLabels(whole, whole)
        return TableLabels(values.astype(np.float32))
    if any(_BETWEEN.search(label) for label in texts):
        return _several(texts, names, model, source)
    empty = next((place for place, label in enumerate(texts) if not label), None)
    if empty is not None:
        raise BadInput("{path}: item {number} has no label", plain(str(source)), empty + 1)
    places, notes = _places(sorted(set(texts)), names, model, source)
    classes = np.array([places[label] for label in texts], np.int64)
    return TableLabels(classes, classes, notes, bool(names))


def _several(texts: Sequence[str], names: Sequence[str], model: Model, source: Path) -> TableLabels:
    """A row of zeros and ones for each item, with one place per class."""
    rows = [[part.strip() for part in _BETWEEN.split(label) if part.strip()] for label in texts]
    used = sorted({part for row in rows for part in row})
    if all(re.fullmatch(r"\d{1,9}", part) for part in used):
        places, notes = {part: int(part) for part in used}, ()
    else:
        places, notes = _places(used, names, model, source)
    count = class_count(model) or 1 + max(places.values())
    strange = next((part for part, place in places.items() if place >= count), None)
    if strange is not None:
        raise BadInput(
            "{path}: the class {name} is none of the model's {count}",
            plain(str(source)),
            plain(strange),
            count,
        )
    values = np.zeros((len(rows), count), np.uint8)
    for place, row in enumerate(rows):
        values[place, [places[part] for part in row]] = 1
    return TableLabels(values, None, notes, bool(names))


def _places(
    used: Sequence[str], names: Sequence[str], model: Model, source: Path
) -> tuple[dict[str, int], tuple[str, ...]]:
    """The model's number for each class."""
    found = match_classes(used, names, class_count(model) or len(used), plain(str(source)))
    pairs = zip(used, found.numbers, strict=True)
    places = {name: place for name, place in pairs if place is not None}
    missing = [name for name in used if name not in places]
    if missing:
        raise BadInput(
            "{source}: the class {name} is none of the model's",
            plain(str(source)),
            plain(missing[0]),
        )
    return places, found.notes


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) <= _LARGEST and "_" not in text else None


def table_arrays(
    table: Path, model: Model, names: Sequence[str]
) -> tuple[dict[str, Array], TableLabels | None]:
    """The rows of numbers of a table for the model's only input, with their labels where a column
    has them."""
    if len(model.main.inputs) != 1:
        raise BadInput(
            "{table}: a table of numbers is for a model with one input; this one has {count}; give "
            "an .npz with their names",
            plain(str(table)),
            len(model.main.inputs),
        )
    tensor = model.main.inputs[0]
    size = tensor.elements // max(1, tensor.shape[0] if len(tensor.shape) > 1 else 1)
    records = read_records(table)
    if not records:
        raise BadInput("{source}: no rows in it", plain(str(table)))
    label = _column(records, LABELS)
    columns = [name for name in records[0] if name != label]
    if len(columns) != size:
        raise BadInput(
            "{table}: has {count} columns beside its label; the input {name!r} takes {size} "
            "numbers (a table of files has a column {file})",
            plain(str(table)),
            len(columns),
            plain(tensor.name),
            size,
            FILES[0],
        )
    values = np.array(
        [[_cell(table, n, c, _cell_text(r, c)) for c in columns] for n, r in enumerate(records)]
    )
    shape = tensor.shape[1:] if len(tensor.shape) > 1 else tensor.shape
    arrays = {"x": values.astype(np.float32).reshape(len(records), *shape)}
    if not label:
        return arrays, None
    return arrays, read_labels([_cell_text(r, label) for r in records], names, model, table)


def _cell(table: Path, row: int, column: str, text: str) -> float:
    value = _number(text)
    if value is None:
        raise BadInput(
            "{table}: row {row}, column {column}: {text!r} is no number",
            plain(str(table)),
            row + 1,
            plain(column),
            plain(text),
        )
    return value
