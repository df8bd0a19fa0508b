"""Files with a label each: from a folder, from folders that are classes, or from a table."""

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from litesmith.data.groups import is_by_folder
from litesmith.data.guess_norm import class_count
from litesmith.data.images import files_below, files_in
from litesmith.data.label_tables import find_table, read_labelled, read_labels
from litesmith.data.preparation import Preparation
from litesmith.errors import BadInput
from litesmith.ir.types import Array, Model
from litesmith.phrases import phrase
from litesmith.tasks.task import read_list
from litesmith.tflite.read_metadata import metadata
from litesmith.tflite.write_metadata import label_line
from litesmith.units import plain, total_text

# The largest number of classes of any model; a larger label stands for something else.
MOST_CLASSES = 2**31

_LABEL_FILE, _NAMED = "labels.txt", 5


class Numbered(NamedTuple):
    """The class of each file, with notes; whether the numbers are the model's own; and why they
    cannot be the model's classes.
    """

    classes: Array | None
    notes: tuple[str, ...] = ()
    settled: bool = False
    misfit: str = ""


class ListedFiles(NamedTuple):
    """Files in order, with the label of each: its class, or what else a table holds."""

    files: list[Path]
    names: list[str]
    labels: Array | None
    found: Numbered


def listed_files(
    source: Path, model: Model, endings: Collection[str], what: str, preparation: Preparation
) -> ListedFiles:
    """Lists the files of a table, of a folder, or of subfolders named by their classes."""
    table = find_table(source)
    if table is not None:
        rows = read_labelled(table, endings, what)
        table_labels = read_labels(rows.labels, class_names(model, preparation), model, table)
        notes = (*rows.notes, *table_labels.notes)
        if table != source:
            notes = (phrase("labels are those of {table}", plain(str(table))), *notes)
        found = Numbered(table_labels.classes, notes, table_labels.settled)
        return ListedFiles(rows.files, rows.names, table_labels.values, found)
    files, owners = list_files(source, endings, what, deep=is_by_folder(preparation.group))
    found = number_classes(source, owners, model) if owners else Numbered(None)
    names = [file.relative_to(source).as_posix() for file in files]
    return ListedFiles(files, names, found.classes, found)


def class_names(model: Model, preparation: Preparation) -> tuple[str, ...]:
    """The names of the model's classes: from the user's file, otherwise from the model."""
    given = preparation.class_names
    return read_list(Path(given)) if given else metadata(model).labels


def list_files(
    folder: Path, endings: Collection[str], what: str, *, deep: bool = False
) -> tuple[list[Path], list[str]]:
    """Lists the files with these endings, with the subfolder of each; `deep` also descends into
    subfolders of these."""
    flat = files_in(folder, endings)
    inside = sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
    look_in = files_below if deep else files_in
    found = [(file, place.name) for place in inside for file in look_in(place, endings)]
    if flat and found:
        raise BadInput(
            "{folder}: has {what} both directly ({name}) and in folders ({found}); keep one kind",
            folder,
            what,
            flat[0].name,
            found[0][1],
        )
    if flat:
        return flat, []
    if not found:
        deeper = next((p.parent.parent for i in inside for p in i.glob("*/*") if p.is_file()), None)
        hint = phrase("; is {deeper} meant?", deeper) if deeper is not None else ""
        raise BadInput(
            "{folder}: no {what} in it or in the folders in it{hint}", folder, what, hint
        )
    return [file for file, _ in found], [owner for _, owner in found]


def number_classes(folder: Path, owners: Sequence[str], model: Model) -> Numbered:
    """Numbers the class of each file: by numeric names, by a list of labels, or by the order of the
    names."""
    used = sorted(set(owners))
    model_labels = metadata(model).labels
    has_numbers = all(name.isdecimal() and int(name) < MOST_CLASSES for name in used)
    # names that are numbers need not be in order
    if has_numbers and not {*used} <= {*model_labels}:
        return Numbered(np.array([int(name) for name in owners], np.int64))
    own = folder / _LABEL_FILE
    text = own.read_text("utf-8", errors="replace") if own.is_file() else ""
    listed = tuple(line.strip() for line in text.splitlines() if line.strip())
    for labels, what in (
        (listed, phrase("in {own}", own)),
        (model_labels, phrase("in the model's label file")),
    ):
        places = _label_places(labels)
        if labels and all(_key(name) in places for name in used):
            numbers = [places[_key(name)] for name in owners]
            note = phrase(
                "classes are numbered as {what}: {used} is {places}",
                what,
                used[0],
                places[_key(used[0])],
            )
            wrong = "" if labels is model_labels else _misfit(folder, labels, model)
            return Numbered(np.array(numbers, np.int64), (note,), labels is model_labels, wrong)
    folders = sorted(p.name for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
    # An empty folder counts only where this makes as many classes as the model has.
    named = folders if len(folders) == class_count(model) else used
    places = {name: place for place, name in enumerate(named)}
    note = phrase("classes are numbered in the order of their names: {named} is 0", named[0])
    classes = np.array([places[name] for name in owners], np.int64)
    return Numbered(classes, (note,), misfit=_misfit(folder, named, model))


def _misfit(folder: Path, names: Sequence[str], model: Model) -> str:
    """Why classes with these names cannot be the model's; "" where they may be."""
    count, model_labels = class_count(model), metadata(model).labels
    strange = (
        [name for name in names if _key(name) not in _label_places(model_labels)]
        if model_labels
        else []
    )
    if not strange and (count is None or len(names) in (count, count - 1)):
        return ""
    known = (
        phrase("{count} ({names})", total_text(len(model_labels)), shorten_names(model_labels))
        if model_labels
        else total_text(count or 0)
    )
    return phrase(
        "data {folder}: its {count} classes ({names}) are not the {known} of the model; name the "
        "folders as the model's labels or by their numbers, list the model's labels in {file}, or "
        "make a model of these classes with `litesmith retrain`",
        folder,
        total_text(len(names)),
        shorten_names(strange or names),
        known,
        folder / _LABEL_FILE,
    )


def shorten_names(names: Sequence[str]) -> str:
    """The first few names, and the number of further ones."""
    shown = ", ".join(plain(name) for name in names[:_NAMED])
    more = len(names) - _NAMED
    return phrase("{shown} and {count} more", shown, total_text(more)) if more > 0 else shown


def _label_places(labels: Sequence[str]) -> dict[str, int]:
    """The number of each label by its name. A label with several names, such as `tench, Tinca
    tinca`, is listed under each name that no other label has."""
    places = {_key(label): place for place, label in enumerate(labels)}
    parts = [(_key(part), n) for n, label in enumerate(labels) for part in label.split(",")]
    counts = Counter(part for part, _ in parts)
    return {part: n for part, n in parts if counts[part] == 1 and part} | places


def _key(name: str) -> str:
    """A name in the form of a list of labels, in lower case."""
    return label_line(name).casefold().replace("_", " ")
