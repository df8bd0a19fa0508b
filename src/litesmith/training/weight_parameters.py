"""The weights of a model as parameters: free, pruned, or of a codebook.

Every parameter is in units of its own size, so that one learning rate suits all: in a graph without
batch normalization, the sizes of weights differ by orders of magnitude, channel by channel.
"""

# pyright: reportUnknownMemberType=false
# torch leaves parts of its types open.

from typing import Protocol

import numpy as np
import torch

from litesmith.ir.types import Array
from litesmith.numeric.affine import Ends, rows_of
from litesmith.passes.core.weight_structure import Codebook

# A channel of almost zero weights moves by steps of at least this share of the tensor's size.
_LEAST_UNIT = 0.01

# How far a scale may move from its initial value: by a factor of e to this power.
_MOST_LOG = 0.7

# A scale moves by this much less than a weight: each of its steps rounds a whole channel anew.
LOG_UNIT = 0.1

# The steps of a codebook that count as one unit, and the codes that never change.
_BOOK_UNIT = 16.0
_LASTING = (-127, 0, 127)


class TrainedValue(Protocol):
    """A constant that is trained."""

    def __call__(self) -> torch.Tensor:
        """The present value, in real numbers, as the model computes with it."""
        ...

    def parameters(self) -> list[torch.nn.Parameter]: ...

    def scales(self) -> torch.Tensor | None:
        """The scale of each channel of codes, or the one of all; None for a float value."""
        ...


class Free:
    """A float weight or bias; masked values are zero."""

    def __init__(self, values: torch.Tensor, unit: torch.Tensor, mask: torch.Tensor | None) -> None:
        self._unit = unit
        self._steps = torch.nn.Parameter(values / unit)
        self.mask = mask

    def __call__(self) -> torch.Tensor:
        value = self._steps * self._unit
        return value if self.mask is None else value * self.mask

    def parameters(self) -> list[torch.nn.Parameter]:
        return [self._steps]

    def scales(self) -> None:
        return None


class Rounded:
    """A weight that is stored as codes: rounded on the way forward, free on the way back."""

    def __init__(self, inner: Free, scales: torch.Tensor, axis: int, ends: Ends) -> None:
        self.inner, self._axis, self._ends = inner, axis, ends
        self._first = scales
        self._log = torch.nn.Parameter(torch.zeros_like(scales))
        self._zero = torch.zeros_like(scales)

    def __call__(self) -> torch.Tensor:
        scales = self.scales()
        axis = None if len(scales) == 1 else self._axis
        return round_to_codes(self.inner(), scales, self._zero, self._ends, axis)

    def parameters(self) -> list[torch.nn.Parameter]:
        return [*self.inner.parameters(), self._log]

    def scales(self) -> torch.Tensor:
        return move_scales(self._first, self._log)


class Settling:
    """A weight of few bits that settles on codes: some of its values are fixed codes, the others
    are free and compensate. In units of the scale, which stays.

    begun  the initial codes; each value begins between its code and its value in `free`
    """

    # The initial position of values on the way from the free weight to the code.
    _TO_CODE = 0.7

    # No value begins farther from its code than this.
    _REACH = 0.95

    def __init__(
        self, begun: torch.Tensor, free: torch.Tensor, scales: torch.Tensor, axis: int, ends: Ends
    ) -> None:
        self._scales, self._ends = scales, ends
        along = [-1 if place == axis else 1 for place in range(begun.ndim)]
        self._steps = scales if len(scales) == 1 else scales.reshape(along)
        near = (free / self._steps).clamp(begun - self._REACH, begun + self._REACH)
        self._free = torch.nn.Parameter(torch.lerp(near, begun, self._TO_CODE))
        self._codes, self._is_zero = begun.clone(), free == 0
        self._settled = self._is_zero

    def __call__(self) -> torch.Tensor:
        free = self._free.clamp(*self._ends)
        return torch.where(self._settled, self._codes, free) * self._steps

    @torch.no_grad()
    def settle(self, share: float) -> None:
        """Fixes this share of the values to their codes: those that are nearest to one."""
        nearest = self._free.round().clamp(*self._ends)
        away = (self._free - nearest).abs()
        away[self._settled] = -1.0
        self._codes = torch.where(self._settled, self._codes, nearest)
        count = max(round(share * away.numel()), 0)
        chosen = torch.zeros(away.numel(), dtype=torch.bool)
        chosen[away.flatten().argsort()[:count]] = True
        self._settled = chosen.reshape(away.shape) | self._settled

    def parameters(self) -> list[torch.nn.Parameter]:
        return [self._free]

    def scales(self) -> torch.Tensor:
        return self._scales


class Coded:
    """A weight of a few distinct codes: the assignment of codes, and their values, are trained.

    A codebook's ends and its zero stay, and so do the weights assigned to them: each channel still
    reaches as far as its scale says, and zeros are zeros.
    """

    def __init__(self, found: Codebook, shape: tuple[int, ...], axis: int) -> None:
        begun = found.book[found.codes].astype(np.float32)
        unit = float(np.sqrt((begun.astype(np.float64) ** 2).mean())) or 1.0
        self._unit, self._begun = unit, torch.from_numpy(begun)
        self._stays = torch.from_numpy(np.isin(begun, _LASTING))
        self._first_book = torch.from_numpy(found.book.astype(np.float32))
        self._free = torch.from_numpy(~np.isin(found.book, _LASTING))
        self._first = torch.from_numpy(found.scales.astype(np.float32).reshape(-1))
        self._at = torch.nn.Parameter(self._begun / unit)
        self._book = torch.nn.Parameter(self._first_book / _BOOK_UNIT)
        self._log = torch.nn.Parameter(torch.zeros_like(self._first))
        self._along = [-1 if place == axis else 1 for place in range(len(shape))]

    def __call__(self) -> torch.Tensor:
        at, book = self._at * self._unit, self._sorted_book()
        edges = ((book[1:] + book[:-1]) / 2).detach()
        nearest = book[torch.bucketize(at.detach(), edges)]
        codes = torch.where(self._stays, self._begun, nearest + (at - at.detach()))
        scales = self.scales()
        return codes * (scales if len(scales) == 1 else scales.reshape(self._along))

    def _sorted_book(self) -> torch.Tensor:
        inner = round_straight_through(self._book * _BOOK_UNIT).clamp(-126, 126)
        return torch.where(self._free, inner, self._first_book).sort().values

    def parameters(self) -> list[torch.nn.Parameter]:
        return [self._at, self._book, self._log]

    def scales(self) -> torch.Tensor:
        return move_scales(self._first, self._log)

    def to(self, device: torch.device) -> "Coded":
        for name in ("_begun", "_stays", "_first_book", "_free", "_first"):
            setattr(self, name, getattr(self, name).to(device))
        for name in ("_at", "_book", "_log"):
            setattr(self, name, torch.nn.Parameter(getattr(self, name).detach().to(device)))
        return self


def move_scales(first: torch.Tensor, log: torch.Tensor) -> torch.Tensor:
    """Scales that have moved by a logarithm."""
    return first * torch.exp((log * LOG_UNIT).clamp(-_MOST_LOG, _MOST_LOG))


def round_to_codes(
    value: torch.Tensor,
    scales: torch.Tensor,
    zero: torch.Tensor,
    limits: tuple[int, int],
    axis: int | None = None,
) -> torch.Tensor:
    """A value as codes can hold it, with gradients for the value and its scales.

    torch's own kernels read the scales on the host, so that a GPU has to wait in every step."""
    if value.is_cuda:
        along = [-1 if place == axis else 1 for place in range(value.ndim)]
        steps = scales if axis is None else scales.reshape(along)
        points = zero if axis is None else zero.reshape(along)
        return (round_straight_through(value / steps + points).clamp(*limits) - points) * steps
    if axis is None:
        return torch._fake_quantize_learnable_per_tensor_affine(  # type: ignore[attr-defined]
            value, scales, zero, *limits, 1.0
        )
    return torch._fake_quantize_learnable_per_channel_affine(  # type: ignore[attr-defined]
        value, scales, zero, axis, *limits, 1.0
    )


def round_straight_through(value: torch.Tensor) -> torch.Tensor:
    """The nearest whole numbers; the gradient passes unrounded."""
    return value + (value.round() - value).detach()


def unit_of(values: Array, axis: int) -> Array:
    """The size of the weights of each channel, in a shape that can be multiplied with them."""
    rows = rows_of(values, axis).astype(np.float64)
    counts = np.maximum((rows != 0).sum(axis=1), 1)
    sizes = np.sqrt((rows * rows).sum(axis=1) / counts)
    whole = np.sqrt((rows * rows).sum() / max(int((rows != 0).sum()), 1)) or 1.0
    shape = [-1 if place == axis else 1 for place in range(values.ndim)]
    return np.maximum(sizes, _LEAST_UNIT * whole).reshape(shape).astype(np.float32)
