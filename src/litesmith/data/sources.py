"""`open_data` turns folders, files, functions, arrays and generators into samples for a model.

An .npy is mapped, images are decoded on demand, and a generator is read once into a temporary file;
the members of an .npz are loaded into memory.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from litesmith.arguments import argument
from litesmith.data.audio import audio_rows, has_audio
from litesmith.data.file_lists import class_names
from litesmith.data.groups import NONE as NO_GROUPS
from litesmith.data.groups import Grouping, Sketch, sketch, stated_groups
from litesmith.data.images import in_parallel
from litesmith.data.label_tables import first_file, is_table, table_arrays
from litesmith.data.opened_samples import OpenedSamples, spread_evenly
from litesmith.data.preparation import UNTOUCHED, Preparation
from litesmith.data.readers import (
    Item,
    Rows,
    array_rows,
    batch_of,
    image_rows,
    spooled_rows,
)
from litesmith.data.samples import Data
from litesmith.data.settle_preparation import settle_preparation
from litesmith.data.task_rows import shows_images, squash, task_rows
from litesmith.data.unusable_items import ChosenItems, only_usable
from litesmith.data.user_functions import call_function, users_function
from litesmith.errors import BadInput
from litesmith.ir.types import Array, Model
from litesmith.numeric.array_files import read_arrays
from litesmith.phrases import phrase
from litesmith.type_guards import is_iterable, is_mapping, is_path
from litesmith.units import plain

if TYPE_CHECKING:
    from typing_extensions import TypeIs

Given = (
    str
    | os.PathLike[str]
    | Array
    | Mapping[str, Array]
    | Data
    | Iterable[object]
    | Callable[[], Iterable[object]]
)


def open_data(
    source: Given,
    model: Model,
    *,
    preparation: Preparation = UNTOUCHED,
    samples: int | None = None,
    is_asked: bool = True,
    resizes: bool = False,
) -> Data:
    """Opens samples for a model from a folder, an .npz or .npy, `module:function`, arrays or a
    generator.

    A `str` may name code, a `Path` never does: paths found in records are passed as `Path`.

    `samples` limits the number of samples: the same ones each time, spread over the classes; of a
    generator, which may be endless, the first ones. Where there are fewer, a note says so, unless
    `is_asked` is False. With `resizes`, arrays of images are resized to the input, as files are.
    """
    if samples is not None and samples < 1:
        raise BadInput("{samples}: a number from 1 on is needed", argument("samples", samples))
    if isinstance(source, Data):
        return source
    name = _name(source)
    if not model.main.inputs:
        raise BadInput("{name}: the model has no input to feed", plain(name))
    seen: dict[int, Sketch | None] = {}
    sizing = preparation if resizes else None
    rows = _add_sketches(_rows(source, name, model, preparation, samples, sizing), model, seen)
    batch = batch_of(model) or 1

    def choose(some: Sequence[int]) -> ChosenItems:
        return _choose(rows, some, batch, samples, is_asked=is_asked)

    chosen, notes = only_usable(rows, choose, name)
    if len(chosen) < batch:
        count = len(rows.names)
        raise BadInput(
            "{name}: {count} items, and the model takes {batch} at a time; give more",
            name,
            count,
            batch,
        )
    if rows.task:
        is_squashed = shows_images(rows.task)
        preparation = squash(preparation) if is_squashed else preparation
        preparation = replace(preparation, task=rows.task)
    found = OpenedSamples(name, rows, chosen, model, preparation)
    is_folder = is_path(source) and os.path.isdir(source)
    is_decoded = rows.resized or rows.stored is not None
    has_images = is_decoded or (is_folder and not rows.task) or shows_images(rows.task)
    settled = settle_preparation(found, has_images)
    notes_so_far = (*rows.notes, *notes, *settled.notes)
    grouping = _grouping(rows, chosen, seen, preparation, name)
    return replace(settled, chosen=chosen, notes=notes_so_far, grouping=grouping)


def _add_sketches(rows: Rows, model: Model, seen: dict[int, Sketch | None]) -> Rows:
    """The same rows, which also keep a sketch of every item that is read, for `Grouping`."""

    def read(index: int) -> Item:
        item = rows.read(index)
        if index not in seen:
            seen[index] = sketch(model.main.inputs, item[0])
        return item

    return replace(rows, read=read)


def _grouping(
    rows: Rows,
    chosen: tuple[int, ...],
    seen: dict[int, Sketch | None],
    preparation: Preparation,
    source: str,
) -> Grouping:
    def read(some: Sequence[int]) -> None:
        reading = map(rows.read, some) if rows.check is None else in_parallel(rows.read, some)
        deque(reading, maxlen=0)

    asked = preparation.group
    alone = asked == NO_GROUPS
    user_groups = (
        stated_groups(asked, rows.names, rows.columns, source) if asked and not alone else None
    )
    return Grouping(chosen, rows.digest, read, user_groups, alone, seen)


def _is_array(value: object) -> "TypeIs[Array]":
    return isinstance(value, np.ndarray)


def _name(source: Given) -> str:
    if is_path(source):
        return os.fspath(source)
    return getattr(source, "__name__", "") or phrase("the given {name}", type(source).__name__)


def _rows(
    source: Given,
    name: str,
    model: Model,
    preparation: Preparation,
    samples: int | None,
    sizing: Preparation | None = None,
) -> Rows:
    most = None if samples is None else samples * (batch_of(model) or 1)
    if is_path(source):
        path = Path(source)
        of_task = task_rows(path, model, preparation)
        if of_task is not None:
            return of_task
        if is_table(path) and first_file(path) is None:
            return _numbers(path, model, name, preparation)
        if path.is_dir() or is_table(path):
            read = audio_rows if has_audio(path, model) else image_rows
            return read(path, model, preparation)
        if isinstance(source, str) and not path.exists() and ":" in name:
            return spooled_rows(call_function(users_function(name), name), model, name, most)
        return array_rows(_load_arrays(path), model, name, sizing)
    if _is_array(source):
        return array_rows({"x": source}, model, name, sizing)
    if is_mapping(source):
        arrays = {str(key): np.asarray(value) for key, value in source.items()}
        return array_rows(arrays, model, name, sizing)
    if callable(source):
        return spooled_rows(call_function(source, name), model, name, most)
    if is_iterable(source):
        return spooled_rows(source, model, name, most)
    raise BadInput(
        "{name}: give a folder, an .npz, an .npy, module:function, arrays or a generator", name
    )


def _numbers(table: Path, model: Model, name: str, preparation: Preparation) -> Rows:
    """Reads a table of numbers, with labels where it has them."""
    arrays, labels = table_arrays(table, model, class_names(model, preparation))
    if labels is None:
        return array_rows(arrays, model, name)
    rows = array_rows(arrays | {"y": labels.values}, model, name)
    return replace(rows, notes=(*labels.notes, *rows.notes), settled=labels.settled)


def _load_arrays(path: Path) -> dict[str, Array]:
    """Loads the arrays of an .npy or .npz file; never unpickles anything."""
    if not path.exists():
        raise BadInput(
            "{path}: does not exist; give a folder, an .npz, an .npy or module:function", path
        )
    if path.suffix.lower() not in (".npy", ".npz"):
        raise BadInput(
            "{path}: neither a folder nor an .npz, an .npy or a table (.csv, .tsv, .jsonl); give "
            "one of these",
            path,
        )
    return read_arrays(path)


def _choose(
    rows: Rows, some: Sequence[int], batch: int, samples: int | None, *, is_asked: bool
) -> ChosenItems:
    """Chooses from some items, in order, and makes the notes about the choice."""
    count = len(some)
    wanted = count if samples is None else samples * batch
    classes = None if rows.classes is None else rows.classes[np.array(some, np.intp)]
    places = _choose_by_class(classes, count, wanted) if wanted < count else range(count)
    chosen = [some[place] for place in places]
    notes: list[str] = []
    if samples is not None and is_asked and wanted > count:
        notes.append(
            phrase("{samples} samples asked for; there are {count}", samples, count // batch)
        )
    if len(chosen) % batch:
        notes.append(
            phrase(
                "the model takes {batch} items at a time; the last {count} are left out",
                batch,
                len(chosen) % batch,
            )
        )
        chosen = chosen[: len(chosen) // batch * batch]
    return ChosenItems(tuple(chosen), tuple(notes))


def _choose_by_class(classes: Array | None, count: int, wanted: int) -> list[int]:
    """Chooses `wanted` items, in order: equally many of each class as far as possible."""
    if classes is None:
        return spread_evenly(range(count), wanted)
    rounds: list[list[int]] = []
    seen: dict[int, int] = {}
    for index, number in enumerate(classes.tolist()):
        place = seen[number] = seen.get(number, -1) + 1
        if place == len(rounds):
            rounds.append([])
        rounds[place].append(index)
    chosen: list[int] = []
    for members in rounds:
        by_class = sorted(members, key=lambda i: (classes[i], i))
        chosen += spread_evenly(by_class, wanted - len(chosen))
        if len(chosen) == wanted:
            break
    return sorted(chosen)
