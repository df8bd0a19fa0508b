"""Prints the result of `bench`: tables for people, or the line that scripts look for."""

from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median

import click
from rich.text import Text

from litesmith.cli.text.message import say
from litesmith.cli.text.micro_text import print_micro
from litesmith.cli.text.printing import command, console, heading, line, localize, table
from litesmith.diagnosis.all_targets import ModelOnTargets, TargetResult, TargetsBench
from litesmith.micro.memory_report import MicroBench
from litesmith.operating_system import quote
from litesmith.phrases import phrase
from litesmith.run.core.target import LITESMITH
from litesmith.timing.copies import Copies
from litesmith.timing.latency import Bench, Comparison, Contender, Result, Situation
from litesmith.timing.statistics import FASTER, SLOWER, UNCLEAR, spread
from litesmith.units import (
    bytes_text,
    energy_text,
    error_text,
    number_text,
    percent_text,
    plain,
    time_interval_text,
    time_text,
)

_COLUMNS = ("target", "p50 (95 %)", "p95", "p99", "open", "first", "peak")
_STYLES = {FASTER: "green", SLOWER: "red", UNCLEAR: "yellow"}


def print_bench(
    done: Bench | TargetsBench | MicroBench,
    output_format: str = "table",
    enable_op_profiling: bool = False,
) -> None:
    """Prints times, comparisons and everything else that was requested; or the line for scripts."""
    if isinstance(done, MicroBench):
        print_micro(done)
        return
    if enable_op_profiling:
        model = quote(done.results[0].model)
        say("note", phrase("for the time of each operator: litesmith profile {given}", model))
    if output_format != "table":
        _print_summary_lines(done)
    elif isinstance(done, Bench):
        _print_table(done)
    else:
        _print_every_target(done)


def _print_every_target(done: TargetsBench) -> None:
    for one in done.models:
        _print_targets(one)
    if done.report is not None:
        click.echo(plain(str(done.report)))


def _print_summary_lines(done: Bench | TargetsBench) -> None:
    """Prints the line that scripts look for in the output of benchmark_model; its averages are
    means.
    """
    for result in done.results:
        first = result.loads[0]
        warmups = first.warmup_us or (first.first_us,)
        click.echo(
            f"Inference timings in us: Init: {round(first.create_us)}, "
            f"First inference: {round(first.first_us)}, "
            f"Warmup (avg): {number_text(mean(warmups))}, "
            f"Inference (avg): {number_text(mean(result.samples_us))}"
        )


def _print_table(done: Bench) -> None:
    line(str(done.host))
    _show_results(done.results)
    counts = sorted({result.runs for result in done.results})
    runs = "–".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    line(
        phrase(
            "each: {runs} runs in {count} loads; p50 is of the calmer half of the turns, with its "
            "95 % interval",
            runs,
            len(done.results[0].loads),
        )
    )
    if done.situations:
        for situation in done.situations:
            _show_situation(situation)
    elif done.comparisons:
        _show_comparisons(done.comparisons)
    if done.copies:
        _show_copies(done.copies)


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
    """On a CPU, the note says why the classic interpreter runs the model; on other targets, what
    runs which ops.
    """
    is_told = not result.target.startswith("cpu") or result.target.endswith(LITESMITH)
    return (
        result.note if is_told else phrase("runs in the classic interpreter: {note}", result.note)
    )


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
    rows = table("", "time", "verdict (95 % interval)", right=(1,))
    for comparison in comparisons:
        found = comparison.ratio
        rows.add_row(
            Text(_name(comparison.b, everyone)),
            found.times_words,
            localize(found.words, _STYLES.get(found.verdict, "")),
        )
    heading(phrase("compared with {name}", _name(comparisons[0].a, everyone)))
    console.print(rows)


def _name(contender: Contender, everyone: Sequence[Contender]) -> str:
    """The part of a contender's name that distinguishes it from the others."""
    target, path = str(contender.target), Path(contender.name)
    if len({c.name for c in everyone}) == 1 and len({c.target for c in everyone}) > 1:
        return target
    namesakes = {c.name for c in everyone if Path(c.name).name == path.name}
    name = plain(path.name if len(namesakes) == 1 else str(path))
    return (
        name
        if len({c.target for c in everyone}) == 1
        else phrase("{name} on {target}", name, target)
    )


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
    heading(phrase("threads, {name}", situation.name))
    console.print(rows)
    if not has_joules:
        line("no energy counter can be read here: CPU time is the proxy")
    line(phrase("use cpu:{threads}: {reasons}", situation.threads, situation.reasons[0]), "bold")
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
            line(phrase("{way}: not possible with this model ({skipped})", one.way, one.skipped))


def _print_targets(one: ModelOnTargets) -> None:
    """Prints for each target the ops that it takes, the time, the exactness and the verdict."""
    line(plain(str(one.model)), "bold")
    shown = table("target", "ops", "time", "differs by", "how", "verdict", right=(1, 2, 3))
    last = ""
    for row in one.rows:
        verdict = plain(row.verdict)
        same = verdict.replace(row.target, "") == last
        shown.add_row(
            row.target,
            _ops(row),
            "" if row.latency_us is None else time_text(row.latency_us),
            "" if row.difference is None else error_text(row.difference),
            row.how,
            localize('"' if same else verdict),
        )
        last = verdict.replace(row.target, "")
    console.print(shown)
    runs = one.bench.results[0].runs
    line(
        phrase(
            "measured in turns: {turns}; {runs} runs on the CPU",
            _turns(one.rows),
            runs,
        )
    )
    for row in (row for row in one.rows if row.is_alone):
        count = "1 run" if len(row.samples_us) == 1 else phrase("{count} runs", len(row.samples_us))
        line(
            phrase(
                "{target}: {count} on its own, because it is too slow to take turns",
                row.target,
                count,
            )
        )
    target = next((row.target for row in one.rows if row.needs_int8), None)
    if target is not None:
        line("how to get there, with commands to copy, for a target as the table names it:")
        command(f"  litesmith doctor {quote(str(one.model))} --for {target}")
    line("litesmith targets MODEL --json has a reason for each op")


def _ops(row: TargetResult) -> str:
    found = row.placement
    return "all" if found is None else f"{found.taken}/{len(found.homes)}"


def _turns(rows: Sequence[TargetResult]) -> str:
    return ", ".join(row.target for row in rows if row.samples_us and not row.is_alone)
