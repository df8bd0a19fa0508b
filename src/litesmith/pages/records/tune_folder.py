"""The folder of `tune`, as far as it can be read: a row for each model, and the rest."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from litesmith.evidence.codec import Salvaged
from litesmith.evidence.folder import TUNE
from litesmith.evidence.log import Log
from litesmith.evidence.measurement import Skipped, Trial
from litesmith.evidence.records import Score, Speed, Taker
from litesmith.evidence.tune_record import (
    CANDIDATE,
    DONE,
    TIMED,
    VERIFIED,
    ProofTimes,
    Tried,
    TunedInside,
    TuneSummary,
)
from litesmith.pages.records.salvage_folder import (
    find_changed,
    read_inside,
    read_optional,
    read_summary,
)
from litesmith.phrases import phrase

# A trial without a kind is that of a candidate.
_KINDS: dict[str, type[Tried] | type[ProofTimes]] = {
    "": Tried,
    CANDIDATE: Tried,
    VERIFIED: Tried,
    TIMED: ProofTimes,
}


@dataclass(frozen=True)
class Entry:
    """A tried model, by its name; None where something was not measured.

    score   the score on the search samples
    room    how far that score is above the least allowed one
    proof   the score on the held-out samples
    """

    name: str
    status: str = ""
    recipe: str = ""
    digest: str = ""
    reasons: tuple[str, ...] = ()
    bytes: int | None = None
    gzip_bytes: int | None = None
    peak_bytes: int | None = None
    ram_bytes: int | None = None
    flash_bytes: int | None = None
    score: Score | None = None
    room: float | None = None
    proof: Score | None = None
    speed: Speed | None = None
    is_integer: bool = False
    notes: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    seconds: float | None = None
    takers: tuple[Taker, ...] = ()


@dataclass(frozen=True)
class TuneFolder:
    """Everything in the report of a search.

    replay   the command that rebuilds the best model
    inside   the bulky details of models, by digest
    losses   what could not be read, and why
    changed  the files that differ from those measured
    folder   the path of the folder
    """

    summary: TuneSummary
    entries: tuple[Entry, ...] = ()
    replay: str = ""
    inside: Mapping[str, TunedInside] = field(default_factory=dict[str, TunedInside])
    losses: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    folder: Path | None = None

    def entry(self, name: str) -> Entry | None:
        """The trial of that name."""
        return next((entry for entry in self.entries if entry.name == name), None)

    @property
    def shown(self) -> str:
        """The name of the best model, or of the nearest where none fits; "" where there is none."""
        return self.summary.chosen.name if self.summary.chosen else ""


@dataclass(frozen=True)
class _Command:
    """The part of recipe.json that a page needs."""

    command: str


def read_search(folder: Path) -> TuneFolder:
    """Reads the folder of a search, finished or not."""
    summary, losses = read_summary(TuneSummary, folder / TUNE)
    log = folder / "trials.jsonl"
    trials = Log(log).salvage(_KINDS) if log.exists() else Salvaged((), ())
    entries = list_entries(_of_search(trials.value, summary))
    digests = sorted({summary.model_digest, *(entry.digest for entry in entries)} - {""})
    found = {digest: read_inside(TunedInside, folder, digest) for digest in digests}
    inside = {digest: one.value for digest, one in found.items() if one.value is not None}
    recipe = read_optional(_Command, folder / "recipe.json")
    known = _known_scores(summary)
    return TuneFolder(
        summary=known,
        entries=tuple(
            replace(_with_takers(one, inside), speed=known.stated_speed(one.name, one.speed))
            for one in entries
        ),
        replay=recipe.value.command if recipe.value else "",
        inside=inside,
        changed=find_changed(_measured_files(folder, known)),
        folder=folder,
        losses=(*losses, *trials.losses, *(why for one in found.values() for why in one.losses)),
    )


def _measured_files(folder: Path, summary: TuneSummary) -> Iterator[tuple[Path, str]]:
    """The files that a page speaks of, with the digests that were measured."""
    # before the end, the folder may hold the best file of an earlier search
    if summary.best is not None and summary.state == DONE:
        yield folder / "best.tflite", summary.best.digest
    if summary.model_path:
        yield Path(summary.model_path), summary.model_digest


def _known_scores(summary: TuneSummary) -> TuneSummary:
    """The summary without scores and times that have no value."""
    models = (summary.best, summary.nearest, summary.first)
    best, nearest, first = (
        one and replace(one, accuracy=known_score(one.accuracy), latency=known_speed(one.latency))
        for one in models
    )
    return replace(summary, best=best, nearest=nearest, first=first)


def known_score(score: Score | None) -> Score | None:
    """A score that has a value; one without a title gets the most general."""
    if score is None or score.value is None:
        return None
    return replace(score, title=score.title or score.metric or phrase("accuracy"))


def known_speed(speed: Speed | None) -> Speed | None:
    """A speed that has a time or a ratio to the float model."""
    return speed if speed is not None and (speed.p50_us or speed.ratio) else None


def _with_takers(entry: Entry, inside: Mapping[str, TunedInside]) -> Entry:
    found = inside.get(entry.digest)
    return replace(entry, takers=found.accelerators or ()) if found else entry


def _of_search(
    trials: tuple[Trial[Tried | ProofTimes], ...], summary: TuneSummary
) -> list[Trial[Tried]]:
    """The trials of models that the summary is about: a folder may hold those of other requests
    too."""
    keys = {*summary.keys}
    return [
        trial.with_details(trial.details)
        for trial in trials
        if isinstance(trial.details, Tried) and (not keys or trial.details.key in keys)
    ]


def list_entries(trials: list[Trial[Tried]]) -> tuple[Entry, ...]:
    """The trials by name, in the order in which the names were first seen; the last line counts."""
    kept: dict[str, dict[str, Trial[Tried]]] = {}
    for place, trial in enumerate(trials, 1):
        name = trial.details.name or phrase("trial {place}", place)
        kept.setdefault(name, {})[trial.details.kind] = trial
    return tuple(_entry(name, **kinds) for name, kinds in kept.items())


def _entry(
    name: str, candidate: Trial[Tried] | None = None, verified: Trial[Tried] | None = None
) -> Entry:
    trial = candidate or verified
    assert trial is not None
    own, later = trial.details, verified.details if verified else None
    seconds = [one.details.seconds for one in {id(t): t for t in (trial, verified) if t}.values()]
    return Entry(
        name=name,
        status=(later.status if later else "") or own.status,
        recipe=trial.recipe,
        digest=trial.model_digest,
        reasons=_reasons(own, trial, verified),
        bytes=own.bytes or (later and later.bytes),
        gzip_bytes=own.gzip_bytes or (later and later.gzip_bytes),
        peak_bytes=own.peak_bytes or (later and later.peak_bytes),
        ram_bytes=own.ram_bytes,
        flash_bytes=own.flash_bytes,
        score=known_score(own.accuracy) if candidate else None,
        room=own.room.estimate if candidate and own.room else None,
        proof=known_score(later.accuracy) if later else None,
        speed=known_speed(later.latency if later else None) or known_speed(own.latency),
        is_integer=bool(own.is_integer or (later and later.is_integer)),
        skipped=trial.skipped,
        seconds=sum(seconds) or None,
    )


def _reasons(own: Tried, *trials: Trial[Tried] | None) -> tuple[str, ...]:
    """Why the candidate was tried, and the outcomes that no column shows."""
    if own.why and own.accuracy is not None:
        return (own.why,)
    reasons = (own.why, *(trial.reason for trial in trials if trial is not None))
    return tuple(dict.fromkeys(one for one in reasons if one))
