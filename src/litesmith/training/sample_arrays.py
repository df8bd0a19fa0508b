"""The samples of a training as arrays, in memory or, where they are many, in a temporary file."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from litesmith.data.samples import Data, Sample
from litesmith.errors import BadInput
from litesmith.ir.types import Array
from litesmith.numeric.arrays import array_on_disk
from litesmith.phrases import phrase
from litesmith.training.settings import HELD_OUT

# Samples of more bytes than this lie in a temporary file; the system caches as much of it as fits.
_IN_MEMORY = 1_000_000_000

# The largest number of held-out samples; and the least number of samples for a training set.
_MOST_HELD_OUT, FEWEST = 1000, 16


@dataclass(frozen=True, eq=False)
class TrainingSamples:
    """Samples to train a model on, and samples to judge it by.

    inputs   for each input of the model, all samples in turn: (samples, …) in the model's shapes
    labels   the class of each sample; None where there are none
    learned  the places of the samples to train on
    held     the places of those that only judge: chosen by content, whatever the order
    """

    inputs: tuple[Array, ...]
    labels: Array | None
    learned: Array
    held: Array


def gather_samples(data: Data, *, labelled: bool, in_memory: int = _IN_MEMORY) -> TrainingSamples:
    """Reads all samples into arrays, which lie in a file if they take more bytes than `in_memory`.
    BadInput where a sample holds a number that is not finite, or where there are too few.
    """
    if len(data) < FEWEST:
        raise BadInput(
            "{source}: {count} samples are too few to train on; give {fewest} or more",
            data.source,
            len(data),
            FEWEST,
        )
    stores: list[Array] = []
    digests: list[bytes] = []
    labels: list[Array] = []
    for place, sample in enumerate(data):
        _refuse_spoiled(sample, data)
        stores = stores or [room(len(data), a.shape, a.dtype, in_memory) for a in sample.inputs]
        for store, value in zip(stores, sample.inputs, strict=True):
            _put(store, place, value, sample)
        digests.append(sha256(b"".join(a.tobytes() for a in sample.inputs)).digest())
        if labelled:
            assert sample.label is not None
            labels.append(sample.label.reshape(-1))
    order = sorted(range(len(digests)), key=lambda place: digests[place])
    count = min(len(order) // HELD_OUT, _MOST_HELD_OUT)
    return TrainingSamples(
        tuple(stores),
        np.stack(labels).astype(np.int64) if labelled else None,
        np.sort(order[count:]),
        np.sort(order[:count]),
    )


def room(count: int, shape: Sequence[int], dtype: np.dtype, in_memory: int = _IN_MEMORY) -> Array:
    """An array for this many samples."""
    whole = (count, *shape)
    if int(np.prod(whole)) * dtype.itemsize <= in_memory:
        return np.empty(whole, dtype)
    return array_on_disk(whole, dtype)


def _put(store: Array, place: int, value: Array, sample: Sample) -> None:
    if value.shape != store.shape[1:]:
        raise BadInput(
            "{name}: has the shape {shape}, the first one {shape2}; samples of one size are "
            "needed to train",
            sample.name or phrase("sample {place}", place),
            value.shape,
            store.shape[1:],
        )
    store[place] = value


def _refuse_spoiled(sample: Sample, data: Data) -> None:
    for value in sample.inputs:
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            raise BadInput(
                "{source}: {name} holds numbers that are infinite or not numbers; mend or "
                "leave out such samples",
                data.source,
                sample.name or phrase("a sample"),
            )
