"""Models on their way to other machines: by digest, opened once by each process there."""

import os
from collections import OrderedDict
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from litesmith.data.answers import Answering, main_session
from litesmith.ir.types import Model
from litesmith.phrases import phrase
from litesmith.run.session import Session, Source
from litesmith.tflite.file import digest, load
from litesmith.tflite.write import to_bytes
from litesmith.workers.engine import Engine, Held

Content = NDArray[np.uint8]  # the bytes of a file: an array is not copied on its way to a process

# Models that a process keeps open.
_MOST_OPEN = 4

_open: OrderedDict[tuple[str, str], tuple[Session, Answering]] = OrderedDict()


def source_digest(source: Source) -> str:
    """The name that a model travels by: of what its file holds."""
    if isinstance(source, str | os.PathLike):
        return digest(Path(source))
    return sha256(to_bytes(source) if isinstance(source, Model) else source).hexdigest()


def send_model(engine: Engine, source: Source, key: str) -> Held[Content]:
    """A model with the workers, shipped unless it is there."""
    return engine.hold(
        phrase("model {key}", key), lambda: content_of(source), lambda held: held.nbytes
    )


def content_of(source: Source) -> Content:
    if isinstance(source, str | os.PathLike):
        return np.fromfile(source, np.uint8)
    return np.frombuffer(to_bytes(source) if isinstance(source, Model) else source, np.uint8)


def answering(key: str, content: Content, target: str) -> Answering:
    """A model that is ready to answer, opened by this process unless it is open."""
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
