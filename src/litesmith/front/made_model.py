"""What functions that make a model have in common: where the result goes, what is told of it."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from litesmith.accuracy.evaluate import Evaluation, evaluate_all, finite
from litesmith.anatomy.source_file import Source, SourceFile
from litesmith.data.samples import Data
from litesmith.display import show_line
from litesmith.errors import LitesmithError
from litesmith.ir.types import Model
from litesmith.passes.core.schemes import Names, number_run
from litesmith.passes.core.step import Change, Skip
from litesmith.phrases import phrase
from litesmith.progress import WARNING, Note, Progress, tell_once
from litesmith.tflite.file import digest, refuse_output, save
from litesmith.tflite.write import chunks
from litesmith.type_guards import is_whole
from litesmith.units import bytes_text

Json = dict[str, object]
Place = str | os.PathLike[str]
OpNames = str | int | Sequence[str | int]


def read_names(given: OpNames | None) -> Names:
    """Ops as a step takes them, from `0,3-7,SOFTMAX`, or a list of numbers, kinds and name
    patterns."""
    if given is None:
        return ()
    texts = [given] if isinstance(given, str | int) else given
    parts = [part.strip() for text in texts for part in str(text).split(",")]
    return tuple(name for part in parts if part for name in _read_name(part))


def _read_name(part: str) -> Iterable[int | str]:
    run = number_run(part)
    return run if run is not None else (int(part) if is_whole(part) else part,)


def read_place(out: Place | None, source: Source) -> Path | None:
    """The file to write; raises before the work where it could not, or must not, be written."""
    if out is None:
        return None
    place = Path(out)
    refuse_output(place, *([Path(source)] if isinstance(source, str | os.PathLike) else []))
    return place


@dataclass(frozen=True, repr=False, eq=False)
class MadeModel:
    """A model that was made of another.

    out  the file that was written, if one was
    """

    source: SourceFile
    out: Path | None
    change: Change

    __repr__ = show_line

    @property
    def model(self) -> Model:
        return self.change.model

    @property
    def touched(self) -> tuple[str, ...]:
        return self.change.touched

    @property
    def skipped(self) -> tuple[Skip, ...]:
        return self.change.skipped

    @property
    def sentence(self) -> str:
        """How much was changed, and the size of the result."""
        told = phrase(
            "{changes} changes; {skipped} left alone; {size}",
            len(self.touched),
            len(self.skipped),
            bytes_text(SourceFile(self.model, self.out).bytes),
        )
        return told if self.out is None else phrase("{name}: {told}", self.out.name, told)

    def save(self, path: Place) -> None:
        """Writes the model to a file."""
        save(self.model, path)

    def to_rows(self) -> list[Json]:
        """One row for each thing that was changed, and for each that was left alone."""
        done: list[Json] = [{"what": text, "left_alone": ""} for text in self.touched]
        return done + [{"what": skip.where, "left_alone": skip.why} for skip in self.skipped]

    def facts(self) -> Json:
        """What JSON has of every model that was made."""
        made = SourceFile(self.model, self.out)
        return {
            "schema": 1,
            "out": None if self.out is None else str(self.out),
            "bytes": made.bytes,
            "gzip_bytes": made.gzip_bytes,
            "digest": model_digest(made),
            "touched": [*self.touched, *self.change.notes],
            "skipped": [skip._asdict() for skip in self.skipped],
        }


def model_digest(made: SourceFile) -> str:
    """The SHA-256 of a model's file, or of what would be written."""
    if made.path is not None:
        return digest(made.path)
    running = sha256()
    for piece in chunks(made.model):
        running.update(piece)
    return running.hexdigest()


def score(
    result: SourceFile, source: SourceFile, data: Data, progress: Progress
) -> Evaluation | None:
    """The result's accuracy beside the original's, on the same samples; what stops it is told, so
    that a file that was written has its report."""
    pair = [
        one.path if one.path is not None and one.is_file else one.model for one in (result, source)
    ]
    try:
        found = evaluate_all([pair[0]], data, against=pair[1], progress=progress)[0]
    except LitesmithError as error:
        progress(Note(phrase("not scored: {error}", error), WARNING))
        return None
    tell_once(found.notes, data.notes, progress)
    return found


def score_facts(found: Evaluation) -> Json:
    """An evaluation beside the original's, for JSON."""
    against: Mapping[str, float | None] = {}
    if found.against is not None:
        against = {
            "reference": found.against.value,
            "difference": found.against.difference,
            "difference_low": found.against.difference_low,
            "difference_high": found.against.difference_high,
            "agreement": found.against.agreement,
            "snr_db": found.against.snr_db,
        }
    told = {"value": found.value, "low": found.low, "high": found.high}
    numbers = {name: finite(value) for name, value in (told | against).items()}
    return {"metric": found.metric, "n": found.n, "independent": found.independent, **numbers}
