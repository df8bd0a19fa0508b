"""What calibration and evaluation run over: samples, ready for a model's inputs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from litesmith.ir.types import Array, Tensor
from litesmith.run.litert.numpy_walker import quantize


@dataclass(frozen=True, eq=False)
class Sample:
    """One call of a model.

    inputs  one array for each input of the model, in its order and shape. Where the input is float
            or has a scale, real numbers as float32; else its own type (token ids, raw pixels)
    label   what is known of it, with the inputs' batch as first dimension; None where nothing is
    name    where it came from, for messages
    """

    inputs: tuple[Array, ...]
    label: Array | None = None
    name: str = ""


class Data(Protocol):
    """Samples in an order that does not change; each iteration starts afresh.

    source  where they come from, as the user wrote it
    digest  equal for equal samples with equal preparation
    notes   what was chosen on the user's behalf, one sentence each, to be said aloud
    """

    @property
    def source(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Sample]: ...


def as_stored(tensor: Tensor, value: Array) -> Array:
    """A sample's array as the model's input wants it: stored numbers where it has a scale."""
    if tensor.quant is not None and value.dtype == np.float32 and tensor.dtype != "float32":
        return quantize(value, tensor.quant, tensor.dtype)
    return value
