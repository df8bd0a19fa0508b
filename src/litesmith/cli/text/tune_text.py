"""What `tune` prints, while it works and at the end."""

from collections.abc import Sequence
from time import monotonic

from rich.console import Group
from rich.table import Table
from rich.text import Text

from litesmith.cli.text.live_view import Screen, worker_lines
from litesmith.cli.text.printing import command, console, heading, line, localize, table
from litesmith.cli.text.progress_text import status_line
from litesmith.evidence.records import Score, Speed
from litesmith.evidence.tune_record import FLOAT, REFUSED, SET_ASIDE, TunedModel, TuneSummary
from litesmith.pages.records.record_words import faster_words, names_words
from litesmith.phrases import join, phrase
from litesmith.progress import Status
from litesmith.run.core.placement import ESTIMATED
from litesmith.search.trial.budget import KEPT, UNSURE
from litesmith.search.trial.tried_model import TriedModel
from litesmith.search.tuning.tree_walk import TuneView
from litesmith.search.tuning.tune_search import Found
from litesmith.timing.statistics import UNCLEAR
from litesmith.units import (
    bytes_text,
    gain_text,
    plain,
    score_text,
    time_text,
    total_text,
)

_STYLES = {
    "fits": "green",
    "near": "yellow",
    "misses": "yellow",
    "refused": "red",
    "set aside": "dim",
}


class Live(Screen):
    """The state of the search; without a terminal, a line for each trial."""

    def __init__(self, *, quiet: bool) -> None:
        super().__init__(quiet=quiet)
        self._began, self._told = monotonic(), 0
        self._what, self._since = "", 0.0

    def show(self, view: TuneView) -> None:
        if self.shows:
            self.draw(self._picture(view))
        elif not self.quiet and view.look is None:
            for record in view.records[self._told :]:
                status = "" if record.name == FLOAT else phrase("{status}, ", record.status)
                self.console.print(
                    localize(
                        phrase("{name}: {status}{reason}", record.name, status, record.trial.reason)
                    )
                )
            self._told = len(view.records)

    def _status(self, status: Status) -> Text:
        if status.what != self._what:
            self._what, self._since = status.what, monotonic()
        words = status_line(status, monotonic() - self._since)
        return Text(words, style="dim", no_wrap=True, overflow="ellipsis")

    def _picture(self, view: TuneView) -> Group:
        took = time_text(1e6 * (monotonic() - self._began))
        left = (
            ""
            if view.left is None
            else phrase(", about {time} left", time_text(1e6 * max(view.left, 1)))
        )
        doing = localize(
            phrase("{doing} · {took}{left}", view.doing or phrase("looking"), took, left), "bold"
        )
        parts: list[Text | Table] = [doing]
        if view.look is not None:
            look = view.look
            parts.append(
                localize(
                    phrase("{what}: step {step} of {steps}", look.what, look.step, look.steps),
                    "dim",
                )
            )
        if view.status is not None:
            parts.append(self._status(view.status))
        rows = trial_table(view.records, view.best.name if view.best else "")
        return Group(*parts, *worker_lines(view.workers), rows)


def trial_table(
    records: Sequence[TriedModel],
    best: str,
    minimize: str = "latency",
    summary: TuneSummary | None = None,
) -> Table:
    """One row per trial: its loss, its speed, its size, and the cost that is minimized. Times are
    those of the summary, once there is one.
    """
    is_micro = any(record.details.ram_bytes is not None for record in records)
    size = minimize if minimize in ("download", "memory") else "size"
    costs = ("RAM", "flash") if is_micro else ("time", size)
    found = [_micro_cells(one) if is_micro else _cells(one, size, summary) for one in records]
    is_paired = any(difference for _, difference, *_ in found)
    paired = ("against float",) if is_paired else ()
    last = 4 + len(paired)
    rows = table("", "tried", "result", "score", *paired, *costs, right=(3, last, last + 1))
    for record, (score, difference, *taken) in zip(records, found, strict=True):
        mark = "▶" if record.name == best else ""
        status = "" if record.name == FLOAT else record.status
        rows.add_row(
            mark,
            Text(plain(record.name)),
            localize(status, _STYLES.get(record.status, "")),
            score,
            *((difference,) if is_paired else ()),
            *taken,
        )
    return rows


def _micro_cells(record: TriedModel) -> tuple[str, str, str, str]:
    """The memory of a model on a microcontroller, in place of times."""
    sizes = (record.details.ram_bytes, record.details.flash_bytes)
    ram, flash = ("" if size is None else bytes_text(size) for size in sizes)
    difference = "" if record.name == FLOAT else _difference(record.accuracy)
    return _score(record.accuracy), difference, ram, flash


def _cells(
    record: TriedModel, kind: str, summary: TuneSummary | None
) -> tuple[str, str, str | Text, str]:
    accuracy, size, speed = record.accuracy, record.cost(kind), record.latency
    if summary is not None:
        speed = summary.stated_speed(record.name, speed)
    return (
        _score(accuracy),
        "" if record.name == FLOAT else _difference(accuracy),
        localize(_time(record, speed)),
        "" if size is None else bytes_text(int(size)),
    )


def _time(record: TriedModel, speed: Speed | None) -> str:
    """`798 µs, 2.38 × faster`, or a compiler's estimate, with the number of ops left out."""
    if speed is None or speed.p50_us is None:
        time = ""
    elif speed.ratio is None:
        time = phrase("~{time}", time_text(speed.p50_us))
    else:
        is_clear = speed.verdict != UNCLEAR
        words = faster_words(speed)[0] if is_clear else phrase("unclear")
        time = join(filter(None, (time_text(speed.p50_us), words)), ", ")
    return phrase("{time} ({count} left)", time, record.left) if record.left else time


def _score(accuracy: Score | None) -> str:
    if accuracy is None or accuracy.value is None:
        return ""
    return score_text(accuracy.value, accuracy.unit)


def _difference(accuracy: Score | None) -> str:
    paired = accuracy.against if accuracy else None
    if accuracy is None or paired is None or paired.difference is None:
        return ""
    low, high = paired.difference_low, paired.difference_high
    if low is None or high is None:
        return ""
    return gain_text(paired.difference, accuracy.unit, low, high)


def print_found(found: Found) -> None:
    """Prints the verdict, the trials, and the next commands."""
    summary, best = found.summary, found.summary.best
    line(_headline(found), "bold")
    heading("tried")
    chosen, minimize = best.name if best else "", summary.request.minimize
    console.print(trial_table(found.records, chosen, minimize, summary))
    for record in found.records:
        if record.status in (REFUSED, SET_ASIDE):
            told = phrase(
                "{name}, {status}: {reason}", record.name, record.status, record.trial.reason
            )
            console.print(localize(told, "dim"))
    data = summary.data
    line(
        phrase(
            "chosen on {count} samples, proven on {count2} others; {count3} more were for "
            "calibration",
            total_text(data.search),
            total_text(data.held_out),
            total_text(data.calibration),
        )
    )
    heading("result")
    if best is not None:
        line(phrase("{best}: run it {where}", found.best, _where(best)))
        whole = names_words(best.whole_on or ())
        line(phrase("runs entirely on: {whole}", whole or phrase("no accelerator")))
        line(phrase("recipe: {recipe}", best.recipe))
    if found.report is not None:
        line(phrase("report: {page}", found.report))
    if summary.next:
        heading("next")
    for step in summary.next:
        line(step.purpose)
        if step.command:
            command(f"  {step.command}")


def _headline(found: Found) -> str:
    if found.verdict == UNSURE:
        return phrase("{unclear}; {sentence}", UNCLEAR, found.sentence)
    if found.verdict == KEPT:
        return found.sentence
    return phrase("{verdict}: {sentence}", found.verdict, found.sentence)


def _where(best: TunedModel) -> str:
    """The target of the best file; an estimated time is marked as not measured."""
    latency = best.latency
    if latency is not None and latency.how == ESTIMATED:
        return phrase("with {target}, whose compiler estimated the time (~)", best.target)
    is_timed = latency is not None and latency.ratio
    return phrase("with {target}", best.target) if is_timed else phrase("on {target}", best.target)
