"""Is a model worse than its baseline allows? One check a quantity, each with its evidence."""

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from litesmith.data.samples import Data
from litesmith.data.sources import Given, open_data
from litesmith.errors import BadInput, CannotRun
from litesmith.ir.types import Model
from litesmith.phrases import phrase
from litesmith.regression.baseline import (
    Baseline,
    Facts,
    kept_baseline,
    read_baseline,
    write_baseline,
)
from litesmith.regression.comparison import NO_DATA, size
from litesmith.regression.gate_case import Case, Check
from litesmith.regression.gate_checks import NOT_ASKED, checked
from litesmith.regression.gate_measures import (
    MOST_SECONDS,
    Manner,
    Scores,
    Timing,
    baseline_timing,
    delegations,
    least_peak_bytes,
    scored,
)
from litesmith.regression.gate_rules import (
    OFF,
    QUANTITIES,
    UNCLEAR,
    UNKNOWN,
    USUAL_WITHOUT_POINTS,
    WORSE,
    Allowed,
    accuracy_bound,
    overall,
)
from litesmith.regression.workload import packed_workload, unpacked_workload
from litesmith.run.core.target import Target
from litesmith.run.trial_run import probe
from litesmith.tflite.file import digest, load, refuse_unwritable
from litesmith.timing.host import host
from litesmith.units import plain


@dataclass(frozen=True)
class Gated:
    """All checks of a model.

    host   the machine of now
    notes  what is to be known about the comparison
    """

    baseline: str
    model: str
    digest: str
    target: str
    checks: tuple[Check, ...]
    host: Facts
    notes: tuple[str, ...] = ()
    strict: bool = False

    @property
    def verdict(self) -> str:
        """ok, worse or unclear."""
        return overall((check.verdict for check in self.checks), strict=self.strict)

    @property
    def failures(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.verdict == WORSE)

    @property
    def sentence(self) -> str:
        """One line for people."""
        name, file = plain(Path(self.model).name), plain(Path(self.baseline).name)
        worse = [check.title for check in self.failures]
        open_ones = [c.title for c in self.checks if c.verdict in (UNCLEAR, UNKNOWN)]
        if worse:
            return phrase(
                "{name} is worse than {file} allows: {worse}", name, file, ", ".join(worse)
            )
        if self.verdict == WORSE:
            return phrase(
                "{name} is not shown to be within what {file} allows: {open_ones}",
                name,
                file,
                ", ".join(open_ones),
            )
        doubt = phrase("; not certain: {open_ones}", ", ".join(open_ones)) if open_ones else ""
        return phrase("{name} is within what {file} allows{doubt}", name, file, doubt)


def gate(
    baseline: str | os.PathLike[str],
    model: str | os.PathLike[str],
    data: Given | None = None,
    *,
    against: str | os.PathLike[str] | None = None,
    allow: Mapping[str, str] | None = None,
    strict: bool = False,
    seconds: float = MOST_SECONDS,
) -> Gated:
    """Holds a model against a baseline that `update_baseline` wrote, on the baseline's target.

    >>> import litesmith, numpy as np, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> baseline, model = folder / "baseline.json", folder / "model.tflite"
    >>> b = litesmith.Builder()
    >>> weight = np.eye(64, dtype=np.float32)
    >>> made = b.model(b.op("FULLY_CONNECTED", b.input("x", (1, 64)), weight, None))
    >>> litesmith.save(made, model)
    >>> data = {"x": np.eye(64, dtype=np.float32), "y": np.arange(64)}
    >>> _ = litesmith.update_baseline(baseline, model, data, seconds=1)
    >>> found = litesmith.gate(baseline, model, data, seconds=1)
    >>> [check.verdict for check in found.checks if check.quantity in ("accuracy", "size")]
    ['ok', 'ok']

    `against` is a model that stands in for labels. `allow` replaces what the baseline allows, as in
    {"latency": "10%"}. `strict` makes what could not be told, or not for certain, worse too.
    `seconds` is how long it is timed at the most.
    """
    path = Path(model)
    opened = None if data is None else open_data(data, load(path))
    manner = Manner(against=_path(against), allow=_parsed(allow), seconds=seconds)
    return replace(gated(Path(baseline), path, opened, manner), strict=strict)


def update_baseline(
    baseline: str | os.PathLike[str],
    model: str | os.PathLike[str],
    data: Given | None = None,
    *,
    on: str | Target | None = None,
    against: str | os.PathLike[str] | None = None,
    allow: Mapping[str, str] | None = None,
    seconds: float = MOST_SECONDS,
) -> Baseline:
    """Measures a model and writes what later ones are held against; what was allowed stays, and
    so does the target, which is cpu:1 at first."""
    path = Path(model)
    opened = None if data is None else open_data(data, load(path))
    target = None if on is None else Target.parse(on)
    manner = Manner(target, against=_path(against), allow=_parsed(allow), seconds=seconds)
    return updated(Path(baseline), path, opened, manner)


def _path(given: str | os.PathLike[str] | None) -> Path | None:
    return None if given is None else Path(given)


def _parsed(allow: Mapping[str, str] | None) -> dict[str, Allowed]:
    return {name: Allowed.parse(name, text) for name, text in (allow or {}).items()}


def updated(path: Path, model: Path, data: Data | None, manner: Manner) -> Baseline:
    """The same for data that has been opened."""
    refuse_unwritable(path)
    kept = kept_baseline(path)
    content, target = load(model), manner.on or (kept.target if kept else Target())
    own_scores = None if data is None else scored(model, data, target, manner)
    allowed = _allowances(kept, own_scores, manner)
    if own_scores is not None:  # refuses points of what has none, before the long work
        accuracy_bound(allowed["accuracy"], own_scores.value, own_scores.unit)
    known = () if kept is None else tuple(found.target for found in kept.delegations[1:])
    workload, timing, why = "", None, NOT_ASKED
    if allowed["latency"].unit != OFF:
        workload, timing, why = _timed_baseline(model, content, target, manner)
    made = Baseline(
        model=str(model),
        digest=digest(model),
        target=target,
        size=size(model),
        peak_bytes=_least_peak(model, target, allowed["memory"]),
        delegations=delegations(model, content, target, manner.places or known),
        workload=workload,
        timing=timing,
        scores=own_scores,
        allowed=allowed,
        host=host().facts(),
        untimed=why,
        unscored="" if own_scores is not None else NO_DATA,
    )
    write_baseline(path, made)
    return made


def _least_peak(model: Path, target: Target, allowed: Allowed) -> int | None:
    """Of as many tries as there may be; none where nobody asks."""
    return None if allowed.unit == OFF else least_peak_bytes(model, target, enough=0)


def _allowances(
    kept: Baseline | None, own_scores: Scores | None, manner: Manner
) -> dict[str, Allowed]:
    """What is asked for now, else what was allowed before, else the usual."""
    usual = {name: Allowed.parse(name, row.usual) for name, row in QUANTITIES.items()}
    allowed = {**usual, **(kept.allowed if kept is not None else {})}
    has_points = own_scores is None or own_scores.unit == "share"
    if not has_points and allowed["accuracy"].unit == "pt":
        allowed["accuracy"] = Allowed.parse("accuracy", USUAL_WITHOUT_POINTS)
    return {**allowed, **manner.allow}


def _timed_baseline(
    model: Path, content: Model, target: Target, manner: Manner
) -> tuple[str, Timing | None, str]:
    """The workload, the model's ratio to it, and why there is none where there is none."""
    with tempfile.TemporaryDirectory() as folder:
        reference = Path(folder) / "workload.tflite"
        workload = packed_workload(content)
        reference.write_bytes(unpacked_workload(workload))
        try:
            probe(reference, target)
        except CannotRun as error:
            told = str(error).replace(str(reference), "its graph with made-up weights")
            return "", None, phrase("there is no reference workload: {told}", told)
        timing = baseline_timing(reference, model, target, manner.seconds, manner.progress)
        return workload, timing, ""


def gated(path: Path, model: Path, data: Data | None, manner: Manner) -> Gated:
    """Every quantity of a model against the baseline in a file."""
    baseline = read_baseline(path)
    if manner.on is not None and manner.on != baseline.target:
        raise BadInput(
            "{path}: is of {target}, not of {on}; leave out --on, or write a baseline of "
            "its own for each target",
            path,
            baseline.target,
            manner.on,
        )
    case = Case(baseline, path, model, load(model), data, manner, host().facts())
    return Gated(
        str(path),
        str(model),
        digest(model),
        str(baseline.target),
        checked(case),
        case.host,
        _notes(case),
    )


def _notes(case: Case) -> tuple[str, ...]:
    then, notes = case.baseline.host, list[str]()
    if not case.same_machine:
        notes.append(
            phrase(
                "the baseline is from another machine ({cpu}): times are held against its "
                "graph, which was timed here",
                then.get("cpu"),
            )
        )
    if then.get("runtime") != case.host.get("runtime"):
        notes.append(
            phrase(
                "the runtime is {runtime}, the baseline's was {runtime2}: what the runtime "
                "itself gained or lost is not seen, because both run on it",
                case.host.get("runtime"),
                then.get("runtime"),
            )
        )
    scored = case.baseline.scores
    preparation = None if case.data is None else case.data.items.preparation
    prepared = None if preparation is None else preparation.text
    if scored is not None and prepared is not None and prepared != scored.preparation:
        notes.append(
            phrase(
                "the data is prepared with {prepared}; it was with {preparation}",
                prepared,
                scored.preparation,
            )
        )
    return tuple(notes)
