"""`tune`: from a model and a budget to the best file within it, with the proof."""

from dataclasses import dataclass, replace
from pathlib import Path

from litesmith.display import show_html, show_line
from litesmith.evidence.codec import encode, encode_fields
from litesmith.evidence.tune_record import DONE, RUNNING, STOPPED, TuneSummary
from litesmith.passes.core.recipe import parse
from litesmith.phrases import phrase
from litesmith.search.trial.budget import MISSED
from litesmith.search.trial.tried_model import TriedModel
from litesmith.search.tuning.proof import look_into, prove
from litesmith.search.tuning.tree_walk import Search, Tell, TuneTask, silent
from litesmith.search.tuning.tune_summary import recipe_file, summarize
from litesmith.training.recipe_context import trainings
from litesmith.workers.engine import Lost


@dataclass(frozen=True, repr=False)
class Found:
    """The outcome of a search; the folder holds everything else.

    best     the file to ship; None where nothing fits
    summary  the state of the search, as tune.json stores it
    records  every candidate, in the order of the trials
    fresh    the number of trials that were not on record
    report   the page of the folder; None where none was asked for
    """

    folder: Path
    best: Path | None
    summary: TuneSummary
    records: tuple[TriedModel, ...]
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
    def verdict(self) -> str:
        """The verdict: proven, likely, unclear, keep or missed."""
        return self.summary.verdict or MISSED

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the measured times."""
        return self.summary.warnings

    @property
    def is_as_asked(self) -> bool:
        """False where nothing fits."""
        return self.best is not None

    @property
    def sentence(self) -> str:
        return self.summary.sentence

    def to_rows(self) -> list[dict[str, object]]:
        """One row for each tried candidate."""
        return [one.row() for one in self.records]

    def to_json(self) -> dict[str, object]:
        """The outcome of the search, as `--json` prints it."""
        summary = self.summary
        best, first = summary.best, summary.first
        shown: dict[str, object] = {
            "schema": 1,
            "verdict": self.verdict,
            "sentence": self.sentence,
            "within_budget": self.best is not None,
            "folder": str(self.folder),
            "report": None if self.report is None else str(self.report),
            **dict.fromkeys(("best", "value", "drop", "latency_ratio", "bytes_ratio")),
            "float": encode(first),
            "front": summary.front,
            "nearest": encode(summary.nearest),
            "next": tuple(step.text for step in summary.next),
        }
        if best is not None:
            difference = best.accuracy and best.accuracy.difference
            before = first and first.bytes
            shown |= {
                "best": encode(replace(best, file=str(self.best))),
                "value": best.accuracy and best.accuracy.value,
                "drop": None if difference is None else -difference,
                "latency_ratio": best.latency and best.latency.ratio,
                "bytes_ratio": None if not before or best.bytes is None else best.bytes / before,
            }
        return shown


def default_folder(model: Path) -> Path:
    """The default folder for a search of this model."""
    return Path(f"{model.stem}-tuned")


def carry_out(request: TuneTask, tell: Tell = silent) -> Found:
    """Searches, proves and writes; the best so far is on disk at every moment."""
    search = Search(request, tell)
    with search.hold():
        try:
            if search.is_new_request:
                search.folder.unship()
            _keep(search)
            search.walk(lambda: _keep(search))
            search.show(phrase("proof: held-out samples, and times in turns"))
            return _end(search)
        except BaseException as error:
            if search.trials.records:
                _keep(search, STOPPED)
            if isinstance(error, KeyboardInterrupt | Lost):
                error.add_note(_kept_text(search))
            raise


def _kept_text(search: Search) -> str:
    """What is left after Ctrl-C, or after the cluster was lost."""
    folder = search.folder
    best = (
        phrase("the best so far is {best}", folder.best)
        if folder.best.exists()
        else phrase("nothing fits so far")
    )
    return phrase(
        "{best}; the same command resumes, and litesmith report {path} shows it", best, folder.path
    )


def _keep(search: Search, state: str = RUNNING) -> None:
    """Writes the best file so far, and the summary that describes it."""
    if not search.has_news:  # what lies there is as good, or better
        return
    best = search.best
    if best is None:
        search.folder.unship()
    elif made := search.folder.found(best.name, best.digest):
        search.folder.ship(made)
        search.folder.write_recipe(recipe_file(search, best))
    # If the best model's file is gone, it is rebuilt at the end, should the model still be the
    # best.
    search.folder.write_summary(summarize(search, state))


def _end(search: Search) -> Found:
    folder, trials = search.folder, search.trials
    proof = prove(trials, search.request.targets)
    shown = proof.shipped or proof.verified
    if shown is not None:
        shown = trials.records[shown.name]
    if proof.shipped is not None:
        folder.ship(trials.file(proof.shipped))
        folder.write_recipe(recipe_file(search, proof.shipped))
    else:
        folder.unship()
    search.show(phrase("looking into the result"))
    look_into(trials, shown, proof.front)
    named = {*proof.front, *([shown.name] if shown else [])}
    files = {name: trials.file(r) for name, r in trials.records.items() if name in named}
    folder.write_front(files)
    summary = summarize(search, DONE, proof)
    folder.write_summary(summary)
    slow = {r.name for r in trials.records.values() if trainings(parse(r.recipe))}
    folder.tidy(slow)
    best = folder.best if proof.shipped is not None else None
    return Found(folder.path, best, summary, tuple(trials.records.values()), trials.fresh)
