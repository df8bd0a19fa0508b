"""What TensorFlow Lite's `benchmark_model` prints, as values."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from litesmith.errors import CannotRun
from litesmith.phrases import phrase
from litesmith.units import plain

# What loggers put in front of a line: `INFO: `, `I0000 00:00:17 4 file.cc:9] `, `[file.cc:9] `.
_LOGGER = r"(?:(?:INFO|WARNING|ERROR): |[IWEF]\d{4} [^\]]*\] |\[[^\]]*\] )*"
_NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
_LONGEST = 2_000  # characters of a line that is looked at

_TIMINGS = re.compile(
    rf"Inference timings in us: Init: ({_NUMBER}), First inference: ({_NUMBER}), "
    r".*Inference \(avg\): \d"
)
_SPREAD = re.compile(rf"{_LOGGER}(count=\d+ .*)")
_MEMORY = re.compile(
    rf"(?:footprint delta .*|Peak memory footprint) \(MB\): init=\S+ overall=({_NUMBER})"
)
_DELEGATE = re.compile(rf"{_LOGGER}((?:Explicitly applied|Though) .* delegate.*)")
_ERROR = re.compile(r"(?:\[[^\]]*\] )?(?:ERROR: |[EF]\d{4} [^\]]*\] )(?:\[[^\]]*\] )?(.*)")
_OP = re.compile(
    rf"\s*(?P<kind>\S.*?)\s+(?:{_NUMBER}\s+)?(?P<first>{_NUMBER})\s+(?P<average>{_NUMBER})"
    rf"\s+\S+%\s+\S+%\s+(?P<memory>{_NUMBER})\s+(?P<calls>\d+)\s+(?P<name>.*)"
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
    text = "\n".join(line[:_LONGEST] for line in text.splitlines())
    timings = _TIMINGS.search(text)
    told = [_spread(found[1]) for found in map(_SPREAD.match, text.splitlines()) if found]
    spreads = [spread for spread in told if spread is not None]
    if timings is None or not spreads:
        raise CannotRun("benchmark_model measured nothing: {cause}", _cause(text))
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


def _spread(text: str) -> Spread | None:
    """`count=50 first=9 … avg=9.4 std=1`; equal times are told as `count=2 curr=9(all same)`."""
    values = {key: float(value) for key, value in re.findall(rf"(\w+)=({_NUMBER})", text)}
    if not values["count"] or not values.keys() & {"avg", "curr"}:
        return None
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
    errors = [found[1] for found in map(_ERROR.match, lines) if found]
    complaint = errors[0] if errors else lines[-1] if lines else phrase("it said nothing")
    return plain(complaint).rstrip(".")
