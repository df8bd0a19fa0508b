"""What `choose` prints, while it works and at the end."""

from collections.abc import Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from litesmith.cli.text.live_view import Screen, worker_lines
from litesmith.cli.text.printing import (
    command,
    console,
    heading,
    line,
    localize,
    shorten_names,
    table,
)
from litesmith.evidence.choose_record import NONE, CandidateRow
from litesmith.operating_system import quote
from litesmith.phrases import join, phrase
from litesmith.search.choosing.choose_models import Chosen
from litesmith.search.choosing.choose_run import ChooseView
from litesmith.units import bytes_text, score_text, spread_text, time_text, total_text

PICKED, ON_FRONT = "▶", "●"

_OTHERS = 54  # the columns of the terminal without those of the name


class Live(Screen):
    """The present work and the results so far; without a terminal, a line for each step."""

    _told = ""

    def show(self, view: ChooseView) -> None:
        left = (
            ""
            if view.left is None
            else phrase(" · about {time} left", time_text(1e6 * max(view.left, 1)))
        )
        if self.shows:
            doing = localize(phrase("{doing}{left}", view.doing, left), "bold")
            rows = [candidate_table(view.rows, "")] if view.rows else []
            self.draw(Group(doing, *worker_lines(view.workers), *rows))
        elif not self.quiet and view.left is not None:
            if view.step != self._told:
                self.console.print(
                    localize(phrase("{step}{left}", view.step, left)), soft_wrap=True
                )
            self._told = view.step


def candidate_table(rows: Sequence[CandidateRow], picked: str) -> Table:
    """One row per candidate, in 80 columns."""
    shown = table("", "model", "accuracy", "time", "size", "gzip", "memory", right=(2, 3, 4, 5, 6))
    names = shorten_names([row.model for row in rows], _OTHERS)
    for row in rows:
        mark = PICKED if row.model == picked else " "
        shown.add_row(
            mark + (ON_FRONT if row.on_front else ""),
            Text(names[row.model]),
            _accuracy(row),
            "" if row.p50_us is None else time_text(row.p50_us),
            *map(_size, (row.bytes, row.gzip_bytes, row.peak_bytes)),
        )
    return shown


def _accuracy(row: CandidateRow) -> Text:
    unit = row.unit or ""
    if row.value is None:
        told = "" if row.published is None else score_text(row.published.value, "share")
        return localize(phrase("({told})", told) if told else "", "dim")
    if row.low is None or row.high is None:
        return localize(score_text(row.value, unit))
    return localize(spread_text(row.value, unit, row.low, row.high))


def _size(count: int | None) -> str:
    return "" if count is None else bytes_text(count)


def print_chosen(found: Chosen) -> None:
    """Prints the pick and why, every candidate, and the paths of file and report."""
    summary, data = found.summary, found.summary.data
    heading(phrase("candidates on {target}", summary.request.target))
    console.print(candidate_table(summary.candidates, summary.pick or ""))
    for words in _legend(found):
        line(words, "dim")
    for row in summary.candidates:
        for words in near_words(row, summary.candidates):
            line(words)
    if data is not None:
        aside = [
            phrase("{count} others were {what}", total_text(count), what)
            for count, what in (
                (data.learned, phrase("learned from")),
                (data.calibration, phrase("for calibration")),
            )
            if count
        ]
        same = phrase(
            "scored on the same {count} samples of {source}", total_text(data.judged), data.source
        )
        line(join((same, *aside), "; "))
    heading("pick")
    line(found.reason, "bold")
    if found.pick is not None:
        line(phrase("file: {pick}", found.pick))
    if found.report is not None:
        line(phrase("report: {page}", found.report))
    for words in next_steps(found):
        command(words)


def _legend(found: Chosen) -> list[str]:
    rows = found.summary.candidates
    told: list[str] = []
    if any(row.on_front for row in rows):
        what = (
            phrase("accuracy, time and size")
            if found.summary.basis != NONE
            else phrase("time and size")
        )
        told.append(
            phrase("{on_front} on the front: no other is better in {what} at once", ON_FRONT, what)
        )
    if any(row.value is None and row.published for row in rows):
        told.append(phrase("(…) published by its makers, not measured here"))
    return told


def near_words(row: CandidateRow, rows: Sequence[CandidateRow]) -> list[str]:
    """A sentence about models that are as good within the noise, unless another row has said so."""
    told = {other.model for other in rows if row.model in other.as_good}
    names = [name for name in row.as_good if row.on_front or name not in told]
    if not names:
        return []
    if row.on_front:
        if len(names) == 1:
            return [phrase("{name} is as good as {model} within the noise", names[0], row.model)]
        together = ", ".join(names)
        return [phrase("{names} are as good as {model} within the noise", together, row.model)]
    return [phrase("{model} is as good as {names} within the noise", row.model, ", ".join(names))]


def next_steps(found: Chosen) -> list[str]:
    """The next commands."""
    data, rows = found.summary.data, found.summary.candidates
    own = next((row for row in rows if row.model == found.summary.pick), None)
    if own is None or own.is_integer or data is None:
        return []
    model, source = quote(str(found.pick)), quote(data.source)
    return [f"litesmith tune {model} --data {source} --max-drop 1pt"]
