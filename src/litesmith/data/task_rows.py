"""Items with more than a class: boxes, masks, transcripts, answers."""

from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from litesmith.data.images import decode, image_fault, letterbox_place, picture, turn_mark
from litesmith.data.preparation import LETTERBOX, Preparation
from litesmith.data.readers import Item, ItemCheck, Rows, contents_digest
from litesmith.errors import BadInput
from litesmith.ir.types import Array, Model
from litesmith.phrases import phrase
from litesmith.tasks.task import Settings, TaskItems
from litesmith.tasks.task_table import recognise, task_named
from litesmith.units import plain


def task_rows(source: Path, model: Model, preparation: Preparation) -> Rows | None:
    """Reads the items of a task: of the requested one, otherwise of the one that suits source and
    model; None where no task suits them."""
    settings = _settings(model, preparation)
    asked = preparation.task
    name = asked or recognise(source, model, settings)
    if not name:
        return None
    task = task_named(name)
    if task.open is None:
        return None
    if not source.exists():
        raise BadInput("{source}: does not exist", plain(str(source)))
    items = task.open(source, model, settings)
    rows = _image_rows(items, model, preparation) if task.item == "image" else _array_rows(items)
    note = phrase("taken for {task}; if that is wrong: --task", task.title)
    notes = items.notes if asked else (note, *items.notes)
    return replace(rows, notes=notes, task=name, scorer=items.scorer)


def squash(preparation: Preparation) -> Preparation:
    """The preparation of images whose positions matter: the whole image in the input's size."""
    return replace(preparation, crop=0.0)


def shows_images(task: str) -> bool:
    """Whether the items of a task are images."""
    return bool(task) and task_named(task).item == "image"


def _settings(model: Model, preparation: Preparation) -> Settings:
    wanted = picture(model.main.inputs[0]) if len(model.main.inputs) == 1 else None
    size = None if wanted is None else (wanted.height, wanted.width)
    words_and_layout = (
        preparation.decode,
        preparation.class_names,
        preparation.vocab,
        preparation.features,
    )
    return Settings(*words_and_layout, size, preparation.rate)


def _image_rows(items: TaskItems, model: Model, preparation: Preparation) -> Rows:
    wanted = picture(model.main.inputs[0])
    assert wanted is not None, "a task of images is for a model that takes one"
    whole = squash(preparation)
    files, sizes = items.files, items.sizes or (None,) * len(items.files)

    def read(index: int) -> Item:
        return (decode(files[index], wanted, whole, sizes[index]),), label(index)

    def label(index: int) -> Array:
        if whole.resize != LETTERBOX:
            return items.label(index)
        return items.placed(items.label(index), letterbox_place(files[index], wanted, sizes[index]))

    def digest(index: int) -> str:
        content = files[index].read_bytes()
        return sha256(turn_mark(content, sizes[index]) + content).hexdigest()

    def fault(index: int) -> str:
        return image_fault(files[index])

    check = ItemCheck(fault, phrase("images cannot be read"))
    return Rows(items.names, read, digest, check=check, label=label)


def _array_rows(items: TaskItems) -> Rows:
    arrays = _given(items)

    def read(index: int) -> Item:
        return arrays(index), items.label(index)

    def digest(index: int) -> str:
        return contents_digest(arrays(index))

    is_settled = items.classes is not None
    return Rows(
        items.names,
        read,
        digest,
        items.classes,
        settled=is_settled,
        label=items.label,
        more=items.more,
        words=items.words,
    )


def _given(items: TaskItems) -> Callable[[int], tuple[Array, ...]]:
    assert items.arrays is not None, "a task whose items are no files makes arrays of them"
    return items.arrays
