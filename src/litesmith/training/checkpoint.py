"""Where a training has come to, on disk: an interrupted one goes on from there."""

import io
import time
from pathlib import Path
from typing import Any

import torch

from litesmith.errors import BadInput
from litesmith.tflite.file import write_whole
from litesmith.training.settings import RECORD_SECONDS

_SHARE = 0.05  # of the time is what writing them may take


class Checkpoint:
    """The record of one training. `key` tells it from trainings of anything else; `every` is the
    seconds between two records, 0 for one after each step."""

    def __init__(
        self, path: Path | None, key: str, *, resume: bool, every: float = RECORD_SECONDS
    ) -> None:
        self._path, self._key, self._every = path, key, every
        self._due = time.monotonic() + every
        self.found = self._read() if resume else None

    def _read(self) -> dict[str, Any] | None:
        if self._path is None or not self._path.exists():
            return None
        try:
            found = torch.load(self._path, map_location="cpu", weights_only=True)
            key, state = found["key"], found["state"]
        except Exception as error:  # whatever a torn or foreign file makes of the reader
            raise BadInput(
                "{path}: is no record of a training ({name}); delete it, or leave out --resume",
                self._path,
                type(error).__name__,
            ) from None
        if key != self._key:
            raise BadInput(
                "{path}: is of another model, recipe, data or setting; run the command that "
                "was interrupted, or leave out --resume to start anew",
                self._path,
            )
        return state

    @property
    def is_due(self) -> bool:
        return self._path is not None and time.monotonic() >= self._due

    def keep(self, state: dict[str, Any]) -> None:
        """Writes the record, whole or not at all."""
        if self._path is None:
            return
        began = time.monotonic()
        content = io.BytesIO()
        torch.save({"key": self._key, "state": state}, content)
        write_whole(self._path, [content.getbuffer()])
        ended = time.monotonic()
        self._due = ended + (self._every and max(self._every, (ended - began) / _SHARE))
