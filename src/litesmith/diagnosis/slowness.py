"""Why a model is slow: what stands out in the file and in its profile, ranked by the time it costs,
each finding with the command that acts on it.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter_ns
from typing import NamedTuple

import numpy as np

from litesmith.anatomy.findings import findings, slow_integers
from litesmith.anatomy.known_times import is_slow_integer, known_us
from litesmith.anatomy.sparse_speedup import skipping
from litesmith.diagnosis.other_forms import (
    INT8,
    Faster,
    dynamic_form,
    fastest_of,
    int8_form,
    quantized_forms,
)
from litesmith.errors import LitesmithError
from litesmith.ir.ops import OPS, kinds_where
from litesmith.ir.types import Model
from litesmith.passes.core.recipe import apply, is_float
from litesmith.phrases import join, phrase
from litesmith.precision.fastest_forms import SlowKind
from litesmith.precision.float_form import float_form
from litesmith.profiling.events import CUSTOM, OWN
from litesmith.profiling.op_times import OpTime, Profile
from litesmith.run.core.target import LITESMITH, Target
from litesmith.run.litert.own_kernels import find_own_kernels
from litesmith.timing.latency import Result, Rule, list_contenders, measure
from litesmith.timing.statistics import FASTER, SAME, SLOWER, UNCLEAR, UNKNOWN, Ratio
from litesmith.units import bytes_text, percent_text, rate_text, time_text

_DOMINANT = 0.5  # of the run, in one op
_SLOW, _HEAVY = 0.3, 0.05  # below this share of the best speed, above this share of the run
_COPIED = 0.05  # of the run, to copy inputs and outputs once
_LEAST_COPY_US = 10.0  # less than that is noise, whatever its share
_MOST_COPIED = 1 << 26  # bytes that are really copied, more than caches hold
_MOST_NAMED = 3
_AGAIN = 0.001  # of the time blamed on ops in earlier findings

# A float model whose run takes longer is not tried in other forms.
_MOST_US = 5e5

NOT_MEASURED = phrase("not measured")

_CONVERSIONS = kinds_where(lambda row: row.rescales)

# Why a kind of op is far slower than a matrix product, where the reason is known.
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
    """One thing that costs time, `us` in a run, or accuracy; None where that is not measured.

    share  of the run, or of all accuracy that is lost; the shares of all findings on one model add
           up to the whole at most
    parts  the microseconds blamed on single ops, by their place
    """

    what: str
    where: str
    why: str
    costs: str
    command: str
    us: float | None = None
    share: float | None = None
    parts: Mapping[int, float] = field(default_factory=dict[int, float])

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
class ModelToDiagnose:
    """A model on a target, with its profile, or why there is none. A remedy is timed against the
    model for `seconds`, ops in this many `runs`.

    reference  the float model that a quantized one was made from, where the user has it
    """

    model: Model
    target: Target
    profile: Profile | None
    no_profile: str = ""
    seconds: float = 1.0
    reference: Model | None = None
    runs: int | None = None

    @cached_property
    def ops(self) -> tuple[OpTime, ...]:
        """The timed ops of the running graph. Profiling slows ops down: their times are scaled so
        that together they take no longer than a run without it."""
        found = self.profile
        if found is None:
            return ()
        factor = min(1.0, found.run_us / found.ops_us) if found.ops_us else 1.0
        return tuple(
            replace(op, us=None if op.us is None else op.us * factor)
            for op in found.ops
            if op.kernel and op.graph == found.entry
        )

    @property
    def run_us(self) -> float:
        return 0.0 if self.profile is None else self.profile.run_us

    def share(self, us: float) -> float:
        """A time as a share of the run, at most the whole."""
        return min(us / self.run_us, 1.0) if self.run_us else 0.0

    def costs(self, us: float) -> str:
        """A cost in words, as in `1.20 ms a run, 29.1 %`."""
        share = phrase(", {share}", percent_text(self.share(us))) if self.run_us else ""
        return phrase("{time} a run{share}", time_text(us), share)

    @cached_property
    def treatment(self) -> "Treatment":
        """What is known of the int8 ops outside XNNPACK, and whether float is better for them."""
        return _find_treatment(self)


class Treatment(NamedTuple):
    """Ops that are slow in int8.

    cure   the model in its fastest form here, timed; None where none could be tried; the times of
           the ops in float are then estimates
    kinds  the measured times of the ops in either form
    """

    ops: tuple[OpTime, ...]
    cure: Faster | None = None
    kinds: tuple[SlowKind, ...] = ()


def _find_treatment(patient: ModelToDiagnose) -> Treatment:
    target = patient.target
    ops = [op for op in patient.ops if op.kernel == OWN and _is_int8(patient, op)]
    if not ops or target.kind != "cpu" or target.kernels != "xnnpack":
        return Treatment(())
    reference = form = None
    with suppress(LitesmithError):
        reference = patient.reference or float_form(patient.model)
        form = int8_form(reference, target, patient.runs)
    if reference is None or form is None:
        graph = patient.model.graphs[ops[0].graph]
        return Treatment(tuple(op for op in ops if is_slow_integer(graph.ops[op.index])))
    forms = [one for one in (form, dynamic_form(reference)) if one is not None]
    cure = fastest_of(patient.model, forms, target, patient.seconds)
    names = {op.kind for op in ops}
    kinds = tuple(kind for kind in form.kinds if kind.kind in names)
    slow = tuple(op for op in ops if op.kind in {kind.kind for kind in kinds})
    return Treatment(()) if cure is None else Treatment(slow, cure, kinds)


def _is_int8(patient: ModelToDiagnose, found: OpTime) -> bool:
    op = patient.model.graphs[found.graph].ops[found.index]
    return any(t.dtype == "int8" for t in op.outputs) and not OPS[op.kind].rescales


def diagnoses(patient: ModelToDiagnose) -> list[Diagnosis]:
    """All findings, most costly first; unmeasured ones come last."""
    found = [diagnosis for rule in RULES for diagnosis in rule(patient)]
    ranked = sorted(found, key=lambda d: (d.us is None, -(d.us or 0.0)))
    return list(_count_once(patient, ranked))


def _count_once(patient: ModelToDiagnose, ranked: Sequence[Diagnosis]) -> Iterator[Diagnosis]:
    """The findings, each with the share that no earlier finding has counted; where two of them
    blame the same op, the second says so.
    """
    counted_us: dict[int, float] = {}
    for one in ranked:
        new = {place: max(us - counted_us.get(place, 0.0), 0.0) for place, us in one.parts.items()}
        again = sum(one.parts.values()) - sum(new.values())
        for place, us in new.items():
            counted_us[place] = counted_us.get(place, 0.0) + us
        share = patient.share(sum(new.values())) if one.parts and patient.run_us else None
        costs = one.costs
        if again > _AGAIN * sum(one.parts.values()):
            costs = phrase("{costs}; {time} of it is counted above", costs, time_text(again))
        yield replace(one, costs=costs, share=share)


def _file(patient: ModelToDiagnose) -> Iterator[Diagnosis]:
    """The findings of `inspect`, with the measured gain of the remedy where it is a recipe."""
    known = slow_integers(patient.model) if patient.profile is not None else ()
    untried = [one for one in findings(patient.model) if one not in known]  # those were measured
    for finding in untried:
        plain_text = Diagnosis(
            finding.what, phrase("the file"), finding.why, NOT_MEASURED, finding.command
        )
        if not finding.recipe or patient.target.kind != "cpu":
            yield plain_text
        else:
            yield from _with_gain(plain_text, patient, finding.recipe)


def _with_gain(diagnosis: Diagnosis, patient: ModelToDiagnose, recipe: str) -> Iterator[Diagnosis]:
    """Times the model in turns with the model after the recipe; yields nothing where the recipe
    would slow the model down here."""
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
        saved, gain = 0.0, UNCLEAR
    elif ratio.verdict in (SAME, UNKNOWN):
        saved, gain = 0.0, phrase("no difference seen in a run")
    elif ratio.verdict == SLOWER:
        return
    else:
        gain = phrase(
            "{time} a run, {time2}",
            time_text(before.percentile_us(50)),
            time_text(after.percentile_us(50)),
        )
        gain += phrase(" with the command below")
    yield replace(diagnosis, us=max(saved, 0.0), costs=gain + _loading(before, after))


def _loading(before: Result, after: Result) -> str:
    """What is saved when opening the model, where that is worth mentioning."""
    times = [float(str(result.row()["create_us"])) for result in (before, after)]
    if times[1] > 0.9 * times[0]:
        return ""
    return phrase(
        "; opening takes {time}, and {time2} with the command",
        time_text(times[0]),
        time_text(times[1]),
    )


def _unprofiled(patient: ModelToDiagnose) -> Iterator[Diagnosis]:
    if patient.profile is None:
        yield Diagnosis(
            phrase("no profile"),
            str(patient.target),
            patient.no_profile,
            NOT_MEASURED,
            f"litesmith bench MODEL --on {patient.target}",
        )


def _outside(patient: ModelToDiagnose) -> Iterator[Diagnosis]:
    if patient.target.kernels != "xnnpack":
        return
    treated = patient.treatment.ops
    ops = [
        op
        for op in patient.ops
        if op.kernel in (OWN, CUSTOM) and not _is_wide(patient, op) and op not in treated
    ]
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


def _in_integers(patient: ModelToDiagnose) -> Iterator[Diagnosis]:
    """Ops that are slow in int8, with their times in float and a remedy."""
    found = patient.treatment
    ops, cure = found.ops, found.cure
    if not ops:
        return
    us = sum(op.us or 0.0 for op in ops)
    in_float, gain = _expected(patient, ops) if cure is None else _measured(found.kinds, cure)
    scheme = INT8 if cure is None else cure.form.scheme
    yield Diagnosis(
        phrase("slow in int8: {kinds}", _kinds(ops)),
        _places(ops),
        phrase(
            "they leave XNNPACK, which has no int8 kernel for them as they are; {in_float}",
            in_float,
        ),
        phrase("{costs}; {gain}", patient.costs(us), gain),
        _quantizing("FLOAT.tflite", scheme, patient.target),
        us,
        parts={op.index: op.us or 0.0 for op in ops},
    )


def _quantizing(file: str, scheme: str, target: Target) -> str:
    """The command that quantizes a file by a scheme for a target."""
    how = "--data DATA" if scheme == INT8 else f"--to {scheme}"
    there = "" if str(target) == "cpu:1" else f" --on {target}"
    return f"litesmith quantize {file} {how} -o OUT.tflite{there}"


def _measured(kinds: Sequence[SlowKind], cure: Faster) -> tuple[str, str]:
    """The measured times of the ops in float, and of the remedied model with its command."""
    in_float = phrase(
        "timed one by one: {time} in int8, {time2} in float",
        time_text(sum(kind.integer_us for kind in kinds)),
        time_text(sum(kind.float_us for kind in kinds)),
    )
    return in_float, _gain(cure.ratio)


def _gain(ratio: Ratio) -> str:
    return phrase("{times} with the command below, {words}", ratio.times_words, ratio.words)


def _expected(patient: ModelToDiagnose, ops: Sequence[OpTime]) -> tuple[str, str]:
    """The same times, estimated from such ops on other machines."""
    us = sum(op.us or 0.0 for op in ops)
    own = [patient.model.graphs[op.graph].ops[op.index] for op in ops]
    forms = (sum(known_us(op, is_integer=form) for op in own) for form in (True, False))
    slow, fast = forms
    in_float = us * fast / slow
    after = max(patient.run_us - us + in_float, 0.0)
    return (
        phrase("in float they should take {time}", time_text(in_float)),
        phrase("about {time} with the command below, expected", time_text(after)),
    )


def _worth_quantizing(patient: ModelToDiagnose) -> Iterator[Diagnosis]:
    """A float model that a scheme made faster when tried here; on a busy machine, one that it may
    make faster.
    """
    target, is_long = patient.target, patient.run_us > _MOST_US
    if not is_float(patient.model) or patient.profile is None or is_long:
        return
    if target.kind != "cpu" or target.kernels != "xnnpack":
        return
    forms = quantized_forms(patient.model, target, patient.runs)
    found = fastest_of(patient.model, forms, target, patient.seconds)
    if found is None or found.ratio.verdict not in (FASTER, UNCLEAR):
        return
    scheme = found.form.scheme
    yield Diagnosis(
        phrase("float throughout, and {scheme} is faster here", scheme)
        if found.ratio.verdict == FASTER
        else phrase("float throughout; {scheme} may be faster here", scheme),
        phrase("the file"),
        phrase(
            "the fastest of {schemes}, timed here beside the model; only data can tell what it "
            "costs in accuracy: litesmith doctor MODEL --data DATA",
            join([form.scheme for form in forms], ", "),
        ),
        _gain(found.ratio),
        _quantizing("MODEL", scheme, target),
        found.saved_us,
    )


def _skipped(patient: ModelToDiagnose) -> Iterator[Diagnosis]:
    """Layers with zeros that Litesmith's own kernels would skip."""
    if patient.target.kind != "cpu" or patient.target.kernels == LITESMITH:
        return
    layers = skipping(patient.model)
    faster = [one for one in layers if one.is_faster]
    if not faster:
        return
    times = {op.index: op.us or 0.0 for op in patient.ops}
    parts = {one.place: times.get(one.place, 0.0) * (1 - 1 / one.facts.gain) for one in faster}
    us = sum(parts.values())
    evens = [one.facts.even or 0.0 for one in faster]
    span = " to ".join(dict.fromkeys(map(percent_text, (min(evens), max(evens)))))
    zeros = [percent_text(one.facts.zeros) for one in faster]
    first_op = phrase("op {place} with {zeros} zero blocks", faster[0].place, zeros[0])
    yield Diagnosis(
        phrase("1 layer multiplies by zeros")
        if len(faster) == 1
        else phrase("{count} layers multiply by zeros", len(faster)),
        first_op + (phrase(" and {count} more", len(faster) - 1) if len(faster) > 1 else ""),
        phrase(
            "XNNPACK multiplies zeros like any number here; kernels of Litesmith's skip blocks "
            "of four and should be faster from {span} of zero blocks on",
            span,
        ),
        phrase("{costs}, expected", patient.costs(us)) if us else NOT_MEASURED,
        f"litesmith bench MODEL --on {patient.target},{_ours(patient.target)}",
        us or None,
        parts=parts,
    )


def _wide(patient: ModelToDiagnose) -> Iterator[Diagnosis]:
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


def _is_wide(patient: ModelToDiagnose, found: OpTime) -> bool:
    op = patient.model.graphs[found.graph].ops[found.index]
    return any(t.dtype == "int16" for t in (*op.inputs, *op.outputs) if t is not None)


def _ours(target: Target) -> str:
    return str(replace(target, kernels=LITESMITH))


def _boundaries(patient: ModelToDiagnose) -> Iterator[Diagnosis]:
    conversions = [op for op in patient.ops if op.kind in _CONVERSIONS]
    ops = [op for op in conversions if not _unpacks(patient, op)]
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


def _unpacks(patient: ModelToDiagnose, found: OpTime) -> bool:
    """True for an op that unpacks a stored constant, which lies between no two ops."""
    source = patient.model.graphs[found.graph].ops[found.index].inputs[0]
    return source is not None and source.is_const


def _dominant(patient: ModelToDiagnose) -> Iterator[Diagnosis]:
    for op in patient.ops:
        share = patient.share(op.us or 0.0)
        if share > _DOMINANT and op.us:
            yield Diagnosis(
                phrase("one op takes {share} of the time", percent_text(share)),
                _place(op),
                phrase("nothing else can make the model twice as fast; look at this op first"),
                patient.costs(op.us),
                f"litesmith profile MODEL --on {patient.target} --top 3",
                op.us,
                parts={op.index: op.us},
            )


def _slow(patient: ModelToDiagnose) -> Iterator[Diagnosis]:
    """Ops that a matrix product of the same size would outrun."""
    kinds: dict[str, list[OpTime]] = {}
    for op in patient.ops:
        is_heavy = patient.share(op.us or 0.0) >= _HEAVY
        if op.of_best is not None and op.of_best < _SLOW and is_heavy:
            kinds.setdefault(op.kind, []).append(op)
    for kind, ops in kinds.items():
        parts = {op.index: (op.us or 0.0) * (1 - (op.of_best or 0.0)) for op in ops}
        us = sum(parts.values())
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
            phrase("{costs}, beyond what a matrix product of its size takes", patient.costs(us)),
            f"litesmith profile MODEL --on {patient.target} --top {_MOST_NAMED}",
            us,
            parts=parts,
        )


def _threads(patient: ModelToDiagnose) -> Iterator[Diagnosis]:
    """More than one thread, timed in turns against one."""
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


def _copies(patient: ModelToDiagnose) -> Iterator[Diagnosis]:
    """The cost of feeding and reading by copies, compared with the run."""
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
            phrase("{time} for one copy, beside the run", time_text(us)),
            "litesmith bench MODEL --copies",
            us,
        )


def _copy_us(size: int) -> float:
    """The fastest of a few copies of this many bytes; estimated from a part where they exceed the
    caches."""
    some = min(size, _MOST_COPIED)
    source, goal = np.ones(some, np.uint8), np.zeros(some, np.uint8)
    times: list[float] = []
    for _ in range(5):
        start = perf_counter_ns()
        np.copyto(goal, source)
        times.append((perf_counter_ns() - start) / 1e3)
    return min(times) * max(1.0, size / _MOST_COPIED)


RULES: tuple[Callable[[ModelToDiagnose], Iterator[Diagnosis]], ...] = (
    _file,
    _in_integers,
    _outside,
    _wide,
    _skipped,
    _boundaries,
    _dominant,
    _slow,
    _worth_quantizing,
    _threads,
    _copies,
    _unprofiled,
)


def _all_of(
    patient: ModelToDiagnose, ops: Sequence[OpTime], what: str, why: str, command: str
) -> Iterator[Diagnosis]:
    """A finding about all of some ops; none where there are no ops."""
    if ops:
        parts = {op.index: op.us or 0.0 for op in ops}
        us = sum(parts.values())
        yield Diagnosis(what, _places(ops), why, patient.costs(us), command, us, parts=parts)


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
