"""When a model is worse than its baseline allows: the allowances, and a rule for each quantity.

Nothing is measured here. Where chance has a say, an alarm needs more than an estimate:

* accuracy: the drop on the same samples is above what is allowed, and beyond chance;
* latency: the whole interval of the change is above what is allowed, in two looks in a row.

What is above by its estimate alone is unclear: it is said, and it is no alarm.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from litesmith.accuracy.paired import Estimate
from litesmith.arguments import Argument, argument
from litesmith.errors import BadInput
from litesmith.phrases import phrase
from litesmith.timing.statistics import Ratio
from litesmith.units import number_text, typed_number

FINE: str = phrase("ok")
WORSE: str = phrase("worse")
UNCLEAR: str = phrase("unclear")
UNKNOWN: str = phrase("unknown")

OFF: str = phrase("off")

# What writes a baseline anew: a function of the package, an option of the command.
UPDATE = Argument("update_baseline()")
UPDATE.option = "--update"

# Sums of differences may miss a bound that they reach by as much.
_ROUNDING = 1e-9

# Peaks of the same model differ by as much from run to run, whatever its size.
MEMORY_NOISE_BYTES = 262_144
# On another kind of machine kernels pack weights in another way: by how much more peaks may differ.
MEMORY_ELSEWHERE = 0.2

# A delegate may lose no more than this share of the multiplications, however few ops it lost.
_MACS_LOST = 0.01

# The clock that a ratio was taken by -> the ratio in each block.
Clocks = Mapping[str, tuple[float, ...]]


class GateQuantity(NamedTuple):
    """What may be allowed of a quantity: by default, and in which units."""

    title: str
    usual: str
    units: tuple[str, ...]
    example: str


QUANTITIES = {
    "accuracy": GateQuantity(phrase("accuracy"), "0.5pt", ("pt", "%"), "0.5pt or 1%"),
    "latency": GateQuantity(phrase("latency"), "5%", ("%",), "5%"),
    "size": GateQuantity(phrase("file size"), "2%", ("%",), "2%"),
    "gzip": GateQuantity(phrase("gzipped size"), "2%", ("%",), "2%"),
    "memory": GateQuantity(phrase("peak memory"), "5%", ("%",), "5%"),
    "delegation": GateQuantity(phrase("delegation"), "0", ("",), phrase("0, a number of ops")),
}

# For a metric that is no share and has no points.
USUAL_WITHOUT_POINTS = "1%"


@dataclass(frozen=True)
class Allowed:
    """How much worse a quantity may get: a share, points of a share, or a number of ops.

    >>> Allowed.parse("latency", "5%").amount
    0.05
    """

    amount: float
    unit: str

    @staticmethod
    def parse(name: str, text: str) -> "Allowed":
        """What is allowed of a quantity, as typed."""
        if name not in QUANTITIES:
            known = ", ".join(QUANTITIES)
            given = argument("allow", f"{name}={text}")
            raise BadInput("{allow}: no such quantity; there are {known}", given, known)
        if text.strip() == OFF:
            return Allowed(math.inf, OFF)
        row = QUANTITIES[name]
        for unit in row.units:
            amount = typed_number(text, {unit: 0.01 if unit else 1})
            if amount is not None and amount >= 0:
                return Allowed(amount, unit)
        given = argument("allow", f"{name}={text}")
        raise BadInput("{allow}: give {example}, or {off}", given, row.example, OFF)

    @property
    def typed(self) -> str:
        """As it is typed."""
        if self.unit == OFF:
            return OFF
        return f"{number_text(self.amount * (100 if self.unit else 1))}{self.unit}"

    @property
    def text(self) -> str:
        """As a person reads it."""
        if self.unit == OFF:
            return ""
        if not self.unit:
            ops = number_text(self.amount)
            return phrase("1 op") if self.amount == 1 else phrase("{count} ops", ops)
        return f"{number_text(100 * self.amount)} {self.unit}"


Allowances = Mapping[str, str] | Sequence[str]


def read_allowances(given: Allowances) -> dict[str, Allowed]:
    """What is allowed by quantity: {"latency": "5%"}, or as typed: latency=5%."""
    if isinstance(given, Mapping):
        return {name: Allowed.parse(name, text) for name, text in given.items()}
    found: dict[str, Allowed] = {}
    for text in [given] if isinstance(given, str) else given:
        name, sign, amount = text.partition("=")
        if not sign:
            allow = argument("allow", text)
            raise BadInput("{allow}: give a quantity and an amount, as in latency=5%", allow)
        found[name.strip()] = Allowed.parse(name.strip(), amount)
    return found


def growth_verdict(ratio: float, allowed: Allowed) -> str:
    """Of a number that is exact, as now / then."""
    return WORSE if ratio > 1 + allowed.amount + _ROUNDING else FINE


def memory_verdict(then: int, now: int, allowed: Allowed, *, same_machine: bool) -> str:
    """Of peaks, which are not exact; on another kind of machine less so."""
    room = allowed.amount + (0.0 if same_machine else MEMORY_ELSEWHERE)
    return WORSE if now > then * (1 + room) + MEMORY_NOISE_BYTES else FINE


def delegation_verdict(
    then: tuple[int, float], now: tuple[int, float], allowed: Allowed, *, is_timed: bool = False
) -> str:
    """Of the ops that stay outside the delegate, and of the share of MACs inside it.

    Where the time on the same target is judged too, small ops that left tell nothing more.
    """
    more_left = not is_timed and now[0] - then[0] > allowed.amount
    fewer_macs = allowed.unit != OFF and then[1] - now[1] > _MACS_LOST
    return WORSE if more_left or fewer_macs else FINE


def accuracy_bound(allowed: Allowed, value: float, unit: str) -> float:
    """What may be lost, in the unit of a metric of which the baseline has `value`."""
    if allowed.unit == "pt" and unit != "share":
        raise BadInput(
            "{allow}: this metric is no share and has no points; give a share of its value, as in "
            "accuracy=1%",
            argument("allow", f"accuracy={allowed.typed}"),
        )
    return allowed.amount * abs(value) if allowed.unit == "%" else allowed.amount


def accuracy_verdict(difference: Estimate, better: int, bound: float) -> str:
    """Of the paired difference, now less then; `better` is −1 where less is better, and where 0
    any difference counts as lost."""
    if any(math.isnan(number) for number in difference):
        return UNCLEAR
    lost, least, _ = accuracy_loss(difference, better)
    if lost <= bound + _ROUNDING:
        return FINE
    return WORSE if least > 0 else UNCLEAR


def accuracy_loss(difference: Estimate, better: int) -> Estimate:
    """How much worse a difference is, and the ends of its interval."""
    value, low, high = difference
    if better:
        lost = (-value, -high, -low) if better > 0 else (value, low, high)
        return Estimate(*lost)
    return Estimate(abs(value), max(low, -high), max(abs(low), abs(high)))


def ratio_change(now: Sequence[float], then: Sequence[float]) -> Estimate:
    """How many times a ratio has grown between two runs of blocks, with its 95 % interval."""
    later, earlier = Ratio(tuple(now)), Ratio(tuple(then))
    value = later.value / earlier.value
    widths: list[float] = []
    for mine, other in ((0, 1), (1, 0)):
        ends = later.interval[mine], earlier.interval[other]
        if not all(0 < end < math.inf for end in ends):
            return Estimate(value, 0.0, math.inf)
        widths.append(
            math.hypot(math.log(ends[0] / later.value), math.log(ends[1] / earlier.value))
        )
    return Estimate(value, value * math.exp(-widths[0]), value * math.exp(widths[1]))


class LatencyChange(NamedTuple):
    """How many times longer, by the clock that tells it best."""

    clock: str
    times: Estimate


def latency_change(now: Clocks, then: Clocks) -> LatencyChange:
    """By the clock with the narrowest interval, of those that both have."""
    found = [
        LatencyChange(name, ratio_change(now[name], then[name])) for name in now if name in then
    ]
    if not found:
        return LatencyChange("", Estimate(math.nan, 0.0, math.inf))
    return min(found, key=lambda one: one.times.high - one.times.low)


def change_verdict(change: Estimate, allowed: Allowed) -> str:
    """Worse or fine where the whole interval is."""
    if change.low > 1 + allowed.amount:
        return WORSE
    return FINE if change.high <= 1 + allowed.amount else UNCLEAR


class LatencyLook(NamedTuple):
    """What all that was timed so far says; `is_above` where all of the interval is too slow."""

    verdict: str
    change: LatencyChange
    clocks: Clocks
    is_above: bool = False


def judge_latency(chunks: Iterable[Clocks], then: Clocks, allowed: Allowed) -> LatencyLook:
    """Takes chunk by chunk until the answer is clear, or there are no more.

    Fine ends it at once. Worse has to be said twice in a row, and the chunk that came in between
    has to be above the allowance by itself: a disturbance that lasted for one look is no alarm.
    """
    gathered: dict[str, tuple[float, ...]] = {}
    look = LatencyLook(UNCLEAR, latency_change({}, then), {})
    was_worse = False
    for chunk in chunks:
        gathered = join_clocks(gathered, chunk)
        change = latency_change(gathered, then)
        verdict = change_verdict(change.times, allowed)
        fresh = latency_change(chunk, then).times.value
        is_confirmed = was_worse and fresh > 1 + allowed.amount
        was_worse = verdict == WORSE
        said = UNCLEAR if was_worse and not is_confirmed else verdict
        look = LatencyLook(said, change, gathered, is_above=was_worse)
        if look.verdict != UNCLEAR:
            break
    return look


def join_clocks(a: Clocks, b: Clocks) -> dict[str, tuple[float, ...]]:
    """The blocks of both, by the clocks that both have; one without any does not count."""
    if not a or not b:
        return dict(a or b)
    return {name: (*a[name], *b[name]) for name in a if name in b}


def overall(verdicts: Iterable[str], *, strict: bool = False) -> str:
    """One verdict for all: the worst. Strictly, what is not clear is worse."""
    found = set(verdicts)
    if WORSE in found or (strict and found & {UNCLEAR, UNKNOWN}):
        return WORSE
    return UNCLEAR if UNCLEAR in found else FINE
