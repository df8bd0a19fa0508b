"""The runtime calls machine code of ours: what it needs to know of a kernel."""

import numpy as np

from litesmith.ir.types import Array
from litesmith.native import call_record as at
from litesmith.native.compile import address_of
from litesmith.ops.delegate import Native


def record_of(native: Native, locks: tuple[int, int], failed: Array, number: int) -> Array:
    """What `between` needs to know of a kernel; its number goes into `failed` when it fails."""
    record = np.zeros(at.NUMBER + 1, np.int64)
    record[[at.LOCK, at.UNLOCK]] = locks
    record[[at.FAILED, at.NUMBER]] = failed.ctypes.data, number
    renew(record, native)
    return record


def renew(record: Array, native: Native) -> None:
    """Has the record tell of another kernel."""
    room = native.room.ctypes.data
    record[[at.FUNCTION, at.USER, at.ROOM]] = native.address, native.user, room


def between() -> int:
    """The address of a function that the runtime can call, with a record as its user data."""
    return address_of("between")
