"""What `retrain` left in its folder, read leniently."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from litesmith.pages.records.read_folder import read_optional, read_summary
from litesmith.pages.records.tolerant_json import (
    Fields,
    fields,
    number,
    positive,
    rows,
    text,
    texts,
)
from litesmith.phrases import phrase

# What a thumbnail may hold: it goes into the page as it is.
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")


@dataclass(frozen=True)
class Share:
    """A share that was right with its 95 % interval; None where it is not known."""

    value: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class ClassRow:
    name: str
    count: int
    learned: int
    share: Share
    taken_for: str


@dataclass(frozen=True)
class Mistake:
    name: str
    true: str
    said: str
    confidence: float | None
    thumbnail: str


@dataclass(frozen=True)
class Tried:
    """A strength of the head's penalty, and how it did in cross-validation."""

    strength: float
    loss: float
    accuracy: float


@dataclass(frozen=True)
class Record:
    version: str = ""
    command: str = ""
    model: str = ""
    backbone: str = ""
    is_scratch: bool = False
    share: Share = field(default_factory=Share)
    count: int = 0
    classes: tuple[ClassRow, ...] = ()
    matrix: tuple[tuple[int, ...], ...] = ()
    mistakes: tuple[Mistake, ...] = ()
    tried: tuple[Tried, ...] = ()
    strength: float | None = None
    tuned: Fields = field(default_factory=dict[str, object])
    alone: Share = field(default_factory=Share)
    learned: int = 0
    facts: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float | None = None
    environment: Fields = field(default_factory=dict[str, object])


def read_retrained(folder: Path) -> Record:
    """Everything that the folder holds."""
    shown = read_summary(folder / "retrain.json", "retrain")
    digest = text(shown.get("digest"))
    place = folder / "evidence" / f"{digest}.json"
    details = read_optional(place) if digest.isalnum() else {}
    names = texts(shown.get("classes"))
    matrix = _matrix(shown.get("confusion"), len(names))
    tuned = fields(shown.get("fine_tuned"))
    words = ("version", "command", "model", "backbone")
    return Record(
        **{word: text(shown.get(word)) for word in words},
        is_scratch=bool(fields(shown.get("from_scratch"))),
        share=_share(shown),
        count=_count(shown.get("n")),
        classes=_classes(shown, names, matrix),
        matrix=matrix,
        mistakes=tuple(_mistake(row) for row in rows(details.get("mistakes"))),
        tried=_tried(shown),
        strength=positive(shown.get("strength")),
        tuned=tuned,
        alone=_share(fields(tuned.get("head_alone"))),
        learned=_count(shown.get("learned")),
        facts=_facts(shown, digest),
        notes=texts(shown.get("notes")),
        seconds=positive(shown.get("seconds")),
        environment=fields(shown.get("environment")),
    )


def _share(shown: Fields) -> Share:
    return Share(*(number(shown.get(name)) for name in ("value", "low", "high")))


def _count(value: object) -> int:
    return int(number(value) or 0)


def _numbers(value: object) -> tuple[int, ...]:
    found = cast(list[object], value) if isinstance(value, list) else []
    return tuple(_count(one) for one in found)


def _matrix(value: object, classes: int) -> tuple[tuple[int, ...], ...]:
    """A row for each class; empty where it is not a table of that size."""
    found = cast(list[object], value) if isinstance(value, list) else []
    table = tuple(_numbers(row) for row in found)
    is_whole = len(table) == classes and all(len(row) == classes for row in table)
    return table if is_whole else ()


def _classes(
    shown: Fields, names: tuple[str, ...], matrix: tuple[tuple[int, ...], ...]
) -> tuple[ClassRow, ...]:
    per_class = rows(shown.get("per_class"))
    learned = _numbers(fields(shown.get("data")).get("learned_counts"))
    found: list[ClassRow] = []
    for place, name in enumerate(names):
        own = per_class[place] if place < len(per_class) else {}
        count = learned[place] if place < len(learned) else 0
        others = _taken_for(names, matrix, place)
        found.append(ClassRow(name, _count(own.get("n")), count, _share(own), others))
    return tuple(found)


def _taken_for(names: tuple[str, ...], matrix: tuple[tuple[int, ...], ...], place: int) -> str:
    if not matrix:
        return ""
    others = [(count, other) for other, count in enumerate(matrix[place]) if other != place]
    told = sorted(((c, o) for c, o in others if c), key=lambda pair: (-pair[0], pair[1]))
    return ", ".join(f"{names[other]} {count}" for count, other in told[:3])


def _mistake(row: Fields) -> Mistake:
    picture = row.get("thumbnail")
    is_safe = isinstance(picture, str) and _BASE64.fullmatch(picture)
    return Mistake(
        text(row.get("name")),
        text(row.get("true")),
        text(row.get("said")),
        number(row.get("confidence")),
        cast(str, picture) if is_safe else "",
    )


def _tried(shown: Fields) -> tuple[Tried, ...]:
    found: list[Tried] = []
    for row in rows(shown.get("head")):
        parts = [number(row.get(name)) for name in ("strength", "loss", "accuracy")]
        if all(part is not None for part in parts):
            found.append(Tried(*cast(list[float], parts)))
    return tuple(found)


def _facts(shown: Fields, digest: str) -> tuple[tuple[str, str], ...]:
    data, embedding = fields(shown.get("data")), fields(shown.get("embedding"))
    part = phrase("a part of it that was held out") if data.get("is_part") is True else ""
    size = number(embedding.get("size"))
    lines = (
        (phrase("learned from"), text(data.get("learned"))),
        (phrase("judged by"), part or text(data.get("judged"))),
        ("preparation", text(shown.get("preparation"))),
        ("embedding", text(embedding.get("how"))),
        (phrase("its tensor"), text(embedding.get("tensor"))),
        (phrase("numbers in it"), "" if size is None else str(int(size))),
        (phrase("SHA-256 of the model"), digest),
        (phrase("SHA-256 of the backbone"), text(shown.get("backbone_digest"))),
    )
    return tuple((name, words) for name, words in lines if words)
