"""`choose`: several models on one user's data and machine, the front, and the one to take."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from litesmith.data.preparation import Preparation
from litesmith.data.sources import UNTOUCHED, Given
from litesmith.display import show_html, show_line
from litesmith.errors import BadInput
from litesmith.evidence.choosing import ChooseSummary
from litesmith.evidence.codec import encode_fields
from litesmith.evidence.tuning import DONE, STOPPED
from litesmith.phrases import phrase
from litesmith.run.core.target import Target
from litesmith.run.devices.address import Address
from litesmith.search.choosing.candidates import list_candidates
from litesmith.search.choosing.choose_run import Choosing, Request, Tell, silent
from litesmith.search.choosing.pick import CEILINGS, Requirements
from litesmith.search.choosing.shared_data import Source
from litesmith.timing.latency import parse_place
from litesmith.workers.engine import Engine, Lost, open_engine

DEFAULT_FOLDER = Path("chosen")


@dataclass(frozen=True, repr=False)
class Chosen:
    """What came out; everything else is in the folder.

    pick     the file to take; None where nothing fits
    summary  where the choice stands, as choose.json has it
    fresh    how many measurements were not on record
    """

    folder: Path
    pick: Path | None
    summary: ChooseSummary
    fresh: int

    @property
    def facts(self) -> dict[str, object]:
        """The summary as JSON has it."""
        return encode_fields(self.summary)

    @property
    def reason(self) -> str:
        return self.summary.reason

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is to be said of the times."""
        return self.summary.warnings

    @property
    def candidates(self) -> tuple[dict[str, object], ...]:
        """A row for each model, by name and value."""
        return tuple(encode_fields(row) for row in self.summary.candidates)

    @property
    def sentence(self) -> str:
        return self.reason

    def to_rows(self) -> list[dict[str, object]]:
        """One row for each candidate."""
        return list(self.candidates)

    __repr__ = show_line

    def _repr_html_(self) -> str:
        return show_html(self, self.warnings)


def choose(
    candidates: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    data: Given | None = None,
    *,
    max_latency: str | None = None,
    max_size: str | None = None,
    max_memory: str | None = None,
    min_accuracy: str | None = None,
    minimize: str | None = None,
    on: str | Target = "cpu:1",
    retrain: bool = False,
    val: Given | None = None,
    quantized: bool = False,
    effort: str = "default",
    calibrate: Given | None = None,
    metric: str = "auto",
    samples: int | None = None,
    preparation: Preparation = UNTOUCHED,
    seconds: float | None = None,
    out: str | os.PathLike[str] | None = None,
    engine: str | Engine | None = None,
) -> Chosen:
    """Measures models on data and this machine, and names the one to take.

    >>> litesmith.choose("models/*.tflite", "val/", max_latency="10ms").pick   # doctest: +SKIP

    Candidates are files, patterns as `models/*.tflite`, or names of the catalogue. Without data
    time, size and memory are compared. The folder `out` has the evidence and what was made.
    `engine="ray"` has the workers of a Ray cluster make, time and score them.
    """
    texts = [candidates] if isinstance(candidates, str | os.PathLike) else list(candidates)
    typed = dict(zip(CEILINGS, (max_latency, max_size, max_memory), strict=True))
    request = Request(
        list_candidates(texts),
        Path(out) if out is not None else DEFAULT_FOLDER,
        Requirements.parse(typed, min_accuracy, minimize),
        None if data is None else Source(data, preparation, samples),
        calibrate,
        one_target(on),
        quantized,
        effort,
        metric,
        seconds,
        retrains=retrain,
        val=val,
    )
    with open_engine(engine) as found:
        return carry_out(replace(request, engine=found))


def one_target(on: str | Target) -> Target | Address:
    """Where models are compared."""
    if isinstance(on, str) and "," in on:
        raise BadInput("--on {on}: models are compared on one target; give one, as in cpu:2", on)
    return parse_place(on)


def carry_out(request: Request, tell: Tell = silent) -> Chosen:
    """Measures, picks and writes; what was measured is on disk at every moment."""
    choosing = Choosing(request, tell)
    with choosing.folder.held():
        try:
            if request.engine is not None and tell is not silent:
                request.engine.watch(choosing.show_workers)
            choosing.measure()
            summary = choosing.summarize(DONE)
            choosing.folder.write_summary(summary)
        except BaseException as error:
            if choosing.rows:
                choosing.folder.write_summary(choosing.summarize(STOPPED))
            if isinstance(error, KeyboardInterrupt | Lost):
                place = choosing.folder.path
                error.add_note(
                    phrase(
                        "what was measured is in {place}; the same command goes on, and "
                        "litesmith report {place} shows it",
                        place,
                    )
                )
            raise
    taken = None if summary.pick_file is None else Path(summary.pick_file)
    return Chosen(choosing.folder.path, taken, summary, choosing.trials.runner.fresh)
