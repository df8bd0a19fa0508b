"""Speech: transcripts by models that give a letter, or a blank, for every moment of a clip."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from types import ModuleType

import numpy as np

from litesmith.errors import BadInput
from litesmith.installing import install_command
from litesmith.ir.types import Array, Model
from litesmith.phrases import phrase
from litesmith.tasks.sound import (
    ENDINGS,
    USUAL_RATE,
    compute_features,
    features_for,
    fit_rows,
    read_sound,
    resample,
)
from litesmith.tasks.task import (
    Answer,
    Rows,
    Settings,
    Shown,
    Task,
    TaskItems,
    model_labels,
    one_by_one,
)
from litesmith.tasks.texts import ENDINGS as TABLES
from litesmith.tasks.texts import ending, read_table
from litesmith.tflite.read_metadata import metadata
from litesmith.units import plain, total_text

_FILES = ("file", "path", "audio", "wav", "filename", "file_name", "id")
_WORDS = ("text", "transcript", "transcription", "sentence", "normalized_text")

# Names of the blank class in lists of letters.
_BLANKS = ("<blank>", "[blank]", "<pad>", "[pad]", "<b>", "blank", "")

# Names of the space between words in lists of letters.
_SPACES = ("|", "<space>", "[space]", "▁")

LETTERS = (" ", *"abcdefghijklmnopqrstuvwxyz", "'")


@dataclass(frozen=True)
class SpeechScorer:
    """Scores transcripts.

    letters  the letter of each class; the class `blank` stands for none
    output   the output with the letters
    """

    letters: tuple[str, ...]
    blank: int
    output: int = 0

    def rows(self, metric: str, answer: Answer) -> Rows:
        count = _characters if metric == "cer" else _words
        return np.array([count(self.text(one), str(one.label)) for one in one_by_one(answer)])

    def text(self, one: Answer) -> str:
        """The most likely class of every moment, each run once, without blanks."""
        scores = one.outputs[self.output]
        chosen: list[int] = scores.reshape(-1, scores.shape[-1]).argmax(axis=-1).tolist()
        runs = [number for number, _ in groupby(chosen)]
        return "".join(self.letters[number] for number in runs if number != self.blank).strip()

    def tell(self, answer: Answer) -> Shown:
        return Shown(self.text(one_by_one(answer)[0]))


def plain_words(text: str) -> str:
    """Words as they are compared: in lower case, without punctuation."""
    kept = "".join(c if c.isalnum() or c in "' " else " " for c in text.casefold())
    return " ".join(kept.split())


def _words(found: str, wanted: str) -> tuple[float, float]:
    """The number of wrong, missing and extra words, and the number of words."""
    right, answer = plain_words(wanted), plain_words(found)
    if not right:
        return float(len(answer.split())), 0.0
    out = _library().process_words(right, answer)
    return float(out.substitutions + out.deletions + out.insertions), float(len(right.split()))


def _characters(found: str, wanted: str) -> tuple[float, float]:
    """The number of wrong, missing and extra characters, and the number of characters."""
    right, answer = plain_words(wanted), plain_words(found)
    if not right:
        return float(len(answer)), 0.0
    out = _library().process_characters(right, answer)
    return float(out.substitutions + out.deletions + out.insertions), float(len(right))


def _library() -> ModuleType:
    try:
        import jiwer
    except ImportError:
        raise BadInput(
            "word error rates need the package jiwer: {install}", install_command("tasks")
        ) from None
    return jiwer


def find_transcripts(source: Path) -> Path | None:
    """The table of transcripts at a path, or in the folder there."""
    if source.is_file():
        return source if ending(source) in TABLES else None
    if not source.is_dir():
        return None
    names = ("transcripts", "metadata", "transcript", "labels")
    tables = [source / f"{name}{end}" for name in names for end in TABLES]
    return next((table for table in tables if table.is_file()), None)


def _open(source: Path, model: Model, settings: Settings) -> TaskItems:
    table = find_transcripts(source)
    if table is None:
        raise BadInput(
            "{source}: no transcripts there; give a table with the columns file and text beside "
            "the clips",
            plain(str(source)),
        )
    rows = read_table(table, _FILES, _WORDS)
    look = _finder(table.parent)
    found = [(look(name), text) for name, text in rows]
    kept = [(path, text) for path, text in found if path is not None]
    if not kept:
        raise BadInput("{table}: none of its clips is there", plain(str(table)))
    notes: list[str] = []
    if len(kept) < len(found):
        lost = next(name for (name, _), (path, _) in zip(rows, found, strict=True) if path is None)
        note = phrase(
            "clips that are not there: {count}, first {lost}",
            total_text(len(found) - len(kept)),
            plain(lost),
        )
        notes.append(note)
    tensor = model.main.inputs[0]
    features = features_for(tensor, settings.features)
    stated = features.rate or settings.rate or metadata(model).rate
    rate = stated or USUAL_RATE
    scorer = _scorer(model, settings)
    notes.append(
        phrase("clips at {rate} samples a second as {features}", total_text(rate), features.text)
    )
    own = read_sound(kept[0][0])[1]
    if own != rate and not stated:
        note = phrase(
            "the clips have {own} samples a second, and the model is taken to want {rate}; where "
            "it was made for the clips' own, say {option}",
            total_text(own),
            total_text(rate),
            f"--features {features.text},rate={own}",
        )
        notes.append(note)

    def arrays(index: int) -> tuple[Array, ...]:
        values, own = read_sound(kept[index][0])
        return (fit_rows(compute_features(resample(values, own, rate), rate, features), tensor),)

    return TaskItems(
        [path.name for path, _ in kept],
        lambda index: np.array(kept[index][1]),
        scorer,
        arrays=arrays,
        notes=tuple(notes),
    )


def _finder(folder: Path) -> Callable[[str], Path | None]:
    def look(name: str) -> Path | None:
        if not name or Path(name).is_absolute() or ".." in Path(name).parts:
            return None
        places = [folder / name, *(folder / f"{name}{end}" for end in ENDINGS)]
        places += [folder / "wavs" / f"{name}{end}" for end in ("", *ENDINGS)]
        return next((p for p in places if p.is_file() and p.suffix.lower() in ENDINGS), None)

    return look


def _scorer(model: Model, settings: Settings) -> SpeechScorer:
    letters = model_labels(model, settings) or LETTERS
    outputs = [tensor.shape[-1] if tensor.shape else 0 for tensor in model.main.outputs]
    marks = [letter.strip().casefold() in _BLANKS and letter != " " for letter in letters]
    spaced = tuple(" " if letter in _SPACES else letter for letter in letters)
    for place, classes in enumerate(outputs):
        if classes == len(letters) and any(marks):
            return SpeechScorer(spaced, marks.index(True), place)
        # the one class that the list leaves out is the blank; it comes last
        if classes == len(letters) + 1:
            return SpeechScorer((*spaced, ""), len(letters), place)
    raise BadInput(
        "the model tells {outputs} classes a moment, and the list of letters has {count}; give the "
        "model's letters in a file, one a line, with {option}",
        ", ".join(map(str, outputs)),
        len(letters),
        "--class-names",
    )


def _is_given(source: Path, model: Model, settings: Settings) -> bool:
    del settings
    takes_sound = len(model.main.inputs) == 1 and model.main.inputs[0].dtype == "float32"
    table = find_transcripts(source) if takes_sound else None
    return table is not None and _has_clips(table.parent)


def _has_clips(folder: Path) -> bool:
    places: Sequence[Path] = (folder, folder / "wavs")
    return any(p.suffix.lower() in ENDINGS for f in places if f.is_dir() for p in f.iterdir())


SPEECH = Task(phrase("speech"), ("wer", "cer"), "clip", _open, _is_given)
