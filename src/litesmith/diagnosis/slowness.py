"""Why a model is slow: what stands out in the file and in its profile, ranked by the time it costs,
each with the command that acts on it."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter_ns

import numpy as np

from litesmith.anatomy.findings import findings
from litesmith.anatomy.sparse_speedup import skipping
from litesmith.errors import LitesmithError
from litesmith.ir.ops import kinds_where
from litesmith.ir.types import Model
from litesmith.passes.core.recipe import apply
from litesmith.phrases import phrase
from litesmith.profiling.events import CUSTOM, OWN
from litesmith.profiling.op_times import OpTime, Profile
from litesmith.run.core.target import LITESMITH, Target
from litesmith.run.litert.own_kernels import find_own_kernels
from litesmith.timing.latency import Result, Rule, list_contenders, measure
from litesmith.timing.statistics import FASTER, SAME, SLOWER, UNCLEAR, UNKNOWN
from litesmith.units import bytes_text, percent_text, rate_text, time_text

_DOMINANT = 0.5  # of the run, in one op
_SLOW, _HEAVY = 0.3, 0.05  # below this share of the best speed, above this share of the run
_COPIED = 0.05  # of the run, to copy inputs and outputs once
_LEAST_COPY_US = 10.0  # less than that is noise, whatever its share
_MOST_NAMED = 3

NOT_MEASURED = phrase("not measured")

_CONVERSIONS = kinds_where(lambda row: row.rescales)

# Why a kind of op is far from the speed of a matrix product, where there is more to say than that.
_WHY_SLOW = {
    "CONV_2D": phrase(
        "few channels, or windows that must be gathered, keep the arithmetic units waiting"
    ),
    "DEPTHWISE_CONV_2D": phrase(
        "each value read is used only a few times, so memory sets the pace"
    ),
    "FULLY_CONNECTED": phrase(
        "at batch 1 every weight is read for one product; int8 reads a quarter"
    ),
    "TRANSPOSE_CONV": phrase(
        "its windows overlap in the output; a resize and a convolution may be faster"
    ),
}


@dataclass(frozen=True)
class Diagnosis:
    """One thing that costs time, `us` in a run, or accuracy, a `share` of all that is lost; None
    where that is not measured."""

    what: str
    where: str
    why: str
    costs: str
    command: str
    us: float | None = None
    share: float | None = None

    def row(self) -> dict[str, object]:
        return {
            "what": self.what,
            "where": self.where,
            "why": self.why,
            "costs": self.costs,
            "costs_us": self.us,
            "costs_share": self.share,
            "command": self.command,
        }


@dataclass(frozen=True)
class Patient:
    """A model on a target, with its profile, or why there is none; a remedy is timed against the
    model as it is for `seconds`."""

    model: Model
    target: Target
    profile: Profile | None
    no_profile: str = ""
    seconds: float = 1.0

    @cached_property
    def ops(self) -> tuple[OpTime, ...]:
        """Timed ops of the graph that runs."""
        found = self.profile
        if found is None:
            return ()
        return tuple(op for op in found.ops if op.kernel and op.graph == found.entry)

    def costs(self, us: float) -> str:
        """`1.20 ms a run, 29.1 %`."""
        run_us = self.profile.run_us if self.profile is not None else 0.0
        share = phrase(", {share}", percent_text(us / run_us)) if run_us else ""
        return phrase("{time} a run{share}", time_text(us), share)


def diagnoses(patient: Patient) -> list[Diagnosis]:
    """Everything found, what costs most first; what is not measured comes last."""
    found = [diagnosis for rule in RULES for diagnosis in rule(patient)]
    return sorted(found, key=lambda d: (d.us is None, -(d.us or 0.0)))


def _file(patient: Patient) -> Iterator[Diagnosis]:
    """What `inspect` finds, with the remedy's gain measured where it is a recipe."""
    for finding in findings(patient.model):
        plain_text = Diagnosis(
            finding.what, phrase("the file"), finding.why, NOT_MEASURED, finding.command
        )
        if not finding.recipe or patient.target.kind != "cpu":
            yield plain_text
        else:
            yield from _with_gain(plain_text, patient, finding.recipe)


def _with_gain(diagnosis: Diagnosis, patient: Patient, recipe: str) -> Iterator[Diagnosis]:
    """The model as it is against the model after the recipe, in turns; nothing where the recipe
    would make it slower here."""
    try:
        better = apply(patient.model, recipe).model
        group = list_contenders([patient.model, better], patient.target)
        timed = measure(group, Rule(seconds=patient.seconds, look_seconds=0), memory=False)
    except LitesmithError as error:
        yield replace(diagnosis, costs=phrase("{not_measured}: {error}", NOT_MEASURED, error))
        return
    before, after = timed.results
    saved = before.percentile_us(50) - after.percentile_us(50)
    ratio = timed.comparisons[0].ratio
    if ratio.verdict == UNCLEAR:
        saved, told = 0.0, UNCLEAR
    elif ratio.verdict in (SAME, UNKNOWN):
        saved, told = 0.0, phrase("no difference seen in a run")
    elif ratio.verdict == SLOWER:
        return
    else:
        told = phrase(
            "{time} a run, {time2}",
            time_text(before.percentile_us(50)),
            time_text(after.percentile_us(50)),
        )
        told += phrase(" with the command below")
    yield replace(diagnosis, us=max(saved, 0.0), costs=told + _loading(before, after))


def _loading(before: Result, after: Result) -> str:
    """What is saved when the model is opened, where it is worth a word."""
    times = [float(str(result.row()["create_us"])) for result in (before, after)]
    if times[1] > 0.9 * times[0]:
        return ""
    return phrase(
        "; opening it takes {time}, after it {time2}", time_text(times[0]), time_text(times[1])
    )


def _unprofiled(patient: Patient) -> Iterator[Diagnosis]:
    if patient.profile is None:
        yield Diagnosis(
            phrase("no profile"),
            str(patient.target),
            patient.no_profile,
            NOT_MEASURED,
            f"litesmith bench MODEL --on {patient.target}",
        )


def _outside(patient: Patient) -> Iterator[Diagnosis]:
    if patient.target.kernels != "xnnpack":
        return
    ops = [op for op in patient.ops if op.kernel in (OWN, CUSTOM) and not _is_wide(patient, op)]
    yield from _all_of(
        patient,
        ops,
        phrase("ops outside XNNPACK: {kinds}", _kinds(ops)),
        phrase(
            "XNNPACK has no kernel for them as they are; the runtime's own are mostly "
            "slower, and each ends a stretch that XNNPACK could run in one go"
        ),
        f"litesmith profile MODEL --on {patient.target}",
    )


def _skipped(patient: Patient) -> Iterator[Diagnosis]:
    """Layers whose zeros kernels of ours would skip."""
    if patient.target.kind != "cpu" or patient.target.kernels == LITESMITH:
        return
    layers = skipping(patient.model)
    faster = [one for one in layers if one.is_faster]
    if not faster:
        return
    times = {op.index: op.us or 0.0 for op in patient.ops}
    us = sum(times.get(one.place, 0.0) * (1 - 1 / one.facts.gain) for one in faster)
    evens = [one.facts.even or 0.0 for one in faster]
    span = " to ".join(dict.fromkeys(map(percent_text, (min(evens), max(evens)))))
    zeros = [percent_text(one.facts.zeros) for one in faster]
    told = phrase("op {place} with {zeros} zero blocks", faster[0].place, zeros[0])
    yield Diagnosis(
        phrase("{count} layers multiply by zeros", len(faster)),
        told + (phrase(" and {count} more", len(faster) - 1) if len(faster) > 1 else ""),
        phrase(
            "XNNPACK multiplies zeros like any number here; kernels of Litesmith's skip blocks "
            "of four and should be faster from {span} of zero blocks on",
            span,
        ),
        phrase("{costs}, expected", patient.costs(us)) if us else NOT_MEASURED,
        f"litesmith bench MODEL --on {patient.target},{_ours(patient.target)}",
        us or None,
    )


def _wide(patient: Patient) -> Iterator[Diagnosis]:
    """int16 data in the runtime's reference kernels."""
    is_ours = patient.target.kernels == LITESMITH
    if patient.target.kind != "cpu" or is_ours or find_own_kernels() is None:
        return
    ops = [op for op in patient.ops if op.kernel == OWN and _is_wide(patient, op)]
    yield from _all_of(
        patient,
        ops,
        phrase("int16 data in slow kernels: {kinds}", _kinds(ops)),
        phrase(
            "the runtime has reference kernels alone for int16; Litesmith's give the same "
            "bits, many times faster"
        ),
        f"litesmith bench MODEL --on {patient.target},{_ours(patient.target)}",
    )


def _is_wide(patient: Patient, found: OpTime) -> bool:
    op = patient.model.graphs[found.graph].ops[found.index]
    return any(t.dtype == "int16" for t in (*op.inputs, *op.outputs) if t is not None)


def _ours(target: Target) -> str:
    return str(replace(target, kernels=LITESMITH))


def _boundaries(patient: Patient) -> Iterator[Diagnosis]:
    ops = [op for op in patient.ops if op.kind in _CONVERSIONS]
    yield from _all_of(
        patient,
        ops,
        phrase("conversions between number formats: {kinds}", _kinds(ops)),
        phrase(
            "each reads and writes a whole tensor; a model that is quantized throughout, "
            "its inputs and outputs too, has none"
        ),
        "litesmith inspect MODEL --ops",
    )


def _dominant(patient: Patient) -> Iterator[Diagnosis]:
    for op in patient.ops:
        if op.share > _DOMINANT and op.us:
            yield Diagnosis(
                phrase("one op takes {share} of the time", percent_text(op.share)),
                _place(op),
                phrase("nothing else can make the model twice as fast; look at this op first"),
                patient.costs(op.us),
                f"litesmith profile MODEL --on {patient.target} --top 3",
                op.us,
            )


def _slow(patient: Patient) -> Iterator[Diagnosis]:
    """Ops that a matrix product of the same size would outrun."""
    kinds: dict[str, list[OpTime]] = {}
    for op in patient.ops:
        if op.of_best is not None and op.of_best < _SLOW and op.share >= _HEAVY:
            kinds.setdefault(op.kind, []).append(op)
    for kind, ops in kinds.items():
        us = sum((op.us or 0.0) * (1 - (op.of_best or 0.0)) for op in ops)
        rates = ", ".join(rate_text(op.gmacs or 0.0) for op in ops[:_MOST_NAMED])
        yield Diagnosis(
            phrase(
                "{count} {kind} far below the best speed of this CPU ({rates} GMAC/s)",
                len(ops),
                kind,
                rates,
            ),
            _places(ops),
            _WHY_SLOW.get(kind, phrase("the kernel does not reach what the CPU can do")),
            phrase("{costs} more than at the speed of a matrix product", patient.costs(us)),
            f"litesmith profile MODEL --on {patient.target} --top {_MOST_NAMED}",
            us,
        )


def _threads(patient: Patient) -> Iterator[Diagnosis]:
    """More threads than one, against one, in turns."""
    target = patient.target
    if target.kind != "cpu" or target.threads == 1:
        return
    group = list_contenders(patient.model, [target, replace(target, threads=1)])
    timed = measure(group, Rule(seconds=patient.seconds, look_seconds=0), memory=False)
    many, one = (result.percentile_us(50) for result in timed.results)
    is_faster_alone = timed.comparisons[0].ratio.verdict == FASTER
    if not is_faster_alone and not target.warning:
        return
    yield Diagnosis(
        phrase("{threads} threads are too many", target.threads)
        if is_faster_alone
        else phrase("more threads than cores"),
        str(target),
        target.warning or phrase("on a model of this size the threads wait for each other"),
        phrase("{time} a run, {time2} with one thread", time_text(many), time_text(one)),
        "litesmith bench MODEL --threads auto",
        max(many - one, 0.0) if is_faster_alone else 0.0,
    )


def _copies(patient: Patient) -> Iterator[Diagnosis]:
    """Feeding and reading by copies, against the run."""
    if patient.profile is None:
        return
    size = sum(t.nbytes for t in (*patient.model.main.inputs, *patient.model.main.outputs))
    us = _copy_us(size)
    if us > max(_COPIED * patient.profile.run_us, _LEAST_COPY_US):
        yield Diagnosis(
            phrase("inputs and outputs are {size}", bytes_text(size)),
            phrase("what calls the model"),
            phrase(
                "each copy of them costs time beside the model's; views on the tensors' own "
                "memory (Session.inputs, Session.outputs) copy nothing"
            ),
            phrase("{costs} for one copy", patient.costs(us)),
            "litesmith bench MODEL --copies",
            us,
        )


def _copy_us(size: int) -> float:
    """The fastest of a few copies of so many bytes."""
    source, goal = np.ones(size, np.uint8), np.zeros(size, np.uint8)
    times: list[float] = []
    for _ in range(5):
        start = perf_counter_ns()
        np.copyto(goal, source)
        times.append((perf_counter_ns() - start) / 1e3)
    return min(times)


RULES: tuple[Callable[[Patient], Iterator[Diagnosis]], ...] = (
    _file,
    _outside,
    _wide,
    _skipped,
    _boundaries,
    _dominant,
    _slow,
    _threads,
    _copies,
    _unprofiled,
)


def _all_of(
    patient: Patient, ops: Sequence[OpTime], what: str, why: str, command: str
) -> Iterator[Diagnosis]:
    """A finding on all of some ops; none where there are none."""
    if ops:
        us = sum(op.us or 0.0 for op in ops)
        yield Diagnosis(what, _places(ops), why, patient.costs(us), command, us)


def _kinds(ops: Sequence[OpTime]) -> str:
    counted = Counter(op.kind for op in ops)
    return ", ".join(f"{count} {kind}" for kind, count in counted.most_common(_MOST_NAMED))


def _place(op: OpTime) -> str:
    return phrase("op {index} {kind} {split!r}", op.index, op.kind, op.name.split(";")[0])


def _places(ops: Sequence[OpTime]) -> str:
    """The ops that take longest, by number."""
    longest = sorted(ops, key=lambda op: -(op.us or 0.0))[:_MOST_NAMED]
    more = phrase(" and {count} more", len(ops) - _MOST_NAMED) if len(ops) > _MOST_NAMED else ""
    return phrase("{place}{more}", ", ".join(_place(op) for op in longest), more)
