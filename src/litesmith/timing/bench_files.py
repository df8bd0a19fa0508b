"""The files of a bench: rows of a table, and a log with every sample."""

import csv
import io
from dataclasses import replace
from pathlib import Path

from litesmith.arguments import argument
from litesmith.evidence.bench_record import PartialBench
from litesmith.evidence.log import Log
from litesmith.evidence.measurement import Measurement, Trial
from litesmith.phrases import phrase
from litesmith.run.devices.address import Lost
from litesmith.tflite.file import write_whole
from litesmith.timing.latency import Bench


def write_csv(path: Path, done: Bench) -> None:
    """Writes one row per contender, with the number of other busy processes."""
    rows = [{**row, "competitors": busy} for run, busy in _runs(done) for row in run.to_rows()]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    write_whole(path, [text.getvalue().encode()])


def append_log(path: Path, done: Bench) -> None:
    """Adds a trial for each contender to a log, with its samples and the comparisons of its run."""
    for run, busy in _runs(done):
        ratios = tuple(comparison.numbers for comparison in run.comparisons)
        for result in run.results:
            trial = result.trial()
            details = replace(trial.details, competitors=busy, comparisons=ratios)
            Log(path).append(replace(trial, details=details))


def _runs(done: Bench) -> list[tuple[Bench, int]]:
    """Every interleaved run, with its number of competitors."""
    return [(one.bench, one.competitors) for one in done.situations] or [(done, 0)]


def append_partial(path: Path | None, lost: Lost, device: str) -> None:
    """Logs the times measured before a device was lost, and adds their place to the error."""
    count = sum(map(len, lost.samples))
    if not count:
        return
    if path is None:
        lost.add_note(
            phrase("{count} times were measured; {log} keeps them", count, argument("log"))
        )
        return
    for digest, samples in zip(lost.digests, lost.samples, strict=False):
        if samples:
            latency = Measurement("latency", "us", samples, device, digest, "")
            details = PartialBench(device)
            Log(path).append(Trial("", "", digest, (latency,), (), "bench", details=details))
    lost.add_note(phrase("{count} times are in {path}", count, path))
