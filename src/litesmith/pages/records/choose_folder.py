"""What `choose` left in its folder, as far as it can be read."""

from dataclasses import dataclass
from pathlib import Path

from litesmith.evidence.choosing import CandidateRow, ChooseSummary
from litesmith.evidence.folder import CHOOSE
from litesmith.evidence.records import Score, Speed
from litesmith.evidence.tuning import FITS, MISSES
from litesmith.pages.records.salvage_folder import read_summary
from litesmith.pages.records.tune_folder import Entry
from litesmith.phrases import phrase


@dataclass(frozen=True)
class ChosenModel:
    """A candidate; `entry` is what graphs draw of it.

    is_measured  False where its accuracy is what its makers published
    """

    entry: Entry
    row: CandidateRow
    is_measured: bool = True

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def source(self) -> str:
        """Who published the accuracy; "" where nobody did."""
        return self.row.published.source if self.row.published else ""

    @property
    def time_ends(self) -> tuple[float | None, float | None]:
        return self.row.p50_low_us, self.row.p50_high_us


@dataclass(frozen=True)
class ChooseFolder:
    """Everything that the report of a choice is made of; `losses` is what could not be read."""

    summary: ChooseSummary
    models: tuple[ChosenModel, ...] = ()
    losses: tuple[str, ...] = ()

    def model(self, name: str | None) -> ChosenModel | None:
        return next((model for model in self.models if model.name == name), None)


def read_chosen(folder: Path) -> ChooseFolder:
    """Everything that the folder holds; of a choice that was stopped, what there is so far."""
    summary, losses = read_summary(ChooseSummary, folder / CHOOSE)
    models = tuple(_model(row, summary) for row in summary.candidates)
    return ChooseFolder(summary, models, losses)


def _model(row: CandidateRow, summary: ChooseSummary) -> ChosenModel:
    score, is_measured = _score(row), True
    if score is None and row.published is not None:
        score, is_measured = _published(row.published.value), False
    is_asked = row.p50_us is not None and bool(summary.request.limits)
    entry = Entry(
        name=row.model or "a model",
        status="" if not is_asked else MISSES if row.misses else FITS,
        recipe=row.recipe,
        digest=row.digest,
        bytes=row.bytes or None,
        gzip_bytes=row.gzip_bytes or None,
        peak_bytes=row.peak_bytes or None,
        score=score,
        speed=None if row.p50_us is None else _speed(row.p50_us, summary.request.target),
        notes=row.notes,
    )
    return ChosenModel(entry, row, is_measured)


def _score(row: CandidateRow) -> Score | None:
    if row.value is None:
        return None
    return Score(
        metric=row.metric or "",
        title=row.title or phrase("accuracy"),
        unit=row.unit or "",
        value=row.value,
        low=row.low,
        high=row.high,
        n=row.n or 0,
        better=row.better,
    )


def _published(value: float) -> Score:
    return Score("", phrase("published, not measured here"), "share", value, None, None, 0)


def _speed(us: float, target: str) -> Speed:
    return Speed(target, "", us, None, None, None, None, "")
