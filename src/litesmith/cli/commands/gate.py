"""The command gate: is a model worse than its baseline allows?"""

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from shlex import quote
from typing import Annotated

import click

from litesmith.accuracy.metrics import metric_named
from litesmith.cli.commands.profile import checked_target
from litesmith.cli.options.data_options import (
    DEFAULT_CROP,
    DEFAULT_RESIZE,
    Crop,
    DataSource,
    ImageOptions,
    LabelOffset,
    Mean,
    NormName,
    Resize,
    SampleCount,
    Std,
    open_evaluation,
    say,
    typed,
)
from litesmith.cli.options.declare import argument, option
from litesmith.cli.options.ops_option import Ops
from litesmith.cli.options.shared_options import Json, MetricName, ModelFile
from litesmith.cli.text import printing as show
from litesmith.cli.text.deliver import MISSES_WHAT_WAS_ASKED
from litesmith.cli.text.progress_text import Terminal
from litesmith.errors import BadInput, os_reason
from litesmith.pages.gate_page import HEAD, cells, gate_json, gate_junit, gate_markdown
from litesmith.phrases import phrase
from litesmith.regression.baseline import Baseline, kept_baseline, read_baseline
from litesmith.regression.gate_case import Check
from litesmith.regression.gate_measures import MOST_SECONDS, Delegation, Manner
from litesmith.regression.gate_rules import FINE, OFF, QUANTITIES, UNCLEAR, WORSE, parsed_allowances
from litesmith.regression.gating import Gated, gated, updated
from litesmith.run.core.target import Target
from litesmith.tflite.file import load, refuse_output, write_whole
from litesmith.timing.latency import Rule
from litesmith.units import (
    bytes_text,
    percent_text,
    plain,
    ratio_text,
    score_text,
    time_text,
    total_text,
)

# GitHub shows what is appended to the file of this name beside the run.
_SUMMARY = "GITHUB_STEP_SUMMARY"

_STYLES = {WORSE: "red", UNCLEAR: "yellow", FINE: "green"}

BaselineFile = Annotated[
    Path,
    argument(metavar="BASELINE", help="The .json file of a baseline.", show_default=False),
]
Update = Annotated[bool, option("--update", help="Measure MODEL and write the baseline of it.")]
Allow = Annotated[
    list[str] | None,
    option(
        "--allow",
        metavar="QUANTITY=AMOUNT",
        help="How much worse it may get, as in latency=5%, accuracy=0.5pt, memory=off: "
        f"{', '.join(QUANTITIES)}. --update keeps it. "
        f"[{', '.join(f'{name}={row.usual}' for name, row in QUANTITIES.items())}]",
        show_default=False,
    ),
]
OnOnce = Annotated[
    str | None,
    option(
        "--on",
        metavar="TARGET",
        help="With --update: where it runs. [the baseline's, or cpu:1]",
        show_default=False,
    ),
]
For = Annotated[
    list[str] | None,
    option(
        "--for",
        metavar="edgetpu|ethos-u55|gpu|…",
        help="With --update: an accelerator that is not to lose ops either.",
        show_default=False,
    ),
]
Against = Annotated[
    Path | None,
    option(
        "--against",
        metavar="REF",
        help="A .tflite file that answers are held against where there are no labels.",
        show_default=False,
    ),
]
Seconds = Annotated[
    float,
    option("--seconds", help="Time for so long at the most; a clear answer ends it."),
]
Strict = Annotated[bool, option("--strict", help="Exit with 1 for what is not clear too.")]
MarkdownFile = Annotated[
    Path | None,
    option("--markdown", metavar="FILE", help="Write it for a pull request."),
]
JunitFile = Annotated[Path | None, option("--junit", metavar="FILE", help="Write it as JUnit XML.")]


def gate(
    baseline: BaselineFile,
    model: ModelFile,
    data: DataSource = None,
    update: Update = False,
    allow: Allow = None,
    on: OnOnce = None,
    places: For = None,
    metric: MetricName = "auto",
    against: Against = None,
    seconds: Seconds = MOST_SECONDS,
    strict: Strict = False,
    markdown: MarkdownFile = None,
    junit: JunitFile = None,
    samples: SampleCount = None,
    mean: Mean = None,
    std: Std = None,
    norm: NormName = None,
    resize: Resize = DEFAULT_RESIZE,
    crop: Crop = DEFAULT_CROP,
    label_offset: LabelOffset = None,
    ops: Ops = None,
    as_json: Json = False,
) -> int:
    """Is MODEL worse than BASELINE allows? Exit status 1 where it is; --update writes BASELINE."""
    Rule(seconds=seconds)  # refuses a wrong number before the work
    allowed = parsed_allowances(allow or ())
    sources = (model, against, None if data is None else Path(data))
    outs = (baseline, markdown, junit) if update else (markdown, junit)
    _refuse_places(outs, sources if update else (*sources, baseline))
    _refuse_misplaced(update, metric, places, (markdown, junit))
    kept = kept_baseline(baseline) if update else read_baseline(baseline)
    target = Target.parse(on) if on is not None else kept.target if kept is not None else None
    options = ImageOptions(mean, std, norm, resize, crop, label_offset)
    opened = None if data is None else open_evaluation(data, load(model), options, samples=samples)
    checked_target(model, str(target or Target()))
    with Terminal(quiet=as_json) as progress:
        manner = Manner(target, metric, against, allowed, tuple(places or ()), seconds, progress)
        if update:
            made = updated(baseline, model, opened, manner)
            more = _typed_sources(against, ops) + typed(options, samples)
            _show_baseline(baseline, made, more, as_json)
            return 0
        found = gated(baseline, model, opened, manner)
    found = _finished(found, strict, typed(options, samples))
    _write(found, markdown, junit)
    if as_json:
        click.echo(json.dumps(gate_json(found), allow_nan=False))
    else:
        _print(found)
    return MISSES_WHAT_WAS_ASKED if found.verdict == WORSE else 0


def _refuse_places(outs: Sequence[Path | None], sources: Sequence[Path | None]) -> None:
    """What is written is none of what is read."""
    for out, source in product(outs, sources):
        if out is not None and source is not None:
            refuse_output(out, source)


def _refuse_misplaced(
    update: bool, metric: str, places: list[str] | None, outs: tuple[Path | None, ...]
) -> None:
    """What belongs to the other of the two jobs is refused, not ignored."""
    if update and any(outs):
        raise BadInput("--update compares nothing: leave out --markdown and --junit")
    if not update and (metric != "auto" or places):
        raise BadInput("--metric and --for are the baseline's: give them with --update")


def _typed_sources(against: Path | None, ops: list[str] | None) -> str:
    """The files that every later gate needs too, as they were typed."""
    held = "" if against is None else f" --against {quote(str(against))}"
    return held + "".join(f" --ops {quote(source)}" for source in ops or ())


def _finished(found: Gated, strict: bool, options: str) -> Gated:
    """With the data's options in the command that looks into accuracy, so that it can be run."""
    checks = tuple(
        replace(check, command=check.command + options) if check.quantity == "accuracy" else check
        for check in found.checks
    )
    return replace(found, checks=checks, strict=strict)


def _write(found: Gated, markdown: Path | None, junit: Path | None) -> None:
    """Everything but what is printed."""
    text = gate_markdown(found)
    if markdown is not None:
        write_whole(markdown, [text.encode()])
    if junit is not None:
        write_whole(junit, [gate_junit(found).encode()])
    summary = os.environ.get(_SUMMARY)
    if not summary:
        return
    try:
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")
    except OSError as error:
        say(
            "warning",
            phrase("{summary}: no summary is written there ({why})", summary, os_reason(error)),
        )


def _print(found: Gated) -> None:
    show.line(found.sentence, "bold")
    rows = show.table(*HEAD, right=(1, 2))
    for check in found.checks:
        *words, verdict = cells(check)
        rows.add_row(*map(show.said, words), show.said(verdict, _STYLES.get(check.verdict, "")))
    show.console.print()
    show.console.print(rows)
    for check in found.checks:
        if check.why and check.verdict != OFF:
            _print_reason(check)
    for note in found.notes:
        say("note", note)


def _print_reason(check: Check) -> None:
    show.heading(f"{plain(check.title)}: {check.verdict}")
    show.line(check.why)
    if check.command and check.verdict in (WORSE, UNCLEAR):
        show.command(f"  {check.command}")


def _show_baseline(path: Path, made: Baseline, options: str, as_json: bool) -> None:
    if as_json:
        allow = {name: allowed.typed for name, allowed in made.allowed.items()}
        told = {"out": str(path), "model": made.model, "digest": made.digest}
        facts = {"target": str(made.target), "allow": allow, "bytes": made.size.bytes}
        click.echo(json.dumps({"schema": 1, **told, **facts}))
        return
    show.line(phrase("{path}: the baseline is {name}", path, plain(Path(made.model).name)), "bold")
    rows = show.table("", "baseline", "may get worse by")
    for quantity, title, words in _known(made):
        rows.add_row(title, show.said(words), made.allowed[quantity].text)
    show.console.print()
    show.console.print(rows)
    data = "" if made.scores is None else f" --data {quote(made.scores.source)}"
    show.command(f"litesmith gate {quote(str(path))} {quote(made.model)}{data}{options}")


def _known(made: Baseline) -> list[tuple[str, str, str]]:
    """Quantity, title and words of all that a baseline has."""
    scores, timing = made.scores, made.timing
    accuracy = phrase("none: {unscored}", made.unscored)
    if scores is not None:
        value = score_text(scores.value, scores.unit, scores.low, scores.high)
        accuracy = phrase(
            "{title} {value}, {count} samples",
            metric_named(scores.metric).title,
            value,
            total_text(scores.count),
        )
    time = phrase("none: {untimed}", made.untimed)
    if timing is not None:
        ratio = ratio_text(timing.ratio.value, *timing.ratio.interval)
        time = phrase(
            "{time} on {target}; {ratio} of its own graph", time_text(timing.us), made.target, ratio
        )
    peak = "none" if made.peak_bytes is None else bytes_text(made.peak_bytes)
    words = {
        "accuracy": accuracy,
        "latency": time,
        "size": bytes_text(made.size.bytes),
        "gzip": bytes_text(made.size.gzip_bytes),
        "memory": peak,
    }
    known = [(name, QUANTITIES[name].title, told) for name, told in words.items()]
    places = [
        ("delegation", phrase("ops on {target}", one.target), _taken(one))
        for one in made.delegations
    ]
    return known + places


def _taken(one: Delegation) -> str:
    ops = phrase("{ops} of {ops2} ops delegated", one.ops - one.left, one.ops)
    return one.why or phrase(
        "{ops}, {share} of the MACs ({how})", ops, percent_text(one.macs), one.how
    )
