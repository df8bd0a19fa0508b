"""One model on every target: what runs here is timed in turns, the rest compiled or predicted."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from litesmith.errors import LitesmithError
from litesmith.ir.types import Array, Model
from litesmith.measure.latency import Bench, Rule, Tell, contenders, measured, silent
from litesmith.measure.stats import FASTER, SLOWER, Ratio
from litesmith.run.delegates import DELEGATES, Delegate
from litesmith.run.inputs import fill_inputs
from litesmith.run.placement import MEASURED, Placement
from litesmith.run.probe import probe
from litesmith.run.session import Session
from litesmith.tflite.file import load

# Of a family, the one whose compiler is asked; the others are told by rules.
_COMPILED = ("ethos-u55-128", "hexagon", "openvino")

_HERE = "cpu:1"


@dataclass(frozen=True)
class Reached:
    """What one target makes of a model.

    placement    which ops it takes; None where it takes all there are
    how          measured, estimated, predicted, or refused with `why`
    latency_us   of a run, where it is known
    ratio        of that to the CPU's, where both were timed in turns
    difference   of its outputs from the CPU's, relative to the largest
    """

    target: str
    how: str
    why: str = ""
    placement: Placement | None = None
    latency_us: float | None = None
    ratio: Ratio | None = None
    difference: float | None = None

    @property
    def verdict(self) -> str:
        """Whether the model should go there."""
        if self.why:
            return self.why
        if self.ratio is not None:
            words = {FASTER: "worth it: faster than the CPU", SLOWER: "not worth it: slower"}
            return words.get(self.ratio.verdict, "not worth it: no faster than the CPU")
        if self.placement is None:
            return "what the others are held against" if self.target == _HERE else ""
        return _of_placement(self.placement)


def _of_placement(found: Placement) -> str:
    if "way_out" in found.facts:
        return f"not as it is: {found.refused or found.main_reason}"
    if found.refused:
        return f"not worth it: {found.refused}"
    if found.is_whole:
        return "takes it whole"
    if not found.taken:
        return f"not worth it: {found.main_reason}"
    parts = "one part" if found.partitions == 1 else f"{found.partitions} parts"
    return f"takes {found.taken} of {len(found.homes)} ops in {parts}: {found.main_reason}"


def everywhere(
    path: str, rule: Rule | None = None, tell: Tell = silent
) -> tuple[tuple[Reached, ...], Bench]:
    """Every target's answer, and the run of those that could be timed."""
    model = load(path)
    usable: list[str] = [_HERE]
    refused: dict[str, str] = {}
    for delegate in DELEGATES:
        if delegate.runs and delegate.name not in ("cpu", "numpy"):
            name = _named(delegate)
            why = _why_not(delegate, path, name)
            if why:
                refused[delegate.name] = why
            else:
                usable.append(name)
    done = measured(contenders(path, usable), rule or Rule(), tell, memory=False)
    wanted = _answers(path, _HERE)
    rows: list[Reached] = []
    for delegate in DELEGATES:
        if delegate.name == "numpy":  # exact and slow: a judge, not a target
            continue
        placement = _placement(delegate, model)
        row = _timed(delegate, placement, path, done, wanted)
        rows.append(row or _untimed(delegate.name, placement, refused.get(delegate.name, "")))
    return tuple(rows), done


def _untimed(name: str, placement: Placement | None, why: str) -> Reached:
    """A target that cannot run here, or refuses to."""
    if why or placement is None:
        return Reached(name, "refused", why or "nothing is known of it", placement)
    is_estimated = placement.latency_us is not None
    how = placement.latency_how if is_estimated else placement.how
    return Reached(name, how, "", placement, placement.latency_us)


def _named(delegate: Delegate) -> str:
    return "openvino:1" if delegate.name == "openvino" else delegate.name


def _why_not(delegate: Delegate, path: str, target: str) -> str:
    """Why a model cannot be timed there; tried in a child process, which may crash."""
    found = delegate.probe()
    if not found.usable:
        return f"{found.why}; {found.how}"
    try:
        probe(path, target)
    except LitesmithError as error:
        return str(error)
    return ""


def _timed(
    delegate: Delegate, placement: Placement | None, path: str, done: Bench, wanted: Sequence[Array]
) -> Reached | None:
    """A target that took part in the run; None for one that did not."""
    target = _HERE if delegate.name == "cpu" else _named(delegate)
    result = next((r for r in done.results if r.target == target), None)
    if result is None:
        return None
    compared = next((c.ratio for c in done.comparisons if c.b is result.contender), None)
    difference = None if target == _HERE else _difference(_answers(path, target), wanted)
    us = result.percentile_us(50)
    return Reached(target, MEASURED, "", placement, us, compared, difference)


def _placement(delegate: Delegate, model: Model) -> Placement | None:
    """By its compiler where one is asked; its rules come first, for what would crash it."""
    predicted = None if delegate.predict is None else delegate.predict(model)
    if delegate.place is None or delegate.name not in _COMPILED:
        return predicted
    if delegate.name == "openvino" and predicted is not None and predicted.refused:
        return predicted
    return delegate.place(model)


def _answers(path: str, target: str) -> list[Array]:
    """The outputs for the inputs that benches use."""
    with Session(path, target) as session:
        fill_inputs(session)
        session.run()
        return [np.array(array, np.float64) for array in session.outputs.values()]


def _difference(ours: Sequence[Array], wanted: Sequence[Array]) -> float | None:
    """The largest, as a part of the largest value; None where they cannot be compared."""
    if [a.shape for a in ours] != [b.shape for b in wanted]:
        return None
    parts = [
        float(np.abs(a - b).max(initial=0)) / max(float(np.abs(b).max(initial=0)), 1e-12)
        for a, b in zip(ours, wanted, strict=True)
    ]
    return max(parts, default=0.0)
