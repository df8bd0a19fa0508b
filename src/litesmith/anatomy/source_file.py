"""A model as a user names it (a path, bytes or a model), and the size of its file."""

import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from litesmith.anatomy.footprint import gzip_bytes
from litesmith.errors import BadInput
from litesmith.ir.types import Model
from litesmith.phrases import phrase
from litesmith.tflite.file import load, pieces
from litesmith.tflite.write import chunks
from litesmith.type_guards import is_path

Source = str | os.PathLike[str] | bytes | bytearray | memoryview | Model

# The number of bytes that gzip compresses within a second or two.
_QUICKLY_GZIPPED = 40_000_000


@dataclass(frozen=True, eq=False)
class SourceFile:
    """A model and the path of its file; None for a model in memory."""

    model: Model = field(repr=False)
    path: Path | None = None

    @property
    def name(self) -> str:
        """The model's name in a sentence."""
        return phrase("the given model") if self.path is None else self.path.name

    @property
    def is_file(self) -> bool:
        """True where the file can be read again: a pipe cannot."""
        return self.path is not None and self.path.is_file()

    @property
    def origin(self) -> Path | Model:
        """What to open to run the model: the file, where it can be read again."""
        return self.path if self.path is not None and self.path.is_file() else self.model

    @cached_property
    def bytes(self) -> int:
        if self.path is not None and self.path.is_file():
            return self.path.stat().st_size
        return sum(map(len, chunks(self.model)))

    @cached_property
    def gzip_bytes(self) -> int:
        if self.path is not None and self.path.is_file():
            return gzip_bytes(pieces(self.path))
        return gzip_bytes(chunks(self.model))

    @property
    def quick_gzip_bytes(self) -> int | None:
        """The size after gzip, where it is known within a second or two."""
        return self.gzip_bytes if self.bytes <= _QUICKLY_GZIPPED else None


def open_source(source: Source) -> SourceFile:
    """Opens a path, bytes or a model."""
    if isinstance(source, Model):
        return SourceFile(source)
    if isinstance(source, bytes | bytearray | memoryview):
        return SourceFile(load(source))
    if is_path(source):
        return SourceFile(load(source), Path(source))
    raise BadInput(
        "model={source!r}: give the path of a .tflite file, its bytes, or a Model", source
    )
