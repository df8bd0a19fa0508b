"""What `compare` prints for people."""

from litesmith.accuracy.evaluate import Evaluation
from litesmith.accuracy.scoring import MOST_DB
from litesmith.cli.text import printing as show
from litesmith.pages.records.record_words import smaller_words
from litesmith.phrases import phrase
from litesmith.regression.comparison import Compared, OutputDrift
from litesmith.units import (
    bytes_text,
    gain_text,
    plain,
    score_text,
    time_text,
    total_text,
)

# The largest number of outputs in the table.
_MOST_OUTPUTS = 12


def print_comparison(found: Compared) -> None:
    """Prints the verdict, both models side by side, and the drift of the outputs."""
    show.line(found.verdict, "bold")
    rows = show.table("", "A", "B", "B against A", right=(1, 2))
    if found.accuracy is not None:
        rows.add_row(*_accuracy_cells(found.accuracy))
    times = [time_text(result.percentile_us(50)) for result in found.results]
    target = found.results[0].target
    rows.add_row(phrase("time on {target}", target), *times, show.localize(found.ratio.words))
    for name, sizes in found.file_sizes.items():
        rows.add_row(name, *map(_size_text, sizes), _quotient(*sizes))
    show.console.print()
    show.console.print(rows)
    if found.accuracy is not None:
        count, source = total_text(found.accuracy.n), plain(found.accuracy.source)
        told = phrase("{count} samples of {source}", count, source)
        how = found.accuracy.preparation
        show.line(phrase("{told}; {how}", told, how) if how else told)
    _print_drifts(found)


def _accuracy_cells(found: Evaluation) -> tuple[str, str, str, str]:
    against = found.against
    if against is None or against.value is None or against.difference is None:
        own = score_text(found.value, found.unit, found.low, found.high)
        return found.title, "", "", own
    ends = against.difference_low or 0.0, against.difference_high or 0.0
    gain = gain_text(against.difference, found.unit, *ends)
    values = score_text(against.value, found.unit), score_text(found.value, found.unit)
    return found.title, *values, gain


def _size_text(size: int | None) -> str:
    return "" if size is None else bytes_text(size)


def _quotient(a: int | None, b: int | None) -> str:
    return smaller_words(a, b) if a and b else ""


def _print_drifts(found: Compared) -> None:
    drifts = found.drifts
    if drifts.why:
        if drifts.why != found.why:  # the verdict already says so
            show.line(phrase("drift was not measured: {why}", drifts.why))
        show.line("litesmith eval scores each of them on its own")
        return
    count = drifts.samples
    on = phrase("{count} samples", count)
    if drifts.is_random:
        on = phrase("{count} random inputs", count)
    if all(drift.is_equal for drift in drifts.outputs):
        show.line(phrase("the outputs are equal on {on}", on))
    else:
        rows = show.table("output", "cosine", "SNR", right=(1, 2))
        for drift in drifts.outputs[:_MOST_OUTPUTS]:
            rows.add_row(*map(show.localize, _drift_cells(drift)))
        show.heading(phrase("drift from A, on {on}", on))
        show.console.print(rows)
        if len(drifts.outputs) > _MOST_OUTPUTS:
            show.line(
                phrase("… and {count} more (--json lists all)", len(drifts.outputs) - _MOST_OUTPUTS)
            )
    if drifts.is_random:
        show.line(
            "random inputs show whether both compute alike, not how good either is; "
            "for that, give --data"
        )


def _drift_cells(drift: OutputDrift) -> tuple[str, str, str]:
    if drift.cosine is None or drift.snr_db is None:
        return drift.output, "", phrase("not comparable")
    if drift.snr_db == MOST_DB:
        return drift.output, "", phrase("equal")
    return drift.output, score_text(drift.cosine, ""), score_text(drift.snr_db, "dB")
