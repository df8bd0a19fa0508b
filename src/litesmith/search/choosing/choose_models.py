"""`choose`: several models on one user's data and machine, the front, and the one to take."""

from dataclasses import dataclass
from pathlib import Path

from litesmith.display import show_html, show_line
from litesmith.errors import BadInput
from litesmith.evidence.choose_record import ChooseSummary
from litesmith.evidence.codec import encode_fields
from litesmith.evidence.tune_record import DONE, STOPPED
from litesmith.phrases import phrase
from litesmith.run.core.target import Target
from litesmith.run.devices.address import Address
from litesmith.search.choosing.choose_run import ChooseTask, Choosing, Tell, silent
from litesmith.timing.latency import parse_place
from litesmith.workers.engine import Lost

DEFAULT_FOLDER = Path("chosen")


@dataclass(frozen=True, repr=False)
class Chosen:
    """The outcome of a choice; the folder holds everything else.

    pick     the file to take; None where nothing fits
    summary  the state of the choice, as choose.json stores it
    fresh    the number of measurements that were not already on record
    report   the page of the folder; None where none was asked for
    """

    folder: Path
    pick: Path | None
    summary: ChooseSummary
    fresh: int
    report: Path | None = None

    __repr__ = show_line

    def _repr_html_(self) -> str:
        return show_html(self, self.warnings)

    @property
    def facts(self) -> dict[str, object]:
        """The summary as JSON stores it."""
        return encode_fields(self.summary)

    @property
    def reason(self) -> str:
        return self.summary.reason

    @property
    def is_as_asked(self) -> bool:
        """False where nothing fits."""
        return self.pick is not None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the measured times."""
        return self.summary.warnings

    @property
    def sentence(self) -> str:
        return self.reason

    @property
    def notes(self) -> list[str]:
        """Decisions made for the user; a note that applies to several models appears once."""
        names: dict[str, list[str]] = {}
        for row in self.summary.candidates:
            for note in row.notes:
                names.setdefault(note, []).append(row.model)
        every = len(self.summary.candidates)
        told = [
            note if len(own) == every else phrase("{names}: {note}", ", ".join(own), note)
            for note, own in names.items()
        ]
        return [*self.summary.notes, *told]

    def to_rows(self) -> list[dict[str, object]]:
        """One row per candidate, for a data frame."""
        return list(self.candidates)

    def to_json(self) -> dict[str, object]:
        """The measurements and the pick, as `--json` prints them."""
        facts = self.facts
        keys = ("pick", "pick_file", "nearest", "reason", "front", "basis", "request", "data")
        return {
            "schema": 1,
            "candidates": facts["candidates"],
            **{key: facts[key] for key in (*keys, "notes", "warnings")},
            "folder": str(self.folder),
            "report": None if self.report is None else str(self.report),
        }

    @property
    def candidates(self) -> tuple[dict[str, object], ...]:
        """One row per model, with values by name."""
        return tuple(encode_fields(row) for row in self.summary.candidates)


def one_target(on: str | Target) -> Target | Address:
    """The single target on which the models are compared."""
    if isinstance(on, str) and "," in on:
        raise BadInput("--on {on}: models are compared on one target; give one, as in cpu:2", on)
    return parse_place(on)


def carry_out(request: ChooseTask, tell: Tell = silent) -> Chosen:
    """Measures, picks and writes; every finished measurement is on disk at once."""
    choosing = Choosing(request, tell)
    with choosing.folder.hold():
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
                        "what was measured is in {place}; the same command resumes, and "
                        "litesmith report {place} shows it",
                        place,
                    )
                )
            raise
    taken = None if summary.pick_file is None else Path(summary.pick_file)
    return Chosen(choosing.folder.path, taken, summary, choosing.trials.runner.fresh)
