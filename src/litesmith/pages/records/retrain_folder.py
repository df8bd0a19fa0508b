"""The contents of the folder of `retrain`, as far as they can be read."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from litesmith.evidence.folder import RETRAIN
from litesmith.evidence.retrain_record import (
    CurveRow,
    MistakeRow,
    RetrainInside,
    RetrainResult,
    RetrainSummary,
    ShareRight,
)
from litesmith.pages.records.salvage_folder import read_inside, read_summary

# The only characters that a thumbnail may hold, because it is put into the page unescaped.
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")

Matrix = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class ClassRow:
    """A class: the number of items to judge and to learn from, and the classes that it is confused
    with.
    """

    name: str
    count: int
    learned: int
    share: ShareRight | None
    taken_for: str


@dataclass(frozen=True)
class RetrainFolder:
    """Everything in the report of a retraining.

    matrix  a row for each class; empty where it is not a table of that size
    losses  what could not be read, and why
    """

    summary: RetrainSummary
    classes: tuple[ClassRow, ...] = ()
    matrix: Matrix = ()
    mistakes: tuple[MistakeRow, ...] = ()
    losses: tuple[str, ...] = ()
    curves: tuple[CurveRow, ...] = ()

    @property
    def result(self) -> RetrainResult:
        return self.summary.result

    @property
    def is_detector(self) -> bool:
        return self.result.metric == "ap50"

    @property
    def is_segmenter(self) -> bool:
        return self.result.metric == "miou"

    @property
    def has_places(self) -> bool:
        """Whether the model locates objects, beyond naming the class of an item."""
        return self.is_detector or self.is_segmenter


def read_retraining(folder: Path) -> RetrainFolder:
    """Everything that the folder holds."""
    summary, losses = read_summary(RetrainSummary, folder / RETRAIN)
    result = summary.result
    inside, more = read_inside(RetrainInside, folder, result.digest)
    count = len(result.classes)
    is_whole = [len(row) for row in result.confusion] == [count] * count
    matrix = result.confusion if is_whole else ()
    return RetrainFolder(
        summary,
        _class_rows(summary, matrix),
        matrix,
        tuple(map(_safe, inside.mistakes)) if inside else (),
        (*losses, *more),
        inside.curves if inside else (),
    )


def _safe(mistake: MistakeRow) -> MistakeRow:
    is_picture = _BASE64.fullmatch(mistake.thumbnail)
    return mistake if is_picture else replace(mistake, thumbnail="")


def _class_rows(summary: RetrainSummary, matrix: Matrix) -> tuple[ClassRow, ...]:
    result, counts = summary.result, summary.data.learned_counts
    found: list[ClassRow] = []
    for place, name in enumerate(result.classes):
        own = result.per_class[place] if place < len(result.per_class) else None
        found.append(
            ClassRow(
                name=name,
                count=own.n if own else 0,
                learned=counts[place] if place < len(counts) else 0,
                share=own.share if own else None,
                taken_for=_taken_for(result.classes, matrix, place),
            )
        )
    return tuple(found)


def _taken_for(names: tuple[str, ...], matrix: Matrix, place: int) -> str:
    if not matrix:
        return ""
    others = [(count, other) for other, count in enumerate(matrix[place]) if other != place]
    confused = sorted(((c, o) for c, o in others if c), key=lambda pair: (-pair[0], pair[1]))
    return ", ".join(f"{names[other]} {count}" for count, other in confused[:3])


def guess_share(record: RetrainFolder) -> float:
    """The share that is right by always answering the largest class."""
    counts = record.summary.data.judged_counts or tuple(row.count for row in record.classes)
    return max(counts) / sum(counts) if sum(counts) else 0.0
