"""When a model is worse than its baseline allows: the allowances, and a rule for each quantity.

Nothing is measured here. Where chance plays a part, an alarm needs more than an estimate:

* accuracy: the drop on the same samples exceeds the allowance, and is beyond chance;
* latency: the whole interval of the change exceeds the allowance, in two looks in a row.

A quantity that exceeds the allowance by its estimate alone is unclear: it is reported, without an
alarm.
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

# How to write the baseline anew: a function of the package, an option of the command.
UPDATE = Argument("update_baseline()")
UPDATE.option = "--update"

# The rounding error by which a sum of differences may miss a bound that it reaches.
_ROUNDING = 1e-9

# Peaks of the same model differ by this much from run to run, whatever its size.
MEMORY_NOISE_BYTES = 262_144
# Kernels pack weights differently on another kind of machine: the share by which peaks may then
# differ.
MEMORY_ELSEWHERE = 0.2

# The largest share of the multiplications that a delegate may lose, however few ops it lost.
_MACS_LOST = 0.01

# The ratio in each block, by the clock that measured it.
Clocks = Mapping[str, tuple[float, ...]]


class GateQuantity(NamedTuple):
    """The allowance of a quantity: its default, and its units."""

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

# The default for a metric that is not a share and has no points.
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
        """Parses the allowance of a quantity."""
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
        """The allowance as a user types it."""
        if self.unit == OFF:
            return OFF
        return f"{number_text(self.amount * (100 if self.unit else 1))}{self.unit}"

    @property
    def text(self) -> str:
        """The allowance as a person reads it."""
        if self.unit == OFF:
            return ""
        if not self.unit:
            ops = number_text(self.amount)
            return phrase("1 op") if self.amount == 1 else phrase("{count} ops", ops)
        return f"{number_text(100 * self.amount)} {self.unit}"


Allowances = Mapping[str, str] | Sequence[str]


def read_allowances(given: Allowances) -> dict[str, Allowed]:
    """Reads allowances by quantity: {"latency": "5%"}, or as typed: latency=5%."""
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
    """The verdict on an exact number, from now / then."""
    return WORSE if ratio > 1 + allowed.amount + _ROUNDING else FINE


def memory_verdict(then: int, now: int, allowed: Allowed, *, same_machine: bool) -> str:
    """The verdict on memory peaks, which are inexact, more so on another kind of machine."""
    room = allowed.amount + (0.0 if same_machine else MEMORY_ELSEWHERE)
    return WORSE if now > then * (1 + room) + MEMORY_NOISE_BYTES else FINE


def delegation_verdict(
    then: tuple[int, float], now: tuple[int, float], allowed: Allowed, *, is_timed: bool = False
) -> str:
    """The verdict on the ops outside the delegate, and on the share of MACs inside it.

    Where the time on the same target is judged too, a few small ops that left are no alarm.
    """
    more_left = not is_timed and now[0] - then[0] > allowed.amount
    fewer_macs = allowed.unit != OFF and then[1] - now[1] > _MACS_LOST
    return WORSE if more_left or fewer_macs else FINE


def accuracy_bound(allowed: Allowed, value: float, unit: str) -> float:
    """The allowed loss, in the unit of a metric whose baseline is `value`."""
    if allowed.unit == "pt" and unit != "share":
        raise BadInput(
            "{allow}: this metric is no share and has no points; give a share of its value, as in "
            "accuracy=1%",
            argument("allow", f"accuracy={allowed.typed}"),
        )
    return allowed.amount * abs(value) if allowed.unit == "%" else allowed.amount


def accuracy_verdict(difference: Estimate, better: int, bound: float) -> str:
    """The verdict on the paired difference, now minus then. `better` is −1 where less is better;
    for 0 any difference counts as a loss."""
    if any(math.isnan(number) for number in difference):
        return UNCLEAR
    lost, least, _ = accuracy_loss(difference, better)
    if lost <= bound + _ROUNDING:
        return FINE
    return WORSE if least > 0 else UNCLEAR


def accuracy_loss(difference: Estimate, better: int) -> Estimate:
    """The loss in a difference, with its interval."""
    value, low, high = difference
    if better:
        lost = (-value, -high, -low) if better > 0 else (value, low, high)
        return Estimate(*lost)
    return Estimate(abs(value), max(low, -high), max(abs(low), abs(high)))


def ratio_change(now: Sequence[float], then: Sequence[float]) -> Estimate:
    """The factor by which a ratio has grown between two runs of blocks, with its 95 % interval."""
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
    """The factor by which the time has grown, by the most precise clock."""

    clock: str
    times: Estimate


def latency_change(now: Clocks, then: Clocks) -> LatencyChange:
    """The change by the clock with the narrowest interval, among the clocks that both runs have."""
    found = [
        LatencyChange(name, ratio_change(now[name], then[name])) for name in now if name in then
    ]
    if not found:
        return LatencyChange("", Estimate(math.nan, 0.0, math.inf))
    return min(found, key=lambda one: one.times.high - one.times.low)


def change_verdict(change: Estimate, allowed: Allowed) -> str:
    """Worse or fine where the whole interval agrees; otherwise unclear."""
    if change.low > 1 + allowed.amount:
        return WORSE
    return FINE if change.high <= 1 + allowed.amount else UNCLEAR


class LatencyLook(NamedTuple):
    """The result of all timing so far; `is_above` where the whole interval is too slow."""

    verdict: str
    change: LatencyChange
    clocks: Clocks
    is_above: bool = False


def judge_latency(chunks: Iterable[Clocks], then: Clocks, allowed: Allowed) -> LatencyLook:
    """Takes chunk by chunk until the answer is clear, or there are no more.

    A fine result ends the timing at once. A worse result must come twice in a row, and the chunk
    between must exceed the allowance by itself: a disturbance during one look is no alarm.
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
        present_verdict = UNCLEAR if was_worse and not is_confirmed else verdict
        look = LatencyLook(present_verdict, change, gathered, is_above=was_worse)
        if look.verdict != UNCLEAR:
            break
    return look


def join_clocks(a: Clocks, b: Clocks) -> dict[str, tuple[float, ...]]:
    """Joins the blocks of two timings, by the clocks that both have; a timing without clocks is
    ignored."""
    if not a or not b:
        return dict(a or b)
    return {name: (*a[name], *b[name]) for name in a if name in b}


def overall(verdicts: Iterable[str], *, strict: bool = False) -> str:
    """The worst of all verdicts; with `strict`, unclear counts as worse."""
    found = set(verdicts)
    if WORSE in found or (strict and found & {UNCLEAR, UNKNOWN}):
        return WORSE
    return UNCLEAR if UNCLEAR in found else FINE
