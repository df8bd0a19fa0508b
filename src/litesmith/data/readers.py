"""Readers: every kind of source as numbered items and their labels, before any preparation."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import islice
from math import prod
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

import numpy as np

from litesmith.data.file_lists import MOST_CLASSES, ListedFiles, listed_files
from litesmith.data.images import (
    ENDINGS,
    ResizedImages,
    as_images,
    decode,
    decode_bytes,
    image_fault,
    picture,
    turn_mark,
)
from litesmith.data.preparation import Preparation
from litesmith.errors import BadInput
from litesmith.ir.types import Array, Model, Tensor
from litesmith.phrases import join_and, phrase
from litesmith.tasks.task import Scorer, Words
from litesmith.temporary import temporary_room
from litesmith.type_guards import is_list_or_tuple, is_mapping, is_tuple
from litesmith.units import bytes_text, plain


class Labels(NamedTuple):
    """The class number of each item, or None where labels are something else, with notes."""

    classes: Array | None = None
    notes: tuple[str, ...] = ()


def label_rows(labels: Array, count: int, source: str) -> Array:
    """One label per item: shape (items, …)."""
    if labels.dtype.kind not in "biuf":
        raise BadInput("{source}: labels are {dtype}; give numbers", source, labels.dtype)
    if labels.ndim >= 2 and len(labels) != count and labels.shape[0] * labels.shape[1] == count:
        labels = labels.reshape(count, *labels.shape[2:])
    if labels.ndim == 0 or len(labels) != count:
        given = len(labels) if labels.ndim else 1
        raise BadInput(
            "{source}: {given} labels for {count} items; give one for each", source, given, count
        )
    return labels[:, 0] if labels.shape[1:] == (1,) and labels.dtype.kind in "iu" else labels


def split_label(label: Array, count: int, source: str) -> Array:
    """One label per item, from what a generator yielded beside the inputs."""
    if count == 1 and label.shape[:1] != (1,):
        label = label[None]
    return label_rows(label, count, source)


def joined_labels(labels: Sequence[Array]) -> Array | None:
    """The labels of a generator's items as one array; None where they are maps or differ in
    shape."""
    if not labels or labels[0].ndim > 1 or len({label.shape for label in labels}) > 1:
        return None
    return np.stack(labels)


def as_classes(every: Array | None) -> Labels:
    """Class numbers, where every label is a whole number or a row with a single one among zeros."""
    if every is None or every.ndim > 2:
        return Labels()
    if every.ndim == 2 and every.shape[1] == 1:
        every = every[:, 0]
    if every.ndim == 2:
        return _from_one_hot(every)
    if every.dtype.kind in "iu":
        return Labels(every.astype(np.int64))
    if every.dtype.kind != "f" or not ((every >= 0) & (every < MOST_CLASSES)).all():
        return Labels()
    if not (every == np.floor(every)).all():
        return Labels()
    note = phrase("labels are whole numbers stored as {dtype}, taken as class numbers", every.dtype)
    return Labels(every.astype(np.int64), (note,))


def _from_one_hot(labels: Array) -> Labels:
    if not np.isin(labels, (0, 1)).all() or not (labels.sum(axis=1) == 1).all():
        return Labels()
    note = phrase("labels are one-hot rows, taken as class numbers")
    return Labels(labels.argmax(axis=1).astype(np.int64), (note,))


Item = tuple[tuple[Array, ...], Array | None]  # one array for each input, and a label

# A generator that has yielded this many bytes counts as endless.
_MOST_SPOOLED = 16_000_000_000


class ItemCheck(NamedTuple):
    """How to recognise an unusable item before it is used.

    fault  what is wrong with an item, in a few words; "" where nothing is
    what   the sentence for several items: "images cannot be read"
    """

    fault: Callable[[int], str]
    what: str


class Stored(NamedTuple):
    """Items as stored on disk, smaller than their decoded arrays.

    content  the content of an item, by number
    decode   decodes a content, given its name; can be pickled
    """

    content: Callable[[int], bytes]
    decode: Callable[[bytes, str], Array]


@dataclass(frozen=True, eq=False)
class Rows:
    """Numbered items as their source stores them: no batch dimension, nothing scaled.

    names    the origin of each item
    read     reads an item by number; safe in several threads
    digest   the digest of an item's contents, without its label
    classes  the labels, where all are whole numbers; None otherwise
    notes    decisions made for the user
    settled  True where the labels are the model's own class numbers
    check    how to recognise unusable items; None where all are known to be usable
    stored   the items before decoding; None where there is no such form
    columns  the arrays of the source by name, where it has arrays
    misfit   why the classes cannot be the model's; "" where they may be
    resized  True where arrays are resized to the input as image files are
    label    the label of one item, where that is cheaper than reading the item
    task     the name of the items' task; "" for a task outside the table
    scorer   scores the answers of that task
    more     the inputs of further calls, for items longer than the model's input
    averages True where the answer to such an item is the mean over all calls
    words    the texts of the items, where they are texts
    """

    names: Sequence[str]
    read: Callable[[int], Item]
    digest: Callable[[int], str]
    classes: Array | None = None
    notes: tuple[str, ...] = ()
    settled: bool = False
    check: ItemCheck | None = None
    stored: Stored | None = None
    columns: Mapping[str, Array] | None = None
    misfit: str = ""
    resized: bool = False
    label: Callable[[int], Array] | None = None
    task: str = ""
    scorer: Scorer | None = None
    more: Callable[[int], Sequence[tuple[Array, ...]]] | None = None
    averages: bool = False
    words: Words | None = None


def batch_of(model: Model) -> int:
    """The first dimension shared by all inputs; 0 where there is none."""
    if all(len(tensor.shape) == 1 < tensor.elements for tensor in model.main.inputs):
        return 0  # a row of numbers, such as a waveform, is one item
    sizes = {tensor.shape[:1] for tensor in model.main.inputs}
    return sizes.pop()[0] if len(sizes) == 1 and () not in sizes else 0


def image_rows(source: Path, model: Model, preparation: Preparation) -> Rows:
    """Reads a folder of images, folders of images named by their classes, or a table."""
    wanted = picture(model.main.inputs[0])
    if len(model.main.inputs) != 1 or wanted is None:
        shapes = "; ".join(
            phrase("{name!r} of {shape}", plain(t.name), _shape_text(t.dynamic or t.shape))
            for t in model.main.inputs
        )
        raise BadInput(
            "{folder}: images are for a model with one input of the shape of an image; this "
            "one has {shapes}; give an .npz with these names, or module:function",
            source,
            shapes,
        )
    listed = listed_files(source, model, ENDINGS, "images", preparation)
    files = listed.files
    rows = file_rows(
        listed,
        lambda path: decode(path, wanted, preparation),
        image_fault,
        phrase("images cannot be read"),
    )

    def content(index: int) -> bytes:
        return files[index].read_bytes()

    def digest(index: int) -> str:
        held = content(index)
        return sha256(turn_mark(held) + held).hexdigest()

    stored = Stored(content, partial(decode_bytes, wanted=wanted, preparation=preparation))
    return replace(rows, digest=digest, stored=stored)


def file_rows(
    listed: ListedFiles,
    decode: Callable[[Path], Array],
    fault: Callable[[Path], str],
    unusable: str,
    salt: str = "",
) -> Rows:
    """Files as items; `salt` is part of the digest, because it too decides what is decoded."""
    files, labels, found = listed.files, listed.labels, listed.found

    def read(index: int) -> Item:
        return (decode(files[index]),), None if labels is None else labels[index]

    def fault_of(index: int) -> str:
        return fault(files[index])

    def digest(index: int) -> str:
        return sha256(salt.encode() + files[index].read_bytes()).hexdigest()

    return Rows(
        listed.names,
        read,
        digest,
        found.classes,
        found.notes,
        found.settled,
        ItemCheck(fault_of, unusable),
        misfit=found.misfit,
    )


def array_rows(
    arrays: Mapping[str, Array], model: Model, source: str, resizing: Preparation | None = None
) -> Rows:
    """Reads arrays whose first dimension counts the items: named as the inputs, or `x`; labels in
    `y`.

    With `resizing`, images of another size than the input's are resized as image files are.
    """
    pairs = _match_arrays(arrays, model, source)
    columns = [_column(t, a, model, source, resizing) for t, a in pairs]
    counts = [len(column) for column in columns]
    if len(set(counts)) > 1:
        raise BadInput(
            "{source}: its inputs have {counts} items",
            source,
            join_and([str(count) for count in counts]),
        )
    if not counts[0]:
        raise BadInput("{source}: no items in it", source)
    labels = label_rows(arrays["y"], counts[0], source) if "y" in arrays else None
    classes, notes = as_classes(labels)
    given = [c.items if isinstance(c, ResizedImages) else c for c in columns]
    resize_notes = [_describe_resize(c, source) for c in columns if isinstance(c, ResizedImages)]

    def read(index: int) -> Item:
        return tuple(c[index] for c in columns), None if labels is None else labels[index]

    return Rows(
        [phrase("row {index}", index) for index in range(counts[0])],
        read,
        lambda index: contents_digest(c[index] for c in given),
        classes,
        (*notes, *resize_notes),
        columns=arrays,
        resized=bool(resize_notes),
    )


def _column(
    tensor: Tensor, array: Array, model: Model, source: str, resizing: Preparation | None
) -> Array | ResizedImages:
    """The items for one input, resized where requested and where they are images."""
    try:
        return as_items(tensor, array, model, source)
    except BadInput:
        wanted, images = picture(tensor), as_images(array)
        if resizing is None or wanted is None or images is None:
            raise
        return ResizedImages(images, wanted, resizing)


def _describe_resize(column: ResizedImages, source: str) -> str:
    (_, *sizes), (height, width, channels, _) = column.items.shape, column.wanted
    before = _shape_text(sizes)
    after = _shape_text((height or sizes[0], width or sizes[1], channels))
    note = phrase(
        "{source}: images of {before} are made {after}, as image files are", source, before, after
    )
    if sizes[2] < channels:
        return phrase("{told}; grey is repeated to three channels", note)
    return note


def contents_digest(arrays: Iterable[Array]) -> str:
    """A digest that is equal for equal arrays of equal types and shapes."""
    total = sha256()
    for array in arrays:
        total.update(f"{array.dtype.str}{array.shape}".encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


def _match_arrays(
    arrays: Mapping[str, Array], model: Model, source: str
) -> list[tuple[Tensor, Array]]:
    """Pairs each input with its array."""
    inputs = model.main.inputs
    if len(inputs) == 1 and "x" in arrays:
        return [(inputs[0], arrays["x"])]
    signature = next((s for s in model.signatures if s.graph == 0), None)
    aliases = {t: name for name, t in signature.inputs} if signature is not None else {}
    pairs: list[tuple[Tensor, Array]] = []
    for tensor in inputs:
        names = (tensor.name, aliases.get(tensor, ""), tensor.name.removesuffix(":0"))
        found = next((arrays[name] for name in names if name in arrays), None)
        if found is None:
            wanted = "x" if len(inputs) == 1 else ", ".join(aliases.get(t, t.name) for t in inputs)
            has = ", ".join(map(plain, arrays)) or "nothing"
            raise BadInput(
                "{source}: needs {wanted} (and y for labels); it has {has}",
                source,
                plain(wanted),
                has,
            )
        pairs.append((tensor, found))
    return pairs


def as_items(tensor: Tensor, array: Array, model: Model, source: str) -> Array:
    """An array with one, some or grouped items of an input: shape (items, …)."""
    if array.dtype.kind not in "biufSU":
        raise BadInput(
            "{source}: input {name!r} is an array of {dtype}; give numbers",
            source,
            plain(tensor.name),
            array.dtype,
        )
    dims = tensor.dynamic or tensor.shape
    item = dims[1:] if batch_of(model) else dims
    forms = [array, array[..., None]] if item[-1:] == (1,) else [array]
    # a batch of one, where other arrays have none
    if not batch_of(model) and item[:1] == (1,) and array.ndim:
        forms.append(array[:, None])
    for given in forms:
        ahead = given.ndim - len(item)
        most = 2 if batch_of(model) else 1
        if 0 <= ahead <= most and _fits(given.shape[ahead:], item):
            return given.reshape(prod(given.shape[:ahead]), *given.shape[ahead:])
    shown = array.shape[max(0, array.ndim - len(item)) :]
    images = (
        phrase(", or give a folder of images, which are resized here") if picture(tensor) else ""
    )
    raise BadInput(
        "{source}: data has {shape}, the model's input {name!r} wants {shape2}; resize the "
        "data{images}",
        source,
        _shape_text(shown),
        plain(tensor.name),
        _shape_text(item),
        images,
    )


def _fits(shape: Sequence[int], item: Sequence[int]) -> bool:
    return len(shape) == len(item) and all(w in (-1, d) for d, w in zip(shape, item, strict=True))


def _shape_text(shape: Sequence[int]) -> str:
    return "×".join("any" if d == -1 else str(d) for d in shape) or phrase("one number")


class _Spool:
    """Items in a temporary file, which disappears with this object."""

    def __init__(self) -> None:
        # Without a buffer, nothing is left to be written when a full disk has ended the work.
        self._file = TemporaryFile(prefix="litesmith-", buffering=0)  # noqa: SIM115
        self._places: list[tuple[int, int, bool]] = []
        self._lock = threading.Lock()
        self.digests: list[str] = []

    def add(self, arrays: Sequence[Array], label: Array | None) -> int:
        """Stores an item; returns the number of bytes stored so far."""
        self._places.append((self._file.tell(), len(arrays), label is not None))
        every = (*arrays, *(() if label is None else (label,)))
        with temporary_room():
            for array in map(np.ascontiguousarray, every):
                np.lib.format.write_array(self._file, array, allow_pickle=False)
        self.digests.append(contents_digest(arrays))
        return self._file.tell()

    def read(self, index: int) -> Item:
        start, count, labelled = self._places[index]
        with self._lock:
            self._file.seek(start)
            every = [
                np.lib.format.read_array(self._file, allow_pickle=False)
                for _ in range(count + labelled)
            ]
        return tuple(every[:count]), every[count] if labelled else None


def spooled_rows(given: Iterable[object], model: Model, source: str, most: int | None) -> Rows:
    """Reads an iterable once into a temporary file; only the first `most` items."""
    spool = _Spool()
    labels: list[Array | None] = []
    for index, value in enumerate(_guard_iteration(given, source)):
        where = phrase("{source}: item {index}", source, index)
        left = None if most is None else most - len(labels)
        for arrays, label in islice(_split(value, model, where), left):
            labels.append(label)
            if spool.add(arrays, label) > _MOST_SPOOLED:
                raise BadInput(
                    "{source}: yields more than {size}; limit it with --samples N",
                    source,
                    bytes_text(_MOST_SPOOLED),
                )
        if most is not None and len(labels) >= most:
            break
    if not labels:
        raise BadInput("{source}: gives no items", source)
    if len({label is None for label in labels}) > 1:
        raise BadInput(
            "{source}: some items have labels and some have none; give all or none", source
        )
    classes, notes = as_classes(joined_labels([b for b in labels if b is not None]))
    names = [phrase("item {index}", index) for index in range(len(labels))]
    return Rows(names, spool.read, spool.digests.__getitem__, classes, notes)


def _guard_iteration(given: Iterable[object], source: str) -> Iterator[object]:
    """Passes the items on, and reports failures of the user's own code as such."""
    try:
        yield from given
    except Exception as error:
        raise foreign_failure(source, error) from error


def foreign_failure(source: str, error: BaseException) -> BadInput:
    """The error for a failure in the user's function; its cause keeps the traceback."""
    reason = plain(str(error).split("\n")[0])
    return BadInput(
        "{source}: its own code failed with {name}: {reason}", source, type(error).__name__, reason
    )


def _split(value: object, model: Model, where: str) -> Iterable[Item]:
    """The items in one value that a generator gave."""
    inputs, label = _separate_label(value, len(model.main.inputs))
    if is_mapping(inputs):
        named = {str(k): _number_array(v, where) for k, v in inputs.items()}
        label = named.pop("y", None) if label is None else label
        pairs = _match_arrays(named, model, where)
    else:
        listed = inputs if is_list_or_tuple(inputs) else [inputs]
        if len(listed) != len(model.main.inputs):
            raise BadInput(
                "{where}: has {count} arrays, the model {count2} inputs",
                where,
                len(listed),
                len(model.main.inputs),
            )
        arrays = [_number_array(v, where) for v in listed]
        pairs = list(zip(model.main.inputs, arrays, strict=True))
    columns = [as_items(t, a, model, where) for t, a in pairs]
    if len({len(column) for column in columns}) > 1:
        raise BadInput("{where}: its inputs have different numbers of items", where)
    count = len(columns[0])
    labels = None if label is None else split_label(_number_array(label, where), count, where)
    for index in range(count):
        yield tuple(c[index] for c in columns), None if labels is None else labels[index]


def _separate_label(value: object, inputs: int) -> tuple[object, object]:
    """Separates inputs from a label: pairs (x, y), flat tuples of inputs with or without a label,
    TFLite's lists."""
    if not is_tuple(value):
        return value, None
    if len(value) == 2 and isinstance(value[0], str):  # a signature's name and its inputs
        return value[1], None
    if len(value) == 2 and (is_list_or_tuple(value[0]) or is_mapping(value[0])):
        return value[0], value[1]
    if len(value) == inputs + 1:
        return list(value[:-1]), value[-1]
    return list(value), None


def _number_array(value: object, where: str) -> Array:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise BadInput("{where}: not an array ({error})", where, error) from None
    if array.dtype.kind == "O":
        raise BadInput("{where}: {name} is not an array of numbers", where, type(value).__name__)
    return array
