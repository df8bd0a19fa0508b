"""One model on every target: timed in turns where it runs here, otherwise compiled or predicted;
and `targets`, the list of everything a model can run on."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import NamedTuple

import numpy as np

from litesmith.anatomy.source_file import Source, SourceFile, open_source
from litesmith.arguments import check_types
from litesmith.display import show_html, show_line
from litesmith.errors import BadInput, LitesmithError
from litesmith.evidence.bench_record import OpHome, PlacementRow, TargetRow, TargetTrial
from litesmith.evidence.codec import encode_fields
from litesmith.evidence.measurement import Measurement, Skipped, Trial
from litesmith.ir.types import Array, Model
from litesmith.micro.boards import BOARDS, Board
from litesmith.micro.memory_report import report_memory
from litesmith.phrases import join, phrase
from litesmith.progress import Progress, Status, silent
from litesmith.run.accelerators.probes import Usable
from litesmith.run.accelerators.targets import BY_NAME, DELEGATES, Delegate, placed, with_custom
from litesmith.run.core.placement import MEASURED, Placement
from litesmith.run.core.target import Target
from litesmith.run.rules.micro import why_unfit
from litesmith.run.session import Session, fill_inputs
from litesmith.run.trial_run import probe
from litesmith.tflite.file import load
from litesmith.timing.clock import time_call
from litesmith.timing.latency import Bench, Comparison, Result, Rule, list_contenders, measure
from litesmith.timing.statistics import FASTER, SAME, SLOWER, UNCLEAR, Ratio
from litesmith.units import error_text, factor_text, plain, time_text

Json = dict[str, object]

# The member of each family whose compiler answers; rules answer for the others.
COMPILED = ("ethos-u55-128", "gpu", "hexagon", "micro", "openvino")

_HERE = "cpu:1"
_TEXTS = {"cpu": (_HERE,), "openvino": ("openvino:1",), "gpu": ("gpu", "gpu:full")}

# The number of runs, and the most seconds, of a first look at each target before the turns.
_LOOK_RUNS, _LOOK_SECONDS = 3, 4.0

# A target that is slower than the CPU by the first factor, and that would need more than these
# seconds for all the loads of the turns, takes no turns: the difference is clear already.
_HOPELESS, _MOST_SECONDS, _LOADS = 4.0, 10.0, 24

# A run that is shorter than this on the CPU ends before any accelerator could start.
_SMALL_US = 500.0

# A larger difference, relative to the largest output, cannot be explained by another order of sums
# or by a step or two of 8 bits.
_FAR = 0.03


@dataclass(frozen=True)
class TargetResult:
    """One model on one target.

    placement    the ops that the target takes; None where it takes all
    how          measured, estimated, predicted, or refused with `why`
    latency_us   the time of a run, where known
    ratio        the time relative to the CPU's, where both took turns
    difference   the distance of the outputs from the CPU's, relative to the largest output
    samples_us   the timed runs
    here_us      the CPU's time
    device       the device behind the target, where its name says something
    """

    target: str
    how: str
    why: str = ""
    placement: Placement | None = None
    latency_us: float | None = None
    ratio: Ratio | None = None
    difference: float | None = None
    samples_us: tuple[float, ...] = ()
    here_us: float = 0.0
    device: str = ""

    @property
    def is_alone(self) -> bool:
        """True where the target is too slow to take turns and was timed by itself in a few runs."""
        return bool(self.samples_us) and self.ratio is None and self.target != _HERE

    @property
    def verdict(self) -> str:
        """Whether the model should run there."""
        if self.why:
            return self.why
        if self.target == _HERE:
            return phrase("what the others are compared with")
        if self.samples_us:
            return _verdict_by_time(self)
        return "" if self.placement is None else _verdict_by_placement(self.placement)

    @property
    def needs_int8(self) -> bool:
        """True where the target takes the model only once it computes with 8-bit integers."""
        found = None if self.why or self.samples_us else self.placement
        return found is not None and found.needs_int8

    @property
    def row(self) -> TargetRow:
        """The row without the samples and the placement of each op."""
        low, high = self.ratio.interval if self.ratio else (None, None)
        found = self.placement
        return TargetRow(
            target=self.target,
            how=self.how,
            why=self.why,
            latency_us=self.latency_us,
            runs=len(self.samples_us),
            is_alone=self.is_alone,
            ratio=self.ratio.value if self.ratio else None,
            low=low,
            high=high,
            difference=self.difference,
            verdict=self.verdict,
            taken=None if found is None else found.taken,
            ops=None if found is None else len(found.homes),
            partitions=None if found is None else found.partitions,
            placed="" if found is None else found.how,
            main_reason="" if found is None else plain(found.main_reason),
        )

    def facts(self) -> Json:
        """The row as JSON."""
        return encode_fields(self.row)

    def to_json(self) -> Json:
        """The row with its placement as JSON, without the samples."""
        homes = None if self.placement is None else placement_facts(self.placement)
        return self.facts() | {"placement": homes}

    def trial(self, model: str, digest: str, host: str) -> Trial[TargetTrial]:
        """The evidence: the samples, the ops left to the CPU with reasons, the verdict."""
        place = (self.target, digest, host)
        made: list[Measurement] = []
        if self.samples_us:
            made.append(Measurement("latency", "us", self.samples_us, *place))
        elif self.latency_us is not None:
            made.append(Measurement(f"latency_{self.how}", "us", (self.latency_us,), *place))
        if self.ratio is not None:
            made.append(Measurement("latency_ratio", "ratio", self.ratio.blocks, *place))
        if self.difference is not None:
            made.append(Measurement("difference", "share", (self.difference,), *place))
        details, left = TargetTrial(model, self.row), _left(self.placement)
        recipe_text = phrase("bench on all")
        return Trial("", "", digest, tuple(made), left, recipe_text, details=details)


def placement_row(found: Placement) -> PlacementRow:
    """A placement with a reason for each op, as records store it."""
    return PlacementRow(
        how=found.how,
        taken=found.taken,
        left=found.left,
        partitions=found.partitions,
        is_whole=found.is_whole,
        refused=found.refused,
        latency_us=found.latency_us,
        latency_how=found.latency_how,
        facts=found.facts,
        homes=tuple(
            OpHome(home.place, plain(home.kind), home.taken, home.why) for home in found.homes
        ),
    )


def placement_facts(found: Placement) -> Json:
    """A placement as JSON."""
    return encode_fields(placement_row(found))


def _left(found: Placement | None) -> tuple[Skipped, ...]:
    """The ops left to the CPU, by kind and reason."""
    homes = () if found is None else found.homes
    counts = Counter((plain(home.kind), home.why) for home in homes if not home.taken)
    return tuple(Skipped(f"{count} {kind}", why) for (kind, why), count in counts.items())


def _verdict_by_time(row: TargetResult) -> str:
    """A verdict by the times, with the reason for slowness where it is visible."""
    if row.ratio is None:
        times = (row.latency_us or 0.0) / max(row.here_us, 1e-9)
        return phrase(
            "not worth it: about {factor} than the CPU{because}",
            factor_text(times, phrase("slower")),
            _because(row),
        )
    speed = row.ratio.words
    if row.ratio.verdict == UNCLEAR:
        return UNCLEAR
    if row.ratio.verdict == FASTER:
        return phrase("worth it: {gain} than the CPU{but}", speed, _but(row))
    if row.ratio.verdict == SLOWER:
        return phrase("not worth it: {loss} than the CPU{because}", speed, _because(row))
    if row.ratio.verdict == SAME:
        return phrase("not worth it: no faster than the CPU{because}", _because(row))
    return phrase("not known: too few runs to tell it from the CPU")


def _because(row: TargetResult) -> str:
    found = row.placement
    if found is not None and found.left:
        return phrase("; it takes only {counts}: {main_reason}", _counts(found), found.main_reason)
    if row.device:
        return phrase("; here it is {device}", row.device)
    if row.here_us < _SMALL_US:
        return phrase("; the model is so small that the CPU needs {time}", time_text(row.here_us))
    return ""


def _but(row: TargetResult) -> str:
    if row.difference is None or row.difference < _FAR:
        return ""
    return phrase("; but its outputs differ by {error} of the largest", error_text(row.difference))


def _counts(found: Placement) -> str:
    """The share of ops in words, as in `27 of 31 ops in 3 parts`."""
    parts = (
        phrase("one part")
        if found.partitions == 1
        else phrase("{partitions} parts", found.partitions)
    )
    return phrase("{taken} of {count} ops in {parts}", found.taken, len(found.homes), parts)


def _verdict_by_placement(found: Placement) -> str:
    """A verdict by the placement alone."""
    way_out = str(found.facts.get("way_out", ""))
    if found.needs_int8:
        return phrase("needs int8 first: litesmith doctor MODEL --for {target}", found.target)
    if way_out:
        return phrase(
            "not as it is: {refused}; {way_out}", found.refused or found.main_reason, way_out
        )
    if found.is_whole:
        return phrase("takes the whole model")
    if not found.taken:
        return phrase("not worth it: {main_reason}", found.main_reason)
    return phrase("takes {counts}: {main_reason}", _counts(found), found.main_reason)


@dataclass(frozen=True)
class ModelOnTargets:
    """One model on every target.

    rows   one row per target
    bench  the interleaved run of the targets
    """

    model: Path
    rows: tuple[TargetResult, ...]
    bench: Bench

    def to_json(self) -> Json:
        return {
            "model": str(self.model),
            "targets": [row.to_json() for row in self.rows],
            "results": [result.to_json() for result in self.bench.results],
            "comparisons": [comparison.row() for comparison in self.bench.comparisons],
            "host": self.bench.host.facts(),
            "warnings": self.bench.warnings,
        }


@dataclass(frozen=True, repr=False)
class TargetsBench:
    """Several models on every target.

    report  the page of the folder that stores the evidence; None where none was written
    """

    models: tuple[ModelOnTargets, ...]
    report: Path | None = None

    __repr__ = show_line
    _repr_html_ = show_html

    @property
    def sentence(self) -> str:
        names = ", ".join(one.model.name for one in self.models)
        return phrase("{names} on {count} targets", names, len(self.models[0].rows))

    @property
    def results(self) -> tuple[Result, ...]:
        return tuple(result for one in self.models for result in one.bench.results)

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        return tuple(pair for one in self.models for pair in one.bench.comparisons)

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(told for one in self.models for told in one.bench.warnings))

    def to_rows(self) -> list[Json]:
        """One row per model and target, for a data frame."""
        return [{"model": str(one.model), **row.facts()} for one in self.models for row in one.rows]

    def to_json(self) -> Json:
        """The results as `--json` prints them; several models make a list with an element each."""
        shown = [one.to_json() for one in self.models]
        return {"schema": 1, "models": shown} if len(shown) > 1 else {"schema": 1, **shown[0]}


class _Look(NamedTuple):
    """A target's first few runs."""

    times_us: tuple[float, ...]
    opening_seconds: float
    outputs: list[Array]

    @property
    def us(self) -> float:
        return median(self.times_us)

    def is_hopeless(self, here: "_Look") -> bool:
        """True where turns would take minutes and show only what the first look has shown."""
        load = self.opening_seconds + 2 * self.us / 1e6
        return self.us > _HOPELESS * here.us and _LOADS * load > _MOST_SECONDS


def bench_everywhere(
    file: Path, rule: Rule | None = None, progress: Progress = silent
) -> ModelOnTargets:
    """The answer of every target, with the run of those that took turns."""
    path = str(file)
    model = load(path)
    probe(path, _HERE)
    here = _look(path, _HERE)
    looks: dict[str, _Look] = {_HERE: here}
    refused: dict[str, str] = {}
    placements = {one: _placement(one, model) for one in with_custom() if one.name != "numpy"}
    for delegate, placement in placements.items():
        is_timed = delegate.runs and delegate.is_timed and not _is_here(delegate, placement)
        for text in _texts(delegate) if is_timed else ():
            progress(Status(phrase("a first look at {what}", text)))
            why = _why_not(delegate, path, text)
            if why:
                refused[text] = why
            else:
                looks[text] = _look(path, text)
    in_turns = [text for text, look in looks.items() if not look.is_hopeless(here)]
    done = measure(list_contenders(path, in_turns), rule or Rule(), progress, memory=False)
    rows: list[TargetResult] = []
    for delegate, placement in placements.items():
        for text in _texts(delegate):
            if text in looks:
                row = _timed_result(text, placement, looks[text], here, done)
                rows.append(replace(row, device=_device(delegate)))
            else:
                rows.append(_result_without_time(text, placement, refused.get(text, "")))
    return ModelOnTargets(file, tuple(rows), done)


def _is_here(delegate: Delegate, placement: Placement | None) -> bool:
    """True for the CPU, and for accelerators that leave it every op."""
    if delegate.name in BY_NAME:
        return delegate.name == "cpu"
    return placement is not None and not placement.taken and not placement.refused


def _result_without_time(name: str, placement: Placement | None, why: str) -> TargetResult:
    """A target that cannot run here, or refuses to."""
    if why or placement is None:
        return TargetResult(name, "refused", why or phrase("nothing is known about it"), placement)
    is_estimated = placement.latency_us is not None
    how = placement.latency_how if is_estimated else placement.how
    return TargetResult(name, how, "", placement, placement.latency_us)


def _texts(delegate: Delegate) -> tuple[str, ...]:
    """The targets of a delegate; only the first where the delegate cannot be used."""
    if delegate.name == "numpy":
        return ()
    texts = _TEXTS.get(delegate.name, (delegate.name,))
    if len(texts) > 1 and not delegate.probe().usable:
        return texts[:1]
    return tuple(text for text in texts if len(texts) == 1 or _is_target(text))


def _device(delegate: Delegate) -> str:
    """The name of the GPU, in a word or two."""
    return delegate.probe().why.partition(" (")[0] if delegate.name == "gpu" else ""


def _is_target(text: str) -> bool:
    try:
        Target.parse(text)
    except BadInput:
        return False
    return True


def _why_not(delegate: Delegate, path: str, target: str) -> str:
    """Why a model cannot be timed on a target; tried in a child process, since the attempt may
    crash."""
    found = delegate.probe()
    if not found.usable:
        return join((found.why, found.how), "; ")
    try:
        probe(path, target)
    except LitesmithError as error:
        return str(error)
    return ""


def _look(path: str, target: str) -> _Look:
    """The outputs for the inputs that benches use, and the approximate time of a run."""
    start = perf_counter()
    with Session(path, target) as session:
        fill_inputs(session)
        first = time_call(session.run)
        opening = perf_counter() - start
        outputs = [np.array(array, np.float64) for array in session.outputs.values()]
        times: list[float] = []
        while len(times) < _LOOK_RUNS and first + sum(times) < _LOOK_SECONDS * 1e6:
            times.append(time_call(session.run))
    return _Look(tuple(times) or (first,), opening, outputs)


def _timed_result(
    target: str, placement: Placement | None, look: _Look, here: _Look, done: Bench
) -> TargetResult:
    """The row of a target that runs here, with its times from the turns or from the first look."""
    difference = None if target == _HERE else _difference(look.outputs, here.outputs)
    result = next((r for r in done.results if r.target == target), None)
    here_us = done.results[0].percentile_us(50)
    if result is None:
        return TargetResult(
            target, MEASURED, "", placement, look.us, None, difference, look.times_us, here_us
        )
    compared = next((c.ratio for c in done.comparisons if c.b is result.contender), None)
    us, samples = result.percentile_us(50), result.samples_us
    return TargetResult(target, MEASURED, "", placement, us, compared, difference, samples, here_us)


def _placement(delegate: Delegate, model: Model) -> Placement | None:
    """The placement by the delegate's compiler where it is asked, otherwise by rules."""
    if delegate.name in COMPILED:
        return placed(delegate, model)
    return None if delegate.predict is None else delegate.predict(model)


def takers(model: Model, *, compiled: bool) -> tuple[Placement, ...]:
    """The placement of a model on every accelerator, by rules or by the compilers installed
    here."""
    predicted = [(one, one.predict) for one in DELEGATES if one.predict is not None]
    found = (_placement(one, model) if compiled else say(model) for one, say in predicted)
    return tuple(one for one in found if one is not None)


def _difference(ours: Sequence[Array], wanted: Sequence[Array]) -> float | None:
    """The largest difference relative to the largest value; None where the outputs cannot be
    compared."""
    if [a.shape for a in ours] != [b.shape for b in wanted]:
        return None
    parts = [
        float(np.abs(a - b).max(initial=0)) / max(float(np.abs(b).max(initial=0)), 1e-12)
        for a, b in zip(ours, wanted, strict=True)
    ]
    found = max(parts, default=0.0)
    return found if np.isfinite(found) else None


@dataclass(frozen=True)
class ListedTarget:
    """One target.

    usable     whether it can be used here, why, and how to change that
    placement  the ops of the model that it takes; None without a model, or where it takes all
    """

    delegate: Delegate
    usable: Usable
    placement: Placement | None = None

    def to_json(self) -> Json:
        usable, why, how = self.usable
        facts: Json = {
            "name": self.delegate.name,
            "title": self.delegate.title,
            "usable": usable,
            "why": why,
            "how": how,
            "runs": self.delegate.runs,
        }
        found = self.placement
        return facts if found is None else facts | {"placement": placement_facts(found)}

    def summary(self) -> Json:
        facts: Json = {"target": self.delegate.name, "usable": self.usable.usable}
        found = self.placement
        if found is None:
            return facts | {"why": self.usable.why, "how": self.usable.how}
        counts: Json = {"taken": found.taken, "left": found.left, "parts": found.partitions}
        return facts | counts | {"how": found.how, "why_left": found.main_reason}


@dataclass(frozen=True, repr=False)
class Targets:
    """Every target; `model` is the name of the model in question, if there is one.

    boards  microcontroller boards, each with whether the model fits; None where that is unknown
    """

    rows: tuple[ListedTarget, ...]
    model: str | None = None
    boards: tuple[tuple[Board, bool | None], ...] = ()

    __repr__ = show_line
    _repr_html_ = show_html

    @property
    def sentence(self) -> str:
        usable = [row.delegate.name for row in self.rows if row.usable.usable]
        return phrase(
            "{count} of {count2} targets can be used here: {usable}",
            len(usable),
            len(self.rows),
            ", ".join(usable),
        )

    def to_rows(self) -> list[Json]:
        """One row per target; with a model, the number of its ops that the target takes, and why
        not the others."""
        return [row.summary() for row in self.rows]

    def to_json(self) -> Json:
        boards = [{**board._asdict(), "fits": fits} for board, fits in self.boards]
        return {"schema": 1, "targets": [row.to_json() for row in self.rows], "boards": boards}


@check_types
def targets(model: Source | None = None, *, compile: bool = False) -> Targets:
    """Lists every accelerator: usable here or why not, and which ops of a model it takes.

    >>> rows = litesmith.targets("model.tflite").to_rows()
    >>> [row["taken"] for row in rows if row["target"] == "hexagon"]
    [...]

    Rules say which ops a target takes; with `compile`, the installed compilers do.
    """
    source = None if model is None else open_source(model)
    rows: list[ListedTarget] = []
    for one in with_custom():
        way = one.place if compile else one.predict
        placement = way(source.model) if way is not None and source is not None else None
        rows.append(ListedTarget(one, one.probe(), placement))
    fit = None if source is None or why_unfit(source.model) else source
    boards = tuple((board, _fits(board, fit)) for board in BOARDS)
    return Targets(tuple(rows), None if source is None else str(source.path or source.name), boards)


def _fits(board: Board, source: SourceFile | None) -> bool | None:
    """Whether a board has room for the model; None without a model, or where it would not run."""
    if source is None:
        return None
    found = report_memory(source.name, source.model, source.bytes)
    if found.device.unknown or found.flash.unknown:
        return None
    return found.device.needed <= board.ram and found.flash.total <= board.flash
