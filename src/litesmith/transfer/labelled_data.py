"""Data with a class for every item; the classes are numbered from 0 without gaps."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from litesmith.data.opened_samples import OpenedSamples
from litesmith.data.preparation import Preparation
from litesmith.data.sources import Given, open_data
from litesmith.errors import BadInput
from litesmith.ir.types import Array, Model
from litesmith.phrases import phrase
from litesmith.tasks.texts import ENDINGS as TABLES
from litesmith.tasks.texts import class_labels, ending, token_inputs
from litesmith.tflite.read_metadata import metadata, vocabulary_file
from litesmith.tflite.write_metadata import describe, label_line, label_lines
from litesmith.type_guards import is_path
from litesmith.units import plain, total_text

# The usual names of the parts of a data set, as folders.
_TRAINING = ("train", "training")
_PROVING = ("val", "valid", "validation", "dev", "test")

# The least number of items in a class: one to learn from, and one to be judged by.
FEWEST = 2

_NAMED = 5


@dataclass(frozen=True, eq=False)
class Labelled:
    """Samples whose labels are the places of `names`."""

    data: OpenedSamples
    names: tuple[str, ...]

    @property
    def labels(self) -> Array:
        """The class of each item."""
        classes = self.data.classes
        assert classes is not None
        return classes

    @property
    def counts(self) -> tuple[int, ...]:
        """How many items each class has."""
        return tuple(np.bincount(self.labels, minlength=len(self.names)).tolist())

    def at(self, places: Iterable[int]) -> "Labelled":
        """Some of the items, in order, as many as fill the model's batches."""
        data = self.data
        chosen = tuple(data.chosen[place] for place in sorted(places))
        whole = len(chosen) // data.batch * data.batch
        return replace(self, data=replace(data, chosen=chosen[:whole]))


class Sources(NamedTuple):
    """The data to learn from, and the data to prove the result on; None where a part of the first
    serves for the proof.
    """

    learned: Given
    proof: Given | None
    notes: tuple[str, ...] = ()


def sources_of(data: Given, proof: Given | None) -> Sources:
    """The two parts of a data set, where its folder holds them as train/ and val/."""
    if not is_path(data) or not Path(data).is_dir():
        return Sources(data, proof)
    inside = {
        p.name.partition(".")[0].lower(): p
        for p in sorted(Path(data).iterdir())
        if p.is_dir() or _is_table(p)
    }
    train = next((inside[name] for name in _TRAINING if name in inside), None)
    val = next((inside[name] for name in _PROVING if name in inside), None)
    if train is None or not (_is_table(train) or _has_folders(train)):
        return Sources(data, proof)
    if proof is None and val is not None:
        return Sources(train, val, (phrase("learned from {train}, judged by {val}", train, val),))
    return Sources(train, proof, (phrase("learned from {train}", train),))


def _is_table(path: Path) -> bool:
    return path.is_file() and ending(path) in TABLES


def _has_folders(folder: Path) -> bool:
    return any(p.is_dir() and not p.name.startswith(".") for p in folder.iterdir())


def open_labelled(
    source: Given, model: Model, preparation: Preparation, samples: int | None = None
) -> Labelled:
    """Opens data with classes of its own; raises BadInput where there is nothing to distinguish."""
    opened = _open_with_classes(source, model, preparation, samples)
    names = _names(opened)
    numbers = {name: place for place, name in enumerate(names)}
    found = _renumber(opened, numbers)
    empty = sorted({*_folders(opened.source)} - {*names})
    if empty:
        note = phrase(
            "{listed_names}: no images in it, so that it is no class", listed_names(empty)
        )
        found = replace(found, notes=(*found.notes, note))
    made = Labelled(found, names)
    _refuse_few(made, samples)
    label_lines(names)
    return made


def open_beside(
    source: Given, model: Model, beside: Labelled, samples: int | None = None
) -> Labelled:
    """Opens other data of the same classes, prepared in the same way."""
    opened = _open_with_classes(source, model, beside.data.preparation, samples)
    numbers = {label_line(name).casefold(): place for place, name in enumerate(beside.names)}
    names = _names(opened)
    strange = [name for name in names if label_line(name).casefold() not in numbers]
    if strange:
        raise BadInput(
            "{source}: class {listed_names} is not in {source2}, which has {listed_names2}; "
            "give the same classes",
            opened.source,
            listed_names(strange),
            beside.data.source,
            listed_names(beside.names),
        )
    own = {name: numbers[label_line(name).casefold()] for name in names}
    return Labelled(_renumber(opened, own), beside.names)


def _open_with_classes(
    source: Given, model: Model, preparation: Preparation, samples: int | None
) -> OpenedSamples:
    without_offset = replace(preparation, label_offset=0)
    if is_path(source) and _is_table(Path(source)) and token_inputs(model):
        names = class_labels(Path(source))  # these classes replace the model's own
        model = describe(model, (), names, words=vocabulary_file(model)) if names else model
        without_offset = replace(without_offset, task="text")
    data = open_data(source, model, preparation=without_offset, samples=samples, resizes=True)
    stored = data.items.stored
    if stored is None:
        raise BadInput(
            "{source}: give a folder, arrays or a function, not opened data", data.source
        )
    if stored.rows.classes is None:
        raise BadInput(
            "{source}: no classes to learn; give a folder that has a folder for each class, "
            "or arrays with class numbers as y",
            data.source,
        )
    return stored


def _names(data: OpenedSamples) -> tuple[str, ...]:
    """The classes in the order of their numbers: by folder, else by number."""
    owners = dict(zip(_numbers(data), _owners(data), strict=True))
    return tuple(owners[number] for number in sorted(owners))


def _owners(data: OpenedSamples) -> list[str]:
    """The class of each item by name."""
    if os.path.isdir(data.source):
        return [name.partition("/")[0] for name in data.names]
    labels = metadata(data.model).labels if data.rows.words is not None else ()
    if labels:
        return [labels[number] for number in _numbers(data)]
    return [str(number) for number in _numbers(data)]


def _numbers(data: OpenedSamples) -> list[int]:
    assert data.rows.classes is not None
    return data.rows.classes[list(data.chosen)].tolist()


def _renumber(data: OpenedSamples, numbers: dict[str, int]) -> OpenedSamples:
    """The data with other class numbers, assigned by name."""
    assert data.rows.classes is not None
    classes = np.full(len(data.rows.classes), -1, np.int64)
    for place, owner in zip(data.chosen, _owners(data), strict=True):
        classes[place] = numbers[owner]
    moved = [
        phrase("{n} is class {p}", n, p)
        for n, p in numbers.items()
        if n.isdecimal() and int(n) != p
    ]
    notes = data.notes
    if moved and not os.path.isdir(data.source):
        notes = (*notes, phrase("classes are numbered without gaps: {moved}", moved[0]))
    return replace(data, rows=replace(data.rows, classes=classes, misfit=""), notes=notes)


def _folders(source: str) -> Iterable[str]:
    if not os.path.isdir(source):
        return ()
    inside = (p for p in Path(source).iterdir() if p.is_dir())
    return (p.name for p in inside if not p.name.startswith("."))


def _refuse_few(found: Labelled, samples: int | None) -> None:
    source = found.data.source
    if len(found.names) == 1:
        only = listed_names(found.names)
        raise BadInput(
            "{source}: one class only, {only}; two or more are needed to tell apart", source, only
        )
    few = [name for name, count in zip(found.names, found.counts, strict=True) if count < FEWEST]
    if few:
        few_names = listed_names(few)
        if samples is not None:
            raise BadInput(
                "{source}: class {names} has fewer than {least} items of --samples {samples}; "
                "take more",
                source,
                few_names,
                FEWEST,
                samples,
            )
        raise BadInput(
            "{source}: class {names} has fewer than {least} items; add some, or take it away",
            source,
            few_names,
            FEWEST,
        )


def listed_names(names: Sequence[str]) -> str:
    """The first few names, in quotes."""
    more = len(names) - _NAMED
    shown = ", ".join(repr(plain(name)) for name in names[:_NAMED])
    return phrase("{shown} and {count} more", shown, total_text(more)) if more > 0 else shown


def split_by_class(found: Labelled, share: float) -> tuple[Labelled, Labelled]:
    """Splits the items into those to learn from and those to judge by: the same share of every
    class, chosen by the items' contents. Items of one group, such as copies, stay together, even
    across classes."""
    groups, labels, held = _group_names(found), found.labels.tolist(), set[str]()
    for place, name in enumerate(found.names):
        own = {one for one, label in zip(groups, labels, strict=True) if label == place}
        if len(own) < FEWEST:
            raise BadInput(
                "{source}: class {listed_names}: all of its items are copies of one, or of one "
                "group; give different ones",
                found.data.source,
                listed_names([name]),
            )
        count = min(max(1, round(share * len(own))), len(own) - 1)
        held |= {*sorted(own)[:count]}
    rows = range(len(groups))
    learned = found.at(row for row in rows if groups[row] not in held)
    if 0 in learned.counts:
        name = found.names[learned.counts.index(0)]
        raise BadInput(
            "{source}: class {listed_names}: too few items that no other class has and that "
            "fill a batch; give more",
            found.data.source,
            listed_names([name]),
        )
    return learned, found.at(row for row in rows if groups[row] in held)


def _group_names(found: Labelled) -> list[str]:
    """The group of each item, named by the first digest in it."""
    groups, digests = found.data.groups.tolist(), found.data.digests
    first: dict[int, str] = {}
    for group, digest in zip(groups, digests, strict=True):
        first[group] = min(digest, first.get(group, digest))
    return [first[group] for group in groups]


def ambiguous(found: Labelled) -> tuple[str, ...]:
    """Notes on items that occur in several classes."""
    labels: dict[str, set[int]] = {}
    for digest, label in zip(found.data.digests, found.labels.tolist(), strict=True):
        labels.setdefault(digest, set()).add(label)
    names = dict(zip(found.data.digests, found.data.names, strict=True))
    several = [digest for digest, own in labels.items() if len(own) > 1]
    if not several:
        return ()
    count = (
        phrase("1 item is")
        if len(several) == 1
        else phrase("{count} items are", total_text(len(several)))
    )
    return (
        phrase(
            "{count} in two classes, as {names}; keep the right one",
            count,
            plain(names[several[0]]),
        ),
    )
