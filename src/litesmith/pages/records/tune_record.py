"""What a report knows: a folder's records as values, in which anything may be missing."""

from collections.abc import Mapping
from dataclasses import dataclass, field

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


@dataclass(frozen=True)
class Score:
    """How good a model is on some samples; differences are paired, from the float model."""

    title: str
    unit: str
    value: float
    low: float | None = None
    high: float | None = None
    count: float | None = None
    reference: float | None = None
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    agreement: float | None = None
    is_lower_better: bool = False


@dataclass(frozen=True)
class Speed:
    """How long a run takes; `ratio` is to the float model's time in the same interleaved run."""

    target: str = ""
    p50_us: float | None = None
    float_us: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    is_estimated: bool = False


@dataclass(frozen=True)
class Taker:
    """What one accelerator makes of a model, how that is known, and its time where it has one."""

    target: str
    how: str
    taken: int
    ops: int
    parts: int
    why: str
    latency_us: float | None = None
    latency_how: str = ""

    @property
    def is_whole(self) -> bool:
        return bool(self.ops) and self.taken == self.ops


@dataclass(frozen=True)
class Sizes:
    """What a model takes; None where it was not looked at."""

    file: float | None = None
    gzip: float | None = None
    peak: float | None = None


@dataclass(frozen=True)
class Entry:
    """A model that was tried, by its name.

    score   on the samples that the search looks at
    room    by how much that is better than the least that was asked for
    proof   on the samples that it does not look at
    """

    name: str
    branch: str = ""
    status: str = ""
    recipe: str = ""
    digest: str = ""
    reasons: tuple[str, ...] = ()
    sizes: Sizes = Sizes()
    score: Score | None = None
    room: float | None = None
    proof: Score | None = None
    speed: Speed | None = None
    is_integer: bool = False
    notes: tuple[str, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    seconds: float | None = None
    takers: tuple[Taker, ...] = ()


@dataclass(frozen=True)
class Chosen:
    """The model to ship, or the float model, as the summary tells of it."""

    name: str
    file: str
    recipe: str
    target: str
    sizes: Sizes
    score: Score | None
    speed: Speed | None
    scored_on: str = ""


@dataclass(frozen=True)
class Request:
    """What was asked for, in words."""

    minimize: str = ""
    budget: str = ""
    limits: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Question:
    """One step of the decision, and the trials that answered it."""

    branch: str
    question: str
    answer: str
    trials: tuple[str, ...]


@dataclass(frozen=True)
class OpTime:
    """The time of one op in a run."""

    kind: str
    name: str
    us: float


@dataclass(frozen=True)
class LayerError:
    """How far a layer's output is from the float model's, as a ratio of signal to noise."""

    index: int
    kind: str
    name: str
    decibels: float


@dataclass(frozen=True)
class Inside:
    """The bulky details of one model."""

    ops: tuple[OpTime, ...] = ()
    layers: tuple[LayerError, ...] = ()
    run_us: float | None = None
    takers: tuple[Taker, ...] = ()


@dataclass(frozen=True)
class Record:
    """Everything that a report is made of."""

    model: str = ""
    digest: str = ""
    version: str = ""
    command: str = ""
    state: str = ""
    request: Request = Request()
    data: Fields = field(default_factory=dict[str, object])
    verdict: str = ""
    sentence: str = ""
    best: Chosen | None = None
    nearest: Chosen | None = None  # where nothing is within what was asked
    base: Chosen | None = None
    front: tuple[str, ...] = ()
    path: tuple[Question, ...] = ()
    threads: tuple[Fields, ...] = ()
    next: tuple[str, ...] = ()
    environment: Fields = field(default_factory=dict[str, object])
    seconds: float | None = None
    entries: tuple[Entry, ...] = ()
    replay: str = ""  # the command that makes the best model again
    inside: Mapping[str, Inside] = field(default_factory=dict[str, Inside])  # by digest

    @property
    def chosen(self) -> Chosen | None:
        """The best model, or the nearest where none fits."""
        return self.best or self.nearest

    def entry(self, name: str) -> Entry | None:
        """The trial of that name."""
        return next((entry for entry in self.entries if entry.name == name), None)


def score_of(value: object) -> Score | None:
    shown = fields(value)
    found = number(shown.get("value"))
    if found is None:
        return None
    names = ("low", "high", "reference", "difference", "difference_low", "difference_high")
    return Score(
        title=text(shown.get("title")) or text(shown.get("metric")) or phrase("accuracy"),
        unit=text(shown.get("unit")),
        value=found,
        count=positive(shown.get("n")),
        agreement=number(shown.get("agreement")),
        is_lower_better=(number(shown.get("better")) or 0) < 0,
        **{name: number(shown.get(name)) for name in names},
    )


def speed_of(value: object) -> Speed | None:
    shown = fields(value)
    names = ("p50_us", "float_us", "ratio", "low", "high")
    is_estimated = text(shown.get("how")) == "estimated"
    times = (positive(shown.get(name)) for name in names)
    found = Speed(text(shown.get("target")), *times, is_estimated=is_estimated)
    return found if found.p50_us or found.ratio else None


def sizes_of(shown: Fields) -> Sizes:
    return Sizes(*(positive(shown.get(name)) for name in ("bytes", "gzip_bytes", "peak_bytes")))


_CHOSEN_WORDS = ("name", "file", "recipe", "target", "scored_on")


def chosen_of(value: object) -> Chosen | None:
    shown = fields(value)
    if not shown:
        return None
    return Chosen(
        **{name: text(shown.get(name)) for name in _CHOSEN_WORDS},
        sizes=sizes_of(shown),
        score=score_of(shown.get("accuracy")),
        speed=speed_of(shown.get("latency")),
    )


def request_of(value: object) -> Request:
    shown = fields(value)
    return Request(
        minimize=text(shown.get("minimize")),
        budget=text(shown.get("budget")),
        limits=texts(shown.get("limits")),
        targets=texts(shown.get("targets")),
    )


def path_of(value: object) -> tuple[Question, ...]:
    words = ("branch", "question", "answer")
    return tuple(
        Question(**{word: text(row.get(word)) for word in words}, trials=texts(row.get("trials")))
        for row in rows(value)
    )


def inside_of(value: object) -> Inside:
    shown = fields(value)
    ops = [
        OpTime(text(row.get("kind")), text(row.get("name")), us)
        for row in rows(shown.get("ops"))
        if (us := positive(row.get("us"))) is not None
    ]
    layers = [
        LayerError(
            int(number(row.get("index")) or 0), text(row.get("kind")), text(row.get("name")), ratio
        )
        for row in rows(shown.get("layers"))
        if (ratio := number(row.get("snr_db"))) is not None
    ]
    takers = tuple(map(_taker, rows(shown.get("accelerators"))))
    return Inside(tuple(ops), tuple(layers), positive(shown.get("run_us")), takers)


def _taker(row: Fields) -> Taker:
    taken, ops, parts = (int(number(row.get(key)) or 0) for key in ("taken", "ops", "partitions"))
    return Taker(
        text(row.get("target")),
        text(row.get("how")),
        taken,
        ops,
        parts,
        text(row.get("why")),
        positive(row.get("latency_us")),
        text(row.get("latency_how")),
    )
