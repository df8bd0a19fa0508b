"""What was measured, kept with its samples: Measurement, Trial, and the append-only log."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import cast

from litesmith.errors import BadInput, os_reason
from litesmith.phrases import phrase

Interval = tuple[float, float]
_Json = dict[str, object]

# Below six samples no order statistics enclose the median with 95 % confidence (2 / 2**5 > 5 %).
LEAST_SAMPLES = 6

_APPENDING = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)  # Windows has it


def median_interval(samples: Sequence[float]) -> Interval:
    """The 95 % interval of the median, from the order of the samples (the sign test turned round).

    It assumes nothing about their distribution, but that they are independent. Too few samples
    bound nothing, and the interval is infinite.
    """
    if len(samples) < LEAST_SAMPLES:
        return -math.inf, math.inf
    ordered = sorted(samples)
    place = _outside(len(ordered))
    return ordered[place], ordered[-1 - place]


def _outside(count: int) -> int:
    """How many samples at each end lie outside the 95 % interval of a median."""
    if count > 1000:  # the binomial is normal by then, and its terms are too small for a float
        return int(count / 2 - 0.98 * math.sqrt(count)) - 1
    term, tail, place = 0.5**count, 0.0, 0
    while tail + term <= 0.025:
        tail += term
        term *= (count - place) / (place + 1)
        place += 1
    return place - 1


@dataclass(frozen=True)
class Measurement:
    """One metric of one model on one target, as it was sampled; the rest is computed from that."""

    metric: str
    unit: str
    samples: tuple[float, ...]
    target: str
    model_digest: str
    host: str

    def __post_init__(self) -> None:
        if not self.samples:
            raise ValueError(
                phrase("a measurement of {metric!r} needs at least one sample", self.metric)
            )

    @property
    def value(self) -> float:
        """The median of the samples."""
        return median(self.samples)

    @property
    def interval(self) -> Interval:
        """The 95 % interval of the median, if the samples are independent."""
        return median_interval(self.samples)


@dataclass(frozen=True)
class Trial:
    """A model, how it was made, and what was measured of it."""

    recipe: str
    parent_digest: str
    model_digest: str
    measurements: tuple[Measurement, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()  # where, why
    reason: str = ""
    details: Mapping[str, object] = field(default_factory=dict[str, object])

    def to_line(self) -> str:
        """The trial as one line of JSON."""
        shown: _Json = {
            "recipe": self.recipe,
            "parent_digest": self.parent_digest,
            "model_digest": self.model_digest,
            "measurements": [vars(m) for m in self.measurements],
            "skipped": [{"where": where, "why": why} for where, why in self.skipped],
            "reason": self.reason,
            "details": dict(self.details),
        }
        return json.dumps(shown, allow_nan=False)


@dataclass(frozen=True)
class Log:
    """Trials in a file, one JSON line each; lines are only ever added.

    A line that a crash cut short is skipped when the file is read, and the next one starts afresh.
    Keys that this version does not know are ignored: they stay in the file, which is not rewritten.
    """

    path: Path

    def append(self, trial: Trial) -> None:
        """Adds one line in one write, and waits until it is on the disk."""
        line = f"{trial.to_line()}\n".encode()
        try:
            handle = os.open(self.path, _APPENDING, 0o666)
            try:
                torn = _is_torn(handle)
                written = os.write(handle, b"\n" + line if torn else line)
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            raise BadInput(
                "{path}: cannot be written ({why})", self.path, os_reason(error)
            ) from None
        if written != len(line) + torn:
            raise BadInput("{path}: a line was cut short; is the disk full?", self.path)

    def read(self) -> tuple[Trial, ...]:
        """Every whole trial, oldest first."""
        try:
            lines = self.path.read_bytes().splitlines()
        except OSError as error:
            raise BadInput("{path}: cannot be read ({why})", self.path, os_reason(error)) from None
        found = [_parsed(self.path, number, line) for number, line in enumerate(lines, 1)]
        return tuple(trial for trial in found if trial is not None)


def _is_torn(handle: int) -> bool:
    """True where the last line has no end."""
    size = os.fstat(handle).st_size
    if not size:
        return False
    os.lseek(handle, size - 1, os.SEEK_SET)
    return os.read(handle, 1) != b"\n"


def _parsed(path: Path, number: int, line: bytes) -> Trial | None:
    """The trial of a line; None where the line was cut short."""
    try:
        shown = json.loads(line)
    except ValueError:
        return None
    try:
        return _trial(shown)
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(
            "{path}, line {number}: is not a trial ({error})", path, number, error
        ) from None


def _trial(shown: _Json) -> Trial:
    measurements = cast(list[_Json], shown["measurements"])
    skipped = cast(list[dict[str, str]], shown["skipped"])
    return Trial(
        recipe=str(shown["recipe"]),
        parent_digest=str(shown["parent_digest"]),
        model_digest=str(shown["model_digest"]),
        measurements=tuple(_measurement(m) for m in measurements),
        skipped=tuple((skip["where"], skip["why"]) for skip in skipped),
        reason=str(shown["reason"]),
        details=cast(_Json, shown["details"]),
    )


def _measurement(shown: _Json) -> Measurement:
    return Measurement(
        metric=str(shown["metric"]),
        unit=str(shown["unit"]),
        samples=tuple(float(s) for s in cast(list[float], shown["samples"])),
        target=str(shown["target"]),
        model_digest=str(shown["model_digest"]),
        host=str(shown["host"]),
    )
