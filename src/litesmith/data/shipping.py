"""Ships models and samples to other machines: models by digest, which each process there opens
once; stored items in pieces, which are decoded and prepared there.
"""

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar, cast
from uuid import uuid4
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from litesmith.data.answers import Answering, main_session
from litesmith.data.images import in_parallel
from litesmith.data.opened_samples import OpenedSamples
from litesmith.data.preparation import Preparation
from litesmith.data.readers import Item, Rows
from litesmith.data.samples import Data, Sample
from litesmith.ir.types import Array, Graph, Model
from litesmith.phrases import phrase
from litesmith.run.session import Session, Source
from litesmith.tflite.file import digest, load
from litesmith.tflite.read import read
from litesmith.tflite.write import to_bytes
from litesmith.workers.engine import Engine, Held

# the bytes of a file, as an array, which is not copied on its way to a process
Content = NDArray[np.uint8]

# The number of models that a process keeps open.
_MOST_OPEN = 4

_open: OrderedDict[tuple[str, str], tuple[Session, Answering]] = OrderedDict()


def source_digest(source: Source) -> str:
    """The name under which a model travels: the digest of its file's content."""
    if isinstance(source, str | os.PathLike):
        return digest(Path(source))
    return sha256(to_bytes(source) if isinstance(source, Model) else source).hexdigest()


def send_model(engine: Engine, source: Source, key: str) -> Held[Content]:
    """Ships a model to the workers, unless they have it."""
    return engine.hold(
        phrase("model {key}", key), lambda: content_of(source), lambda held: held.nbytes
    )


def content_of(source: Source) -> Content:
    if isinstance(source, str | os.PathLike):
        return np.fromfile(source, np.uint8)
    return np.frombuffer(to_bytes(source) if isinstance(source, Model) else source, np.uint8)


def answering(key: str, content: Content, target: str) -> Answering:
    """A model ready to answer, opened once per process."""
    if (key, target) not in _open:
        session = main_session(content.data, target)
        _open[key, target] = session, Answering(session)
        while len(_open) > _MOST_OPEN:
            _open.popitem(last=False)[1][0].close()
    _open.move_to_end((key, target))
    return _open[key, target][1]


def load_content(content: Content) -> Model:
    """The model of a content."""
    return load(content.data)


T = TypeVar("T")

# Pieces per worker, so that none waits long for the slowest; the least number of samples in a
# piece, and its largest size in bytes.
_A_WORKER, _FEWEST, _MOST_BYTES = 4, 16, 32_000_000

_TOKENS: WeakKeyDictionary[object, str] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class DataPiece:
    """Some items of data, with everything needed to make samples of them.

    stored   the contents of the items' files, where they still need decoding; then no `columns`
    columns  the items' arrays for each input
    labels   the label of each item, where labels are not class numbers
    inputs   a model with nothing but the inputs for which samples are made
    digests  the digests of the items' contents, where requested
    more     for each item, the inputs of further calls, where there are any
    averages True where the answer to an item is the mean over all calls
    """

    source: str
    names: tuple[str, ...]
    stored: tuple[bytes, ...]
    columns: tuple[Sequence[Array], ...]
    labels: tuple[Array | None, ...]
    classes: Array | None
    decode: Callable[[bytes, str], Array] | None
    inputs: bytes
    preparation: Preparation
    others: tuple[tuple[int, Preparation], ...]
    digests: tuple[str, ...] = ()
    more: tuple[Sequence[tuple[Array, ...]], ...] = ()
    averages: bool = False

    @property
    def nbytes(self) -> int:
        arrays = (array for column in self.columns for array in column)
        return sum(map(len, self.stored)) + sum(array.nbytes for array in arrays)

    def open_samples(self) -> OpenedSamples:
        """The samples, made one by one."""
        more = self.more.__getitem__ if self.more else None
        rows = Rows(
            self.names,
            self._item,
            self.digests.__getitem__,
            self.classes,
            more=more,
            averages=self.averages,
        )
        chosen = tuple(range(len(self.names)))
        model = read(memoryview(self.inputs))
        return OpenedSamples(self.source, rows, chosen, model, self.preparation, (), self.others)

    def one_by_one(self) -> Iterator[Sample]:
        """The samples one after the other: a worker has a single core."""
        return self.open_samples().one_by_one()

    def _item(self, index: int) -> Item:
        if self.decode is not None:
            return (self.decode(self.stored[index], self.names[index]),), None
        return tuple(column[index] for column in self.columns), self.labels[index]


@dataclass(frozen=True, eq=False)
class Ready:
    """Samples that cannot be shipped as stored items."""

    samples: tuple[Sample, ...]

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for sample in self.samples for array in sample.inputs)

    def one_by_one(self) -> Iterator[Sample]:
        """The samples, one after the other."""
        return iter(self.samples)


Portion = DataPiece | Ready


class HeldPortion(NamedTuple):
    """A portion of data held by the workers, and its name there."""

    key: str
    held: Held[Portion]


def portions(
    engine: Engine, data: Data, *, whole: bool = False, digests: bool = False
) -> Iterator[HeldPortion]:
    """Data in pieces held by the workers, made on demand; `whole` makes a single piece.

    The same data is shipped once, as long as there is room for it; with `digests` it is shipped
    under a separate name.
    """
    token = _TOKENS.setdefault(data, uuid4().hex)
    stored = data.items.stored
    if stored is None:
        yield from _ready(engine, data, token, whole)
        return
    count = _piece_samples(engine, stored, whole)
    for start in range(0, len(data), count):
        places = range(start, min(start + count, len(data)))
        key = f"data {token} {places.start} {places.stop} {digests}"
        made = partial(piece, stored, places, digests=digests)
        yield HeldPortion(key, engine.hold(key, made, _nbytes))


def join_pieces(pieces: Sequence[DataPiece]) -> OpenedSamples:
    """Joins all pieces of some data."""
    first = pieces[0]
    columns = range(len(first.columns))
    classes = [p.classes for p in pieces if p.classes is not None]
    return replace(
        first,
        names=_chain([p.names for p in pieces]),
        stored=_chain([p.stored for p in pieces]),
        columns=tuple(_chain([tuple(p.columns[place]) for p in pieces]) for place in columns),
        labels=_chain([p.labels for p in pieces]),
        classes=np.concatenate(classes) if classes else None,
        digests=_chain([p.digests for p in pieces]),
        more=_chain([p.more for p in pieces]),
    ).open_samples()


def piece(data: OpenedSamples, places: Sequence[int], *, digests: bool = False) -> DataPiece:
    """The samples at some places, in the form in which they are shipped."""
    some = data.at(places)
    rows, chosen, inputs = some.rows, some.chosen, some.model.main.inputs
    stored: tuple[bytes, ...] = ()
    items: list[Item] = []
    if rows.stored is not None:
        stored = tuple(in_parallel(rows.stored.content, chosen))
    else:
        items = list(in_parallel(rows.read, chosen))
    labels = tuple(label if rows.classes is None else None for _, label in items)
    return DataPiece(
        some.source,
        some.names,
        stored,
        tuple(map(_column, zip(*(arrays for arrays, _ in items), strict=True))),
        labels,
        None if rows.classes is None else rows.classes[list(chosen)],
        None if rows.stored is None else rows.stored.decode,
        to_bytes(Model((Graph("", inputs, (), (), inputs),))),
        some.preparation,
        some.others,
        some.digests if digests else (),
        () if rows.more is None else tuple(map(rows.more, chosen)),
        rows.averages,
    )


def _ready(engine: Engine, data: Data, token: str, whole: bool) -> Iterator[HeldPortion]:
    count = len(data) if whole else _even(len(data), engine)
    samples = iter(data)
    for number in range(-(-len(data) // count)):
        some = tuple(islice(samples, count))
        key = f"data {token} {number} {count}"
        yield HeldPortion(key, engine.hold(key, partial(Ready, some), _nbytes))


def _nbytes(portion: Portion) -> int:
    return portion.nbytes


def _piece_samples(engine: Engine, data: OpenedSamples, whole: bool) -> int:
    """The number of samples in a piece."""
    if whole or not len(data):
        return max(1, len(data))
    arrays, _ = data.rows.read(data.chosen[0])
    each = sum(array.nbytes for array in arrays) * data.batch
    return max(1, min(_even(len(data), engine), _MOST_BYTES // max(each, 1)))


def _even(count: int, engine: Engine) -> int:
    return max(_FEWEST, -(-count // (_A_WORKER * engine.width)))


def _column(arrays: Sequence[Array]) -> Sequence[Array]:
    """Stacks arrays that are all alike into one, which is not copied on its way."""
    alike = len({(array.dtype, array.shape) for array in arrays}) == 1
    return cast(Sequence[Array], np.stack(arrays)) if alike else tuple(arrays)


def _chain(parts: Sequence[tuple[T, ...]]) -> tuple[T, ...]:
    return tuple(one for part in parts for one in part)
