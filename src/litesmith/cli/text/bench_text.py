"""How `bench` prints for people."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median

from rich.text import Text

from litesmith.cli.text.inspect_text import console, heading, line, said, table
from litesmith.run.core.target import LITESMITH
from litesmith.timing.copies import Copies
from litesmith.timing.latency import Bench, Comparison, Contender, Result
from litesmith.timing.statistics import FASTER, SLOWER, spread
from litesmith.timing.threads import Situation
from litesmith.units import (
    bytes_text,
    energy_text,
    percent_text,
    plain,
    ratio_text,
    time_interval_text,
    time_text,
)

_COLUMNS = ("target", "p50 (95 %)", "p95", "p99", "open", "first", "peak")
_STYLES = {FASTER: "green", SLOWER: "red"}


def show(done: Bench, situations: Sequence[Situation], copied: Sequence[Copies]) -> None:
    line(str(done.host))
    _show_results(done.results)
    counts = sorted({result.runs for result in done.results})
    runs = "–".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    line(f"each: {runs} runs in {len(done.results[0].loads)} loads; 95 % is the interval of p50")
    if situations:
        for situation in situations:
            _show_situation(situation)
    elif done.comparisons:
        _show_comparisons(done.comparisons)
    if copied:
        _show_copies(copied)


def _show_results(results: Sequence[Result]) -> None:
    for model in dict.fromkeys(result.model for result in results):
        own = [result for result in results if result.model == model]
        rows = table(*_COLUMNS, right=range(1, len(_COLUMNS)))
        for result in own:
            rows.add_row(*_cells(result))
        heading(plain(model))
        console.print(rows)
        for note in dict.fromkeys(_note(result) for result in own if result.note):
            line(note)


def _note(result: Result) -> str:
    """A CPU's note is why the classic interpreter runs the model; of others, who runs what."""
    is_told = not result.target.startswith("cpu") or result.target.endswith(LITESMITH)
    return result.note if is_told else f"runs in the classic interpreter: {result.note}"


def _cells(result: Result) -> tuple[str, ...]:
    peak = result.peak_bytes
    return (
        result.target,
        time_interval_text(result.percentile_us(50), *result.interval_us),
        time_text(result.percentile_us(95)),
        time_text(result.percentile_us(99)),
        time_text(median(load.create_us for load in result.loads)),
        time_text(median(load.first_us for load in result.loads)),
        "" if peak is None else bytes_text(peak),
    )


def _show_comparisons(comparisons: Sequence[Comparison]) -> None:
    everyone = [comparisons[0].a, *(comparison.b for comparison in comparisons)]
    rows = table("", "time (95 % interval)", "verdict")
    for comparison in comparisons:
        verdict = comparison.ratio.verdict
        rows.add_row(
            Text(_name(comparison.b, everyone)),
            ratio_text(comparison.ratio.value, *comparison.ratio.interval),
            said(verdict, _STYLES.get(verdict, "")),
        )
    heading(f"compared with {_name(comparisons[0].a, everyone)}")
    console.print(rows)


def _name(contender: Contender, everyone: Sequence[Contender]) -> str:
    """As much of a contender's name as tells it from the others."""
    target, path = str(contender.target), Path(contender.name)
    if len({c.name for c in everyone}) == 1 and len({c.target for c in everyone}) > 1:
        return target
    namesakes = {c.name for c in everyone if Path(c.name).name == path.name}
    name = plain(path.name if len(namesakes) == 1 else str(path))
    return name if len({c.target for c in everyone}) == 1 else f"{name} on {target}"


def _show_situation(situation: Situation) -> None:
    results = situation.bench.results
    has_joules = any(result.joules is not None for result in results)
    rows = table("threads", "p50", "p95", "spread", "CPU/run", "joules/run", right=range(6))
    for result in results:
        rows.add_row(
            str(result.contender.target.threads),
            time_text(result.percentile_us(50)),
            time_text(result.percentile_us(95)),
            percent_text(spread(result.samples_us)),
            time_text(result.cpu_us),
            "" if result.joules is None else energy_text(result.joules),
        )
    heading(f"threads, {situation.name}")
    console.print(rows)
    if not has_joules:
        line("no energy counter can be read here: CPU time is the proxy")
    line(f"use cpu:{situation.threads}: {situation.reasons[0]}", "bold")
    for reason in situation.reasons[1:]:
        line(reason)


def _show_copies(copied: Sequence[Copies]) -> None:
    rows = table("way", "feed", "run", "read", "copied", "share", right=range(1, 6))
    for one in copied:
        if not one.skipped:
            rows.add_row(
                one.way,
                time_text(one.feed_us),
                time_text(one.run_us),
                time_text(one.read_us),
                bytes_text(one.copied_bytes),
                percent_text(one.share),
            )
    heading("copies: feeding inputs and reading outputs, as a share of the whole")
    console.print(rows)
    for one in copied:
        if one.skipped:
            line(f"{one.way}: not possible with this model ({one.skipped})")
