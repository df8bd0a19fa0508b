"""The structure that pruning and clustering gave a weight, found again from its numbers alone.

So the structure survives files and other steps: nothing has to be stored beside the weight.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litesmith.ir.types import Array
from litesmith.numeric.affine import weight_scales
from litesmith.numeric.arrays import along
from litesmith.numeric.codebook import MOST_CODE

# With fewer zeros than this share nobody has pruned: they came about by themselves.
_LEAST_ZEROS = 0.02

# More codes than this are no codebook: so has every weight that once was int8.
MOST_BOOK = 128

# A code that few numbers share is none: small weights lie on the grid by chance.
LEAST_SHARING = 4

# How far a weight may lie from its code, in steps: the rounding error of floats, and no more.
_NEAR = 1e-3


class Codebook(NamedTuple):
    """A weight as few numbers: weight = scales × book[codes].

    codes   places in the book, in the weight's shape
    book    codes on the int8 grid, −127 to 127, ascending
    scales  one for each channel along the axis, or one
    """

    codes: NDArray[np.uint8]
    book: NDArray[np.int64]
    scales: NDArray[np.float64]


def kept(weight: Array) -> NDArray[np.bool_] | None:
    """The mask of a pruned weight, True where it is not zero; None where it is not pruned."""
    mask = weight != 0
    zeros = mask.size - np.count_nonzero(mask)
    return mask if zeros > 0 and zeros >= _LEAST_ZEROS * mask.size else None


def codebook_of(weight: Array, axis: int | None) -> Codebook | None:
    """A clustered weight as codes of a book; None where it is not clustered."""
    if not weight.size or not np.isfinite(weight).all():
        return None
    scales = weight_scales(weight, axis, 8)
    numbers = weight / along(scales, weight.ndim, axis or 0)
    whole = np.rint(numbers)
    if np.abs(numbers - whole).max() > _NEAR or np.abs(whole).max() > MOST_CODE:
        return None
    book, codes = np.unique(whole.astype(np.int64), return_inverse=True)
    if not 1 < book.size <= min(MOST_BOOK, weight.size // LEAST_SHARING):
        return None
    return Codebook(codes.reshape(weight.shape).astype(np.uint8), book, scales)


def from_codebook(found: Codebook, axis: int | None) -> NDArray[np.float32]:
    """The weight that a codebook stands for."""
    numbers = found.book[found.codes] * along(found.scales, found.codes.ndim, axis or 0)
    return numbers.astype(np.float32)
