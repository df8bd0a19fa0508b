"""Standard input, output and error, even if the program was started without them.

A closed stream is replaced by one to nowhere: otherwise the next opened file would take its number
and receive what is printed. A sign of ours that a stream cannot encode is written as one that looks
alike, any other character as its escape. A failure to print is attributed to its stream.
"""

import codecs
import errno
import io
import os
import sys
import tempfile
import traceback
from typing import TextIO

from litesmith.errors import os_reason
from litesmith.operating_system import is_reader_gone
from litesmith.phrases import phrase
from litesmith.units import plain

OUTPUT = "standard output"

# One letter each, so that tables keep their columns.
_LOOKALIKES = "litesmith.lookalikes"
_ALIKE = dict(zip("−–—×→…≈·▶●≥≤±²µ│─", "---x>.~.>*><~2u|-", strict=True))

# The end of numpy's message for a full disk, which has no error number.
_FULL = (None, errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))


def settle_streams() -> None:
    """Prepares the three streams so that printing cannot fail unexpectedly."""
    codecs.register_error(_LOOKALIKES, _look_alike)
    for number in range(3):
        _refill(number)
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = _settle(1, sys.stdout)
    sys.stderr = _settle(2, sys.stderr)


def _refill(number: int) -> None:
    """Opens a descriptor to nowhere if it is closed; the lower descriptors are open."""
    try:
        os.fstat(number)
    except OSError:
        opened = os.open(os.devnull, os.O_RDWR)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)
        os.set_inheritable(number, True)


class _Output(io.FileIO):
    """A descriptor whose errors name it."""

    def write(self, data: object) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]  # bytes of any sort
        except OSError as error:
            if is_reader_gone(error, self.fileno()):
                raise BrokenPipeError from None
            error.filename = OUTPUT
            raise


def _settle(number: int, stream: TextIO | None) -> TextIO:
    # Where Python found none, a library may have opened a file of its own under the number since.
    target: int | str = os.devnull if stream is None else number
    if stream is not None:
        stream.flush()
    raw = _Output(target, "wb", closefd=stream is None)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding="utf-8" if stream is None else stream.encoding,
        errors=_LOOKALIKES,
        line_buffering=number == 2 or os.isatty(number),
    )


def _look_alike(error: UnicodeError) -> tuple[str | bytes, int]:
    """What is written for the characters that an encoding lacks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    shown = (_ALIKE.get(c) or c.encode("ascii", "backslashreplace").decode() for c in missing)
    return "".join(shown), error.end


def why_failed(error: OSError) -> str:
    """The file or stream that could not be read or written, and why."""
    why = os_reason(error)
    if error.filename == OUTPUT:
        return phrase("{where}: {why}", phrase("standard output"), why)
    if error.filename is not None:
        return phrase("{where}: {why}", os.fsdecode(error.filename), why)
    if error.errno in _FULL:
        place = tempfile.gettempdir()
        return phrase("{place}, for temporary files: {why}; TMPDIR names another", place, why)
    return why


def print_traceback() -> None:
    """Prints the traceback of the current exception, line by line."""
    for line in traceback.format_exc().splitlines():
        print(plain(line), file=sys.stderr)
