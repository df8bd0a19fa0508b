"""What functions that make a model have in common: where the result goes, what is told of it."""

import os
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from litesmith.accuracy.evaluate import Evaluation, evaluate_all, finite
from litesmith.anatomy.source_file import Source, SourceFile
from litesmith.data.samples import Data
from litesmith.errors import LitesmithError
from litesmith.passes.core.schemes import Names
from litesmith.passes.core.step import Change
from litesmith.phrases import phrase
from litesmith.progress import WARNING, Note, Progress, tell_once
from litesmith.tflite.file import digest, refuse_output
from litesmith.tflite.write import chunks
from litesmith.units import bytes_text

Json = dict[str, object]
Place = str | os.PathLike[str]
OpNames = str | int | Sequence[str | int]


def read_names(given: OpNames | None) -> Names:
    """Ops as a step takes them, from `0,SOFTMAX`, or a list of numbers, kinds and name patterns."""
    if given is None:
        return ()
    texts = [given] if isinstance(given, str | int) else given
    parts = [part.strip() for text in texts for part in str(text).split(",")]
    return tuple(int(part) if part.isdecimal() else part for part in parts if part)


def read_place(out: Place | None, source: Source) -> Path | None:
    """The file to write; raises before the work where it could not, or must not, be written."""
    if out is None:
        return None
    place = Path(out)
    refuse_output(place, *([Path(source)] if isinstance(source, str | os.PathLike) else []))
    return place


def change_facts(change: Change, out: Path | None) -> Json:
    """What every command that makes a model tells of it."""
    made = SourceFile(change.model, out)
    return {
        "schema": 1,
        "out": None if out is None else str(out),
        "bytes": made.bytes,
        "gzip_bytes": made.gzip_bytes,
        "digest": model_digest(made),
        "touched": [*change.touched, *change.notes],
        "skipped": [skip._asdict() for skip in change.skipped],
    }


def model_digest(made: SourceFile) -> str:
    """The SHA-256 of a model's file, or of what would be written."""
    if made.path is not None:
        return digest(made.path)
    running = sha256()
    for piece in chunks(made.model):
        running.update(piece)
    return running.hexdigest()


def change_rows(change: Change) -> list[Json]:
    """One row for each thing that was changed, and for each that was left alone."""
    done: list[Json] = [{"what": text, "left_alone": ""} for text in change.touched]
    return done + [{"what": skip.where, "left_alone": skip.why} for skip in change.skipped]


def change_sentence(change: Change, out: Path | None) -> str:
    """How much was changed, and the size of the result."""
    told = phrase(
        "{changes} changes; {skipped} left alone; {size}",
        len(change.touched),
        len(change.skipped),
        bytes_text(SourceFile(change.model, out).bytes),
    )
    return told if out is None else phrase("{name}: {told}", out.name, told)


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
    return {"metric": found.metric, "n": found.n, **numbers}
