"""`open_data`: turns whatever a user has into samples that a model can run.

An .npy is mapped, images are decoded on demand, and a generator is read once into a temporary file;
the members of an .npz are loaded into memory.
"""

import importlib
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from litesmith.arguments import argument
from litesmith.data.audio import audio_rows, has_audio
from litesmith.data.file_lists import class_names
from litesmith.data.groups import NONE as NO_GROUPS
from litesmith.data.groups import Grouping, Sketch, sketch, stated_groups
from litesmith.data.guess_by_task import guess_by_task
from litesmith.data.guess_norm import (
    MOST_TRIED,
    Choice,
    TriedItems,
    from_model,
    guess,
    norms_to_try,
    possible_offsets,
    right_offset,
    tried_count,
    with_norm,
)
from litesmith.data.images import in_parallel, picture
from litesmith.data.label_tables import first_file, is_table, table_arrays
from litesmith.data.preparation import Preparation
from litesmith.data.readers import (
    Item,
    Rows,
    array_rows,
    batch_of,
    foreign_failure,
    image_rows,
    spooled_rows,
)
from litesmith.data.samples import Data, Items, Sample, are_pixels, is_real, prepare_item
from litesmith.data.task_rows import shows_images, squashed, task_rows
from litesmith.data.unusable_items import ChosenItems, only_usable
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

UNTOUCHED = Preparation()


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples made from rows: the chosen items, grouped by the model's batch, prepared when read.

    others    the preparation of single inputs, by number, where the model states another one
    grouping  which items are copies; None where every item counts as independent
    """

    source: str
    rows: Rows
    chosen: tuple[int, ...]
    model: Model
    preparation: Preparation
    notes: tuple[str, ...] = ()
    others: tuple[tuple[int, Preparation], ...] = ()
    grouping: Grouping | None = None

    @property
    def batch(self) -> int:
        """The number of items in a sample; 1 where the inputs have no batch dimension."""
        return batch_of(self.model) or 1

    def __len__(self) -> int:
        return len(self.chosen) // self.batch

    def __iter__(self) -> Iterator[Sample]:
        return in_parallel(self._sample, self._groups())

    def one_by_one(self) -> Iterator[Sample]:
        """The samples, read by this thread alone, where every core has work of its own."""
        return map(self._sample, self._groups())

    def _groups(self) -> list[tuple[int, ...]]:
        return [self.chosen[i * self.batch :][: self.batch] for i in range(len(self))]

    def spread(self, count: int) -> "Samples":
        """At most `count` of the samples, evenly spread; the others are not read."""
        return self.at(_evenly(range(len(self)), count))

    def at(self, places: Sequence[int]) -> "Samples":
        """The samples at these places; the others are not read."""
        chosen = [self.chosen[p * self.batch + i] for p in places for i in range(self.batch)]
        return replace(self, chosen=tuple(chosen))

    @property
    def names(self) -> tuple[str, ...]:
        """The origin of each item."""
        return tuple(self.rows.names[index] for index in self.chosen)

    @property
    def classes(self) -> Array | None:
        """The model's class of each item, where the labels are class numbers."""
        if self.rows.classes is None:
            return None
        return self.rows.classes[list(self.chosen)] + (self.preparation.label_offset or 0)

    @cached_property
    def digests(self) -> tuple[str, ...]:
        """A digest of each item's contents, independent of preparation and label."""
        return tuple(in_parallel(self.rows.digest, self.chosen))

    @cached_property
    def labelled_digests(self) -> tuple[str, ...]:
        """A digest of each item's contents and label, independent of the preparation."""
        pairs = zip(self.digests, self._label_digests(), strict=True)
        return tuple(f"{item} {label}" for item, label in pairs)

    @property
    def items(self) -> Items:
        return Items(
            self.batch,
            self.preparation,
            self.classes,
            self,
            groups=lambda: self.groups,
            misfit=self.rows.misfit,
            task=self.rows.task or self.preparation.task,
            scorer=self.rows.scorer,
        )

    @property
    def groups(self) -> NDArray[np.int64]:
        """The group of each item."""
        if self.grouping is None:
            return np.arange(len(self.chosen))
        return self.grouping.of(self.chosen)

    @property
    def digest(self) -> str:
        """Equal for the same items and labels with the same preparation, in any order."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        items = sorted(self.labelled_digests)
        inputs = [f"{t.dtype} {t.dynamic or t.shape}" for t in self.model.main.inputs]
        done = [self.preparation.text, *(f"{place} {other.text}" for place, other in self.others)]
        return sha256("\n".join([*done, *inputs, *items]).encode()).hexdigest()

    def _label_digests(self) -> list[str]:
        if self.rows.classes is not None:
            return [str(self.rows.classes[index]) for index in self.chosen]
        if not self.chosen or self.rows.read(self.chosen[0])[1] is None:
            return [""] * len(self.chosen)
        labels = map(self._label, self.chosen)
        return ["" if b is None else sha256(b.tobytes()).hexdigest() for b in labels]

    def _label(self, index: int) -> Array | None:
        own = self.rows.label
        return self.rows.read(index)[1] if own is None else own(index)

    def _sample(self, group: Sequence[int]) -> Sample:
        items = [self.rows.read(index) for index in group]
        places = range(len(self.model.main.inputs))
        inputs = tuple(
            self._joined(place, [arrays[place] for arrays, _ in items]) for place in places
        )
        labels = [label for _, label in items if label is not None]
        label = np.stack(labels) if labels else None
        if self.rows.classes is not None:
            label = self.rows.classes[list(group)] + (self.preparation.label_offset or 0)
        name = ", ".join(self.rows.names[index] for index in group)
        return Sample(inputs, label, name, self._more(group), self.rows.averages)

    def _more(self, group: Sequence[int]) -> tuple[tuple[Array, ...], ...]:
        """The inputs of further calls for an item that is longer than the model's input."""
        if self.rows.more is None or self.batch > 1:
            return ()
        return tuple(
            tuple(self._joined(place, [array]) for place, array in enumerate(arrays))
            for arrays in self.rows.more(group[0])
        )

    def _joined(self, place: int, items: Sequence[Array]) -> Array:
        tensor = self.model.main.inputs[place]
        made = [prepare_item(tensor, item, self._preparation(place)) for item in items]
        if not batch_of(self.model):
            return made[0]
        if len({one.shape for one in made}) > 1:
            raise BadInput(
                "{source}: the items of a batch of {batch} have different shapes; make them equal",
                self.source,
                self.batch,
            )
        return np.stack(made)

    def _preparation(self, place: int) -> Preparation:
        """The preparation of one input: a normalisation is for images, where there are any."""
        inputs = self.model.main.inputs
        if picture(inputs[place]) is None and any(map(picture, inputs)):
            return UNTOUCHED
        return dict(self.others).get(place, self.preparation)


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

    A text may name code, a path never does: paths found in records are passed as paths.

    `samples` limits the number of samples: the same ones each time, spread over the classes; the
    first ones of a generator, which may be endless. Where there are fewer, a note says so, unless
    nobody asked for that number. With `resizes`, arrays of images are resized to the input, as
    files are.
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
    rows = _with_sketches(_rows(source, name, model, preparation, samples, sizing), model, seen)
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
        preparation = squashed(preparation) if is_squashed else preparation
        preparation = replace(preparation, task=rows.task)
    found = Samples(name, rows, chosen, model, preparation)
    is_folder = is_path(source) and os.path.isdir(source)
    is_decoded = rows.resized or rows.stored is not None
    has_images = is_decoded or (is_folder and not rows.task) or shows_images(rows.task)
    settled = _settled(found, has_images)
    told = (*rows.notes, *notes, *settled.notes)
    grouping = _grouping(rows, chosen, seen, preparation, name)
    return replace(settled, chosen=chosen, notes=told, grouping=grouping)


def _with_sketches(rows: Rows, model: Model, seen: dict[int, Sketch | None]) -> Rows:
    """The same rows, which leave a sketch of every item read, for `Grouping`."""

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
    told = stated_groups(asked, rows.names, rows.columns, source) if asked and not alone else None
    return Grouping(chosen, rows.digest, read, told, alone, seen)


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
            return spooled_rows(_called(users_function(name), name), model, name, most)
        return array_rows(_loaded(path), model, name, sizing)
    if _is_array(source):
        return array_rows({"x": source}, model, name, sizing)
    if is_mapping(source):
        arrays = {str(key): np.asarray(value) for key, value in source.items()}
        return array_rows(arrays, model, name, sizing)
    if callable(source):
        return spooled_rows(_called(source, name), model, name, most)
    if is_iterable(source):
        return spooled_rows(source, model, name, most)
    raise BadInput(
        "{name}: give a folder, an .npz, an .npy, module:function, arrays or a generator", name
    )


def _numbers(table: Path, model: Model, name: str, preparation: Preparation) -> Rows:
    """Reads a table of numbers, with labels where it has them."""
    arrays, told = table_arrays(table, model, class_names(model, preparation))
    if told is None:
        return array_rows(arrays, model, name)
    rows = array_rows(arrays | {"y": told.values}, model, name)
    return replace(rows, notes=(*told.notes, *rows.notes), settled=told.settled)


def _loaded(path: Path) -> dict[str, Array]:
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


def _called(function: Callable[[], object], name: str) -> Iterable[object]:
    try:
        given = function()
    except Exception as error:
        raise foreign_failure(name, error) from error
    if _is_array(given):
        return [given]
    if is_mapping(given) or not is_iterable(given):
        raise BadInput(
            "{name}: gives {name2}; it must give samples one by one", name, type(given).__name__
        )
    return given


def _choose(
    rows: Rows, some: Sequence[int], batch: int, samples: int | None, *, is_asked: bool
) -> ChosenItems:
    """Chooses from some items, in order, and makes the notes about the choice."""
    count = len(some)
    wanted = count if samples is None else samples * batch
    classes = None if rows.classes is None else rows.classes[np.array(some, np.intp)]
    places = _stratified(classes, count, wanted) if wanted < count else range(count)
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


def _stratified(classes: Array | None, count: int, wanted: int) -> list[int]:
    """Chooses `wanted` items, in order: equally many of each class as far as possible."""
    if classes is None:
        return _evenly(range(count), wanted)
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
        chosen += _evenly(by_class, wanted - len(chosen))
        if len(chosen) == wanted:
            break
    return sorted(chosen)


def _evenly(items: Sequence[int], wanted: int) -> list[int]:
    """Chooses `wanted` items, evenly spread; all where there are no more."""
    if wanted >= len(items):
        return list(items)
    return [items[(2 * i + 1) * len(items) // (2 * wanted)] for i in range(wanted)]


def _settled(data: Samples, has_images: bool) -> Samples:
    """A few of the samples with a complete preparation: the user's settings, the model's statement,
    or a guess; their notes name the choices."""
    given = data.preparation if has_images else replace(data.preparation, resize="", crop=0.0)
    few = data.spread(MOST_TRIED)
    pixels = _pixel_inputs(few)
    offsets = _offsets(data)
    notes: tuple[str, ...] = ()
    if pixels and not given.is_chosen:
        choice = from_model(data.model, pixels[0])
        notes = choice.notes if choice is not None else ()
        if choice is None or not choice.preparation.is_chosen:
            choice = _guessed(few, offsets)
            notes += choice.notes
        given = with_norm(given, choice.preparation)
        few = _with_others(few, pixels[1:], given)
    notes += few.notes
    return _with_offset(replace(few, preparation=given, notes=notes), offsets)


def _with_others(few: Samples, places: Sequence[int], usual: Preparation) -> Samples:
    """Adds the normalisation of further images, where the model states another one for them."""
    told = [(place, from_model(few.model, place)) for place in places]
    known = [(place, c) for place, c in told if c is not None and c.preparation.is_chosen]
    names = [plain(few.model.main.inputs[place].name) for place, _ in known]
    return replace(
        few,
        others=tuple((place, with_norm(usual, c.preparation)) for place, c in known),
        notes=tuple(
            phrase("input {n!r}: {notes}", n, c.notes[-1])
            for n, (_, c) in zip(names, known, strict=True)
        ),
    )


def _guessed(few: Samples, offsets: Sequence[int]) -> Choice:
    few = _in_memory(few.spread(tried_count(few.model)))
    wanted = picture(few.model.main.inputs[0])
    if few.rows.scorer is not None and wanted is not None:

        def prepared(name: str) -> list[Sample]:
            norm = with_norm(few.preparation, Preparation(norm=name))
            return list(replace(few, preparation=norm))

        names = list(norms_to_try(wanted))
        choice = guess_by_task(few.model, few.rows.scorer, names, prepared)
        if choice is not None:
            return choice
    pixels = [few.rows.read(index)[0][0] for index in few.chosen]
    classes = None if few.rows.classes is None else few.rows.classes[list(few.chosen)]
    return guess(few.model, TriedItems(pixels, classes), offsets)


def _offsets(data: Samples) -> tuple[int, ...]:
    if data.preparation.label_offset is not None:
        return (data.preparation.label_offset,)
    is_known = data.rows.settled or data.rows.misfit
    return (0,) if is_known else possible_offsets(data.model, data.rows.classes)


def _with_offset(few: Samples, offsets: Sequence[int]) -> Samples:
    offset, notes = offsets[0], few.notes
    if len(offsets) > 1 and few.rows.classes is not None:
        first = few.rows.classes[list(few.chosen[:: few.batch])]
        offset, is_sure = right_offset(few.model, few, first)
        notes += _offset_notes(offset, is_sure, len(first))
    made = replace(few.preparation, label_offset=offset)
    return replace(few, preparation=made, notes=notes)


def _offset_notes(offset: int, is_sure: bool, count: int) -> tuple[str, ...]:
    """Notes about the label offset that was found; none about the usual offset where it is
    certain."""
    told = phrase("the model has one class more than the labels, taken for a background class")
    unsure = "" if is_sure else phrase(", which is not sure (tried on {count} samples)", count)
    if offset:
        return (
            phrase(
                "label offset 1: {told}{unsure}; if that is wrong: --label-offset 0", told, unsure
            ),
        )
    return (
        (phrase("label offset 0{unsure}; if that is wrong: --label-offset 1", unsure),)
        if unsure
        else ()
    )


def _in_memory(data: Samples) -> Samples:
    """The same samples with all items read at once, several at a time."""
    kept = dict(zip(data.chosen, in_parallel(data.rows.read, data.chosen), strict=True))
    return replace(data, rows=replace(data.rows, read=kept.__getitem__))


def _pixel_inputs(data: Samples) -> list[int]:
    """The numbers of the inputs that take pixels to be scaled."""
    arrays, _ = data.rows.read(data.chosen[0])
    pairs = enumerate(zip(data.model.main.inputs, arrays, strict=True))
    return [place for place, (t, array) in pairs if is_real(t) and are_pixels(t, array)]


def users_function(name: str) -> Callable[..., object]:
    """The function that `module:function` names, found from the current folder."""
    module_name, _, function = name.partition(":")
    if not module_name or module_name.startswith("."):
        raise BadInput(
            "{name}: no module {module_name!r}; say module:function",
            plain(name),
            plain(module_name),
        )
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and f"{module_name}.".startswith(f"{error.name}."):
            raise BadInput(
                "{name}: no module {module_name!r} ({error})",
                plain(name),
                plain(module_name),
                error,
            ) from None
        raise foreign_failure(plain(name), error) from error
    except (Exception, SystemExit) as error:  # foreign code: whatever it raises is not ours
        raise foreign_failure(plain(name), error) from error
    found = getattr(module, function, None)
    if not callable(found):
        raise BadInput(
            "{name}: module {module_name} has no function {function!r}",
            plain(name),
            module_name,
            plain(function),
        )
    return found
