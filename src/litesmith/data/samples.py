"""The samples for calibration and evaluation, ready for a model's inputs."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from litesmith.data.images import channel_axis, picture
from litesmith.data.preparation import Preparation, normalize
from litesmith.errors import BadInput
from litesmith.ir.dtype import DTYPES
from litesmith.ir.types import Array, Tensor
from litesmith.progress import Progress, Status, silent, watch
from litesmith.run.litert.numpy_walker import dequantize, quantize
from litesmith.tasks.task import Scorer
from litesmith.units import plain

if TYPE_CHECKING:
    from litesmith.data.opened_samples import OpenedSamples


@dataclass(frozen=True, eq=False)
class Sample:
    """One call of a model.

    inputs   one array per input of the model, in its order and shape. For float inputs and inputs
             with a scale, real numbers as float32; otherwise the input's own type (token ids, raw
             pixels)
    label    the label, with the inputs' batch as first dimension; None where there is none
    name     the origin of the sample, for messages
    more     the inputs of further calls, for a sample that is too long for one call: its answer is
             the outputs of all calls, one after the other
    averages True where the answer is the mean over the outputs of all calls instead
    """

    inputs: tuple[Array, ...]
    label: Array | None = None
    name: str = ""
    more: tuple[tuple[Array, ...], ...] = ()
    averages: bool = False


@dataclass(frozen=True, eq=False)
class Items:
    """What is known of the items in the samples of some data.

    batch        the number of items in a sample
    preparation  how the items are prepared; None where they are not
    classes      the model's class of each item, where the labels are class numbers
    stored       the data itself, where single items can be read, each with a name
    is_random    True where the items are made up
    groups       finds the group of each item: items of one group are copies of each other, or
                 belong together because the user says so; None where only reading the items tells
    misfit       why the classes cannot be the model's; "" where they may be
    task         the name of the items' task; "" for a task outside the table
    scorer       scores the answers of that task
    """

    batch: int = 1
    preparation: Preparation | None = None
    classes: Array | None = None
    stored: "OpenedSamples | None" = None
    is_random: bool = False
    groups: Callable[[], NDArray[np.int64]] | None = None
    misfit: str = ""
    task: str = ""
    scorer: Scorer | None = None


@runtime_checkable
class Data(Protocol):
    """Samples in a fixed order; each iteration starts afresh.

    source  the origin of the samples, as the user wrote it
    digest  equal for equal samples with equal preparation
    notes   decisions made for the user, one sentence each, to be shown
    items   what is known of the items in the samples; `Items()` where nothing is
    """

    @property
    def source(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    @property
    def items(self) -> Items: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Sample]: ...


@dataclass(frozen=True, eq=False)
class DataView:
    """Data derived from other data."""

    data: Data

    @property
    def source(self) -> str:
        return self.data.source

    @property
    def digest(self) -> str:
        return self.data.digest

    @property
    def notes(self) -> tuple[str, ...]:
        return self.data.notes

    def __len__(self) -> int:
        return len(self.data)


@dataclass(frozen=True, eq=False)
class WatchedData(DataView):
    """The same data; each iteration passes through `watch`."""

    watch: Callable[[Iterable[Sample]], Iterator[Sample]]

    @property
    def items(self) -> Items:
        return replace(self.data.items, stored=None)  # reading single items would bypass `watch`

    def __iter__(self) -> Iterator[Sample]:
        return self.watch(self.data)


def watch_data(data: Data, what: str, progress: Progress) -> Data:
    """The same data, which reports progress under the name `what` while it is read; the unchanged
    data where there is no progress callback.
    """
    if progress is silent:
        return data
    status = Status(what, of=len(data))
    return WatchedData(data, lambda samples: watch(samples, status, progress))


def as_stored(tensor: Tensor, value: Array) -> Array:
    """Converts a sample's array to the model's input: stored numbers where the input has a
    scale."""
    if tensor.quant is not None and value.dtype == np.float32 and tensor.dtype != "float32":
        return quantize(value, tensor.quant, tensor.dtype)
    return value


def is_real(tensor: Tensor) -> bool:
    """True where an input stands for real numbers."""
    return DTYPES[tensor.dtype].is_float or tensor.quant is not None


def are_pixels(tensor: Tensor, array: Array) -> bool:
    """True for the bytes of an image where the input takes one."""
    return array.dtype == np.uint8 and picture(tensor) is not None


def prepare_item(tensor: Tensor, item: Array, preparation: Preparation) -> Array:
    """Prepares an item for a sample: real numbers, or the input's own type where it has no
    scale."""
    if not is_real(tensor):
        return _in_own_type(tensor, item)
    if are_pixels(tensor, item) or preparation.is_chosen:
        return normalize(item, preparation.as_norm(), channel_axis(tensor))
    if tensor.quant is not None and item.dtype == tensor.dtype:
        return dequantize(item, tensor.quant)
    return item.astype(np.float32)


def _in_own_type(tensor: Tensor, item: Array) -> Array:
    if tensor.dtype == "string" or item.dtype == tensor.dtype:
        return np.asarray(item)
    if tensor.dtype == "int8" and are_pixels(tensor, item):
        return (item.astype(np.int16) - 128).astype(np.int8)
    own = item.astype(DTYPES[tensor.dtype].storage)
    if not np.array_equal(own, item):
        raise BadInput(
            "input {name!r} is {dtype}, which cannot hold the data's {dtype2} values; convert them",
            plain(tensor.name),
            tensor.dtype,
            item.dtype,
        )
    return own
