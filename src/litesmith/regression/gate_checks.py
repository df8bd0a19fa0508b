"""The checks of a gate: each measures one quantity of a model and compares it with the baseline."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from litesmith.accuracy.evaluate import independent_rows
from litesmith.accuracy.metrics import difference_of, metric_named
from litesmith.accuracy.paired import Estimate
from litesmith.arguments import argument
from litesmith.data.samples import Data
from litesmith.errors import BadInput
from litesmith.evidence.codec import finite
from litesmith.evidence.records import Environment
from litesmith.ir.types import Model
from litesmith.operating_system import quote
from litesmith.phrases import phrase
from litesmith.regression.baseline import Baseline, Delegation, Scores, Timing
from litesmith.regression.comparison import NO_DATA, measure_size
from litesmith.regression.gate_measures import (
    GateSettings,
    data_digest,
    groups_by_contents,
    join_timings,
    least_peak_bytes,
    list_delegations,
    score_model,
    timing_chunks,
    unpack_workload,
)
from litesmith.regression.gate_rules import (
    FINE,
    MEMORY_ELSEWHERE,
    MEMORY_NOISE_BYTES,
    OFF,
    QUANTITIES,
    UNCLEAR,
    UNKNOWN,
    UPDATE,
    WORSE,
    Allowed,
    Clocks,
    LatencyLook,
    accuracy_bound,
    accuracy_loss,
    accuracy_verdict,
    delegation_verdict,
    growth_verdict,
    judge_latency,
    memory_verdict,
)
from litesmith.run.core.target import Target
from litesmith.run.trial_run import probe
from litesmith.temporary import temporary_file
from litesmith.tflite.file import digest
from litesmith.units import (
    bytes_text,
    gain_text,
    growth_text,
    percent_text,
    plain,
    score_text,
    time_text,
    total_text,
)

NOT_ASKED = phrase("not asked for")

# The placeholder in commands for the baseline's model, where its file is gone.
_BEFORE = "BEFORE.tflite"


@dataclass(frozen=True)
class Check:
    """One quantity compared with the baseline in words; `facts` has the numbers for programs.

    command  the command that examines the cause
    used     the share of the allowance that the change uses, with its interval where it has one;
             None where the share is unknown, or nothing is allowed
    """

    quantity: str
    title: str
    verdict: str
    allowed: str = ""
    then: str = ""
    now: str = ""
    change: str = ""
    why: str = ""
    command: str = ""
    facts: Mapping[str, object] = field(default_factory=dict[str, object])
    used: Estimate | None = None

    def row(self) -> dict[str, object]:
        """The check by name, for JSON."""
        named = {name: getattr(self, name) for name in ("quantity", "title", "verdict", "allowed")}
        return {**named, "why": self.why, "command": self.command, **self.facts}


@dataclass(frozen=True)
class GateCase:
    """The input of every check."""

    baseline: Baseline
    path: Path
    model: Path
    content: Model
    data: Data | None
    manner: GateSettings
    host: Environment

    @property
    def allowed(self) -> Mapping[str, Allowed]:
        return {**self.baseline.allowed, **self.manner.allow}

    @property
    def target(self) -> Target:
        return self.baseline.target

    @property
    def same_machine(self) -> bool:
        return machine_kind(self.host) == machine_kind(self.baseline.host)

    @property
    def before(self) -> str:
        """The baseline's model, as a command names it."""
        old = Path(self.baseline.model)
        try:
            is_there = old.is_file() and digest(old) == self.baseline.digest
        except OSError:  # such a file cannot be opened
            is_there = False
        return quote(str(old)) if is_there else _BEFORE

    @property
    def file(self) -> str:
        """The present model, as a command names it."""
        return quote(str(self.model))

    def check(self, quantity: str, why: str = "") -> Check:
        """The check of a quantity whose verdict is still unknown."""
        title, allowed = QUANTITIES[quantity].title, self.allowed[quantity]
        return Check(quantity, title, UNKNOWN, allowed.text, why=why)


def machine_kind(facts: Environment) -> tuple[object, ...]:
    """The facts of a machine that decide which kernels run: its processor and its system."""
    return facts.get("cpu"), str(facts.get("system", "")).partition(" ")[0]


def check_all(case: GateCase) -> tuple[Check, ...]:
    """Checks every quantity, except those that are switched off."""
    return tuple(
        check
        for quantity, run in CHECKS.items()
        for check in (
            run(case)
            if case.allowed[quantity].unit != OFF
            else [Check(quantity, QUANTITIES[quantity].title, OFF, why=NOT_ASKED)]
        )
    )


def _accuracy(case: GateCase) -> list[Check]:
    then = case.baseline.scores
    if then is None or case.data is None:
        why = (
            phrase("the baseline has none: {unscored}", case.baseline.unscored)
            if then is None
            else NO_DATA
        )
        return [case.check("accuracy", why=why)]
    _refuse_other_data(case, then)
    manner = replace(case.manner, metric=then.metric)
    now = score_model(case.model, case.data, case.target, manner)
    if now.reference != then.reference:
        raise BadInput(
            "{path}: was held against another reference model (sha256 {reference}); give "
            "that with {against}, or {update}",
            case.path,
            then.reference[:12] or phrase("none"),
            argument("against"),
            UPDATE,
        )
    has_fixed_width = metric_named(then.metric).needs != "task"
    is_other_width = has_fixed_width and now.rows.shape[1:] != then.rows.shape[1:]
    if len(now.rows) != len(then.rows) or is_other_width:
        raise BadInput(
            "{model}: {title} is made of other numbers than in {path}: have the classes "
            "changed? write it anew with {update}",
            case.model,
            metric_named(then.metric).title,
            case.path,
            UPDATE,
        )
    return [_accuracy_check(case, then, now)]


def _accuracy_check(case: GateCase, then: Scores, now: Scores) -> Check:
    metric = metric_named(then.metric)
    assert case.data is not None
    groups = groups_by_contents(case.data, len(now.rows))
    difference = difference_of(metric, now.rows, then.rows, groups)
    bound = accuracy_bound(case.allowed["accuracy"], then.value, then.unit)
    verdict = accuracy_verdict(difference, then.better, bound)
    change = gain_text(difference.value, then.unit, difference.low, difference.high)
    beyond = (
        "beyond chance" if verdict == WORSE else phrase("within chance: more samples would decide")
    )
    values = then.value, now.value, *difference, bound
    names = ("baseline", "now", "difference", "low", "high", "bound")
    return replace(
        case.check("accuracy"),
        verdict=verdict,
        title=metric.title,
        then=score_text(then.value, then.unit),
        now=score_text(now.value, now.unit),
        change=change,
        why=_why(
            verdict,
            phrase(
                "{title} changed by {change} on {count} samples, more than allowed and {beyond}",
                metric.title,
                change,
                total_text(now.count),
                beyond,
            ),
        ),
        command=f"litesmith compare {case.before} {case.file} --data {quote(now.source)}",
        facts={
            "metric": then.metric,
            "n": now.count,
            "independent": independent_rows(now.count, groups),
            **dict(zip(names, map(finite, values), strict=True)),
        },
        used=_share_used(accuracy_loss(difference, then.better), bound),
    )


def _refuse_other_data(case: GateCase, then: Scores) -> None:
    assert case.data is not None
    if data_digest(case.data) != then.data:
        raise BadInput(
            "{source}: not the data of {path} ({count} samples of {source2}): results on "
            "other samples cannot be paired; give that data, with the same {samples}, or {update}",
            plain(case.data.source),
            case.path,
            total_text(then.count),
            plain(then.source),
            argument("samples"),
            UPDATE,
        )


def _latency(case: GateCase) -> list[Check]:
    then = case.baseline.timing
    if then is None:
        return [
            case.check(
                "latency", why=phrase("the baseline has none: {untimed}", case.baseline.untimed)
            )
        ]
    timed = case.manner.seconds, case.manner.progress
    workload = unpack_workload(case.baseline.workload)
    with temporary_file(workload, "workload.tflite") as reference:
        probe(reference, case.target)
        timings: list[Timing] = []

        def chunks() -> Iterator[Clocks]:
            for timing in timing_chunks(reference, case.model, case.target, *timed):
                timings.append(timing)
                yield timing.clocks

        look = judge_latency(chunks(), then.clocks, case.allowed["latency"])
    return [_latency_check(case, look, join_timings(timings), then)]


def _latency_check(case: GateCase, look: LatencyLook, timing: Timing, then: Timing) -> Check:
    times, low, high = look.change.times
    here = timing.reference_us * then.ratio.value
    change = growth_text(times, low, high)
    sure = phrase("the whole interval is above what is allowed, twice in a row")
    doubt = phrase(
        "its interval includes the limit: a quieter machine, or more --seconds, would decide"
    )
    once = phrase(
        "the whole interval is above what is allowed, but not twice in a row: a quieter machine, "
        "or more --seconds, would decide"
    )
    return replace(
        case.check("latency"),
        verdict=look.verdict,
        then=time_text(here),
        now=time_text(here * times) if math.isfinite(times) else time_text(timing.us),
        change=change,
        why=_why(
            look.verdict,
            phrase(
                "{change} against the baseline's graph, timed in turns on {target}; {sure}",
                change,
                case.target,
                sure if look.verdict == WORSE else once if look.is_above else doubt,
            ),
        ),
        command=_timing_command(case),
        facts={
            "change": finite(times),
            "low": finite(low),
            "high": finite(high),
            "clock": look.change.clock,
            "ratio": timing.ratio.value,
            "baseline_ratio": then.ratio.value,
            "us": timing.us,
            "reference_us": timing.reference_us,
            "baseline_us": then.us,
            "blocks": {name: len(blocks) for name, blocks in look.clocks.items()},
        },
        used=_growth_used(look.change.times, case.allowed["latency"]),
    )


def _timing_command(case: GateCase) -> str:
    """A command that times each op where the runtime reports ops, otherwise the whole, beside the
    baseline's model."""
    if case.target.kind == "cpu":
        return f"litesmith profile {case.file} --on {case.target}"
    return f"litesmith bench {case.before} {case.file} --on {case.target}"


def _sizes(case: GateCase) -> list[Check]:
    now, then = measure_size(case.model), case.baseline.size
    return [
        replace(
            case.check(quantity),
            verdict=growth_verdict(after / before, case.allowed[quantity]),
            then=bytes_text(before),
            now=bytes_text(after),
            change=growth_text(after / before),
            why=_why(
                growth_verdict(after / before, case.allowed[quantity]),
                phrase(
                    "{count} bytes, and {count2} in the baseline",
                    total_text(after),
                    total_text(before),
                ),
            ),
            command=f"litesmith diff {case.before} {case.file}",
            facts={"baseline": before, "now": after},
            used=_growth_used(_exact(after / before), case.allowed[quantity]),
        )
        for quantity, before, after in (
            ("size", then.bytes, now.bytes),
            ("gzip", then.gzip_bytes, now.gzip_bytes),
        )
    ]


def _memory(case: GateCase) -> list[Check]:
    then, allowed = case.baseline.peak_bytes, case.allowed["memory"]
    if then is None:
        return [
            case.check("memory", why=phrase("the baseline has none: not asked for, or not told"))
        ]
    now = least_peak_bytes(case.model, case.target, then * (1 + allowed.amount))
    if now is None:
        return [case.check("memory", why=phrase("this system does not report peak memory"))]
    verdict = memory_verdict(then, now, allowed, same_machine=case.same_machine)
    room = phrase("{size} that peaks differ by anyway", bytes_text(MEMORY_NOISE_BYTES))
    if not case.same_machine:
        room = phrase(
            "{room} and {share} for another kind of machine", room, percent_text(MEMORY_ELSEWHERE)
        )
    return [
        replace(
            case.check("memory"),
            verdict=verdict,
            then=bytes_text(then),
            now=bytes_text(now),
            change=_growth_words(then, now, allowed, verdict),
            why=_why(
                verdict,
                phrase(
                    "the least peak of some runs is {size}, and it was {size2}: above what is "
                    "allowed, the {room}",
                    bytes_text(now),
                    bytes_text(then),
                    room,
                ),
            ),
            command=f"litesmith inspect {case.file}",
            facts={"baseline": then, "now": now},
            used=_growth_used(_exact(now / then), allowed) if then else None,
        )
    ]


def _growth_words(then: int, now: int, allowed: Allowed, verdict: str) -> str:
    """Explains why growth beyond the allowance is no alarm."""
    if then < 1:
        return ""
    is_noise = verdict == FINE and growth_verdict(now / then, allowed) == WORSE
    growth = growth_text(now / then)
    return phrase("{growth}, in the noise", growth) if is_noise else growth


def _delegation(case: GateCase) -> list[Check]:
    before = case.baseline.delegations
    places = tuple(found.target for found in before[1:])
    after = list_delegations(case.model, case.content, case.target, places)
    return [_one_delegation(case, *pair) for pair in zip(before, after, strict=True)]


def _one_delegation(case: GateCase, then: Delegation, now: Delegation) -> Check:
    is_own = then.target == str(case.target)
    blank = case.check("delegation")
    if not is_own:
        blank = replace(blank, title=phrase("ops on {target}", then.target))
    if then.why or now.why:
        return replace(blank, why=now.why or then.why)
    pair = (then.left, then.macs), (now.left, now.macs)
    is_timed = is_own and case.allowed["latency"].unit != OFF
    verdict = delegation_verdict(*pair, case.allowed["delegation"], is_timed=is_timed)
    if then.how != now.how and verdict == WORSE:
        verdict = UNCLEAR
    more = {kind: n - then.kinds.get(kind, 0) for kind, n in now.kinds.items()}
    kinds = ", ".join(f"{n} {kind}" for kind, n in more.items() if n > 0) or phrase("none more")
    how = "" if then.how == now.how else phrase("; {how} now, {how2} then", now.how, then.how)
    look = "doctor" if is_own else f"doctor --for {then.target}"
    where = f" --on {case.target}" if is_own else ""
    return replace(
        blank,
        verdict=verdict,
        then=phrase("{ops}/{ops2} ops", then.ops - then.left, then.ops),
        now=phrase("{ops}/{ops2} ops", now.ops - now.left, now.ops),
        change=_left_change(now.left - then.left, verdict, case.allowed["delegation"]),
        why=_why(
            verdict,
            phrase(
                "{left} ({kinds}); {share} of the MACs are delegated, {share2} were{how}",
                _left_words(now.left - then.left),
                kinds,
                percent_text(now.macs),
                percent_text(then.macs),
                how,
            ),
        ),
        command=f"litesmith {look} {case.file}{where}",
        facts={
            "target": then.target,
            "how": now.how,
            "baseline_left": then.left,
            "left": now.left,
            "baseline_macs": then.macs,
            "macs": now.macs,
            "baseline_partitions": then.partitions,
            "partitions": now.partitions,
            "kinds": dict(now.kinds),
        },
    )


def _left_change(more: int, verdict: str, allowed: Allowed) -> str:
    """Explains why more ops that are left out are no alarm."""
    left = _left_words(more)
    is_beyond = verdict == FINE and more > allowed.amount
    return phrase("{left}, judged by latency", left) if is_beyond else left


def _left_words(more: int) -> str:
    if not more:
        return phrase("no more ops left out")
    s = "" if abs(more) == 1 else "s"
    return (
        phrase("{more} more op{s} left out", more, s)
        if more > 0
        else phrase("{more} fewer op{s} left out", -more, s)
    )


def _exact(value: float) -> Estimate:
    return Estimate(value, value, value)


def _growth_used(times: Estimate, allowed: Allowed) -> Estimate | None:
    """The share of the allowance used by a quantity that grew by this factor."""
    return _share_used(Estimate(*(end - 1 for end in times)), allowed.amount)


def _share_used(lost: Estimate, bound: float) -> Estimate | None:
    """The share of the allowed loss that is lost."""
    if not 0 < bound < math.inf or not all(map(math.isfinite, lost)):
        return None
    return Estimate(*(end / bound for end in lost))


def _why(verdict: str, reason: str) -> str:
    """The reason, where the verdict needs one."""
    return "" if verdict == FINE else reason


# The check of each quantity; size and gzip are checked together.
CHECKS: dict[str, Callable[[GateCase], list[Check]]] = {
    "accuracy": _accuracy,
    "latency": _latency,
    "size": lambda case: _sizes(case)[:1],
    "gzip": lambda case: _sizes(case)[1:],
    "memory": _memory,
    "delegation": _delegation,
}
