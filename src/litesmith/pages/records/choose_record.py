"""What `choose` left in its folder, as values in which anything may be missing."""

from dataclasses import dataclass, field
from pathlib import Path

from litesmith.pages.records.read_folder import read_summary
from litesmith.pages.records.tolerant_json import (
    Fields,
    fields,
    number,
    positive,
    rows,
    text,
    texts,
)
from litesmith.pages.records.tune_record import Entry, Score, Sizes, Speed
from litesmith.phrases import phrase

FITS, MISSES = "fits", "misses"


@dataclass(frozen=True)
class Model:
    """A candidate; `entry` is what graphs draw of it.

    is_measured  False where its accuracy is what its makers published
    as_good      models that differ from it by no more than the noise
    misses       what it has too much or too little of
    """

    entry: Entry
    file: str = ""
    on_front: bool = False
    is_measured: bool = True
    source: str = ""
    as_good: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()
    preparation: str = ""
    time_ends: tuple[float | None, float | None] = (None, None)

    @property
    def name(self) -> str:
        return self.entry.name


@dataclass(frozen=True)
class Record:
    """Everything that the report of a choice is made of."""

    version: str = ""
    command: str = ""
    state: str = ""
    basis: str = ""
    pick: str = ""
    nearest: str = ""
    reason: str = ""
    goal: str = ""
    target: str = ""
    limits: tuple[str, ...] = ()
    ceilings: Fields = field(default_factory=dict[str, object])
    min_accuracy: float | None = None
    models: tuple[Model, ...] = ()
    data: Fields = field(default_factory=dict[str, object])
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    environment: Fields = field(default_factory=dict[str, object])
    seconds: float | None = None

    def model(self, name: str) -> Model | None:
        return next((model for model in self.models if model.name == name), None)


def read_chosen(folder: Path) -> Record:
    """Everything that the folder holds; of a choice that was stopped, what there is so far."""
    shown = read_summary(folder / "choose.json", "choose")
    request = fields(shown.get("request"))
    words = ("version", "command", "state", "basis", "pick", "nearest", "reason")
    return Record(
        **{word: text(shown.get(word)) for word in words},
        goal=text(request.get("goal")),
        target=text(request.get("target")),
        limits=texts(request.get("limits")),
        ceilings=fields(request.get("ceilings")),
        min_accuracy=number(request.get("min_accuracy")),
        models=tuple(_model(row, request) for row in rows(shown.get("candidates"))),
        data=fields(shown.get("data")),
        notes=texts(shown.get("notes")),
        warnings=texts(shown.get("warnings")),
        environment=fields(shown.get("environment")),
        seconds=positive(shown.get("seconds")),
    )


def _model(shown: Fields, request: Fields) -> Model:
    published = fields(shown.get("published"))
    score, is_measured = _score(shown), True
    told = number(published.get("value"))
    if score is None and told is not None:
        score, is_measured = Score(phrase("published, not measured here"), "share", told), False
    misses = texts(shown.get("misses"))
    time = positive(shown.get("p50_us"))
    is_asked = time is not None and bool(texts(request.get("limits")))
    status = "" if not is_asked else MISSES if misses else FITS
    names = ("bytes", "gzip_bytes", "peak_bytes")
    return Model(
        Entry(
            name=text(shown.get("model")) or "a model",
            status=status,
            recipe=text(shown.get("recipe")),
            digest=text(shown.get("digest")),
            sizes=Sizes(*(positive(shown.get(name)) for name in names)),
            score=score,
            speed=None if time is None else Speed(text(request.get("target")), time),
            notes=texts(shown.get("notes")),
        ),
        file=text(shown.get("file")),
        on_front=shown.get("on_front") is True,
        is_measured=is_measured,
        source=text(published.get("source")),
        as_good=texts(shown.get("as_good")),
        misses=misses,
        preparation=text(shown.get("preparation")),
        time_ends=(positive(shown.get("p50_low_us")), positive(shown.get("p50_high_us"))),
    )


def _score(shown: Fields) -> Score | None:
    value = number(shown.get("value"))
    if value is None:
        return None
    return Score(
        text(shown.get("title")) or "accuracy",
        text(shown.get("unit")),
        value,
        number(shown.get("low")),
        number(shown.get("high")),
        positive(shown.get("n")),
        is_lower_better=(number(shown.get("better")) or 0) < 0,
    )
