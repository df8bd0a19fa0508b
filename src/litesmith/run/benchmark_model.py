"""What TensorFlow Lite's `benchmark_model` prints, as values."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from litesmith.errors import CannotRun
from litesmith.units import plain

_TIMINGS = re.compile(
    r"Inference timings in us: Init: (\S+), First inference: (\S+), .*Inference \(avg\): \S"
)
_SPREAD = re.compile(r"(?:INFO: )?(count=\d+ .*)")
_MEMORY = re.compile(r"(?:footprint delta .*|Peak memory footprint) \(MB\): init=\S+ overall=(\S+)")
_DELEGATE = re.compile(r"(?:INFO: )?((?:Explicitly applied|Though) .* delegate.*)")
_OP = re.compile(
    r"\s*(?P<kind>\S.*?)\s+(?:[\d.]+\s+)?(?P<first>[\d.]+)\s+(?P<average>[\d.]+)"
    r"\s+\S+%\s+\S+%\s+(?P<memory>-?[\d.]+)\s+(?P<calls>\d+)\s+(?P<name>.*)"
)


@dataclass(frozen=True)
class Spread:
    """Times of consecutive runs, as the program sums them up; newer ones tell the median too."""

    count: int
    mean_us: float
    low_us: float
    high_us: float
    deviation_us: float
    median_us: float | None = None

    @property
    def typical_us(self) -> float:
        return self.mean_us if self.median_us is None else self.median_us


@dataclass(frozen=True)
class OpTime:
    """One op of the profile, or several calls of one within a run."""

    kind: str
    name: str
    first_us: float
    mean_us: float  # of a call
    calls: int  # in a run
    memory_bytes: int
    is_delegated: bool  # True where it is an op inside a delegate


@dataclass(frozen=True)
class Told:
    """What one call of the program measured."""

    create_us: float
    first_us: float
    warm_up: Spread | None
    runs: Spread
    memory_bytes: int | None  # that the model took, as the system counts it
    ops: tuple[OpTime, ...]
    note: str  # how much of the model a delegate took, in the program's words


def read(text: str) -> Told:
    """The values in what the program printed; raises where it measured nothing."""
    timings = _TIMINGS.search(text)
    spreads = [_spread(found[1]) for found in map(_SPREAD.match, text.splitlines()) if found]
    if timings is None or not spreads:
        raise CannotRun(f"benchmark_model measured nothing: {_cause(text)}")
    memory = _MEMORY.search(text)
    overall = float(memory[1]) if memory else -1.0
    delegate = next(filter(None, map(_DELEGATE.match, text.splitlines())), None)
    return Told(
        create_us=float(timings[1]),
        first_us=float(timings[2]),
        warm_up=spreads[0] if len(spreads) > 1 else None,
        runs=spreads[-1],
        memory_bytes=round(overall * 2**20) if overall >= 0 else None,
        ops=tuple(_ops(text)),
        note=plain(delegate[1]) if delegate else "",
    )


def _spread(text: str) -> Spread:
    """`count=50 first=9 … avg=9.4 std=1`; equal times are told as `count=2 curr=9(all same)`."""
    values = {key: float(value) for key, value in re.findall(r"(\w+)=([\d.e+-]+)", text)}
    same = values.get("curr", 0.0)
    return Spread(
        count=int(values["count"]),
        mean_us=values.get("avg", same),
        low_us=values.get("min", same),
        high_us=values.get("max", same),
        deviation_us=values.get("std", 0.0),
        median_us=values.get("median"),
    )


def _ops(text: str) -> Iterator[OpTime]:
    """Rows of the tables in run order; those of the initialization do not count."""
    _, _, runs = text.partition("Operator-wise Profiling Info")
    is_inside, is_table = False, False
    for line in runs.splitlines():
        if line.startswith("Delegate internal:"):
            is_inside = True
        if "=====" in line:
            is_table = "Run Order" in line
        found = _OP.fullmatch(line) if is_table else None
        if found:
            yield OpTime(
                kind=plain(found["kind"]),
                name=plain(found["name"].strip()),
                first_us=float(found["first"]) * 1e3,
                mean_us=float(found["average"]) * 1e3,
                calls=int(found["calls"]),
                memory_bytes=round(float(found["memory"]) * 1000),
                is_delegated=is_inside or found["name"].startswith("Delegate/"),
            )


def _cause(text: str) -> str:
    """The program's own complaint, as one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    complaint = errors[0] if errors else lines[-1] if lines else "it said nothing"
    return plain(complaint).rstrip(".")
