"""Is a model worse than its baseline allows? One check per quantity, each with its evidence."""

from dataclasses import dataclass
from pathlib import Path

from litesmith.accuracy.metrics import metric_named
from litesmith.arguments import argument
from litesmith.data.samples import Data
from litesmith.display import show_html, show_line
from litesmith.errors import BadInput, CannotRun
from litesmith.evidence.records import Environment
from litesmith.ir.types import Model
from litesmith.phrases import join, phrase
from litesmith.regression.baseline import (
    Baseline,
    Delegation,
    Scores,
    Timing,
    baseline_to_update,
    read_baseline,
    write_baseline,
)
from litesmith.regression.comparison import NO_DATA, measure_size
from litesmith.regression.gate_checks import NOT_ASKED, Check, GateCase, check_all
from litesmith.regression.gate_measures import (
    GateSettings,
    baseline_timing,
    least_peak_bytes,
    list_delegations,
    pack_workload,
    score_model,
    unpack_workload,
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
from litesmith.run.core.target import Target
from litesmith.run.trial_run import probe
from litesmith.temporary import temporary_file
from litesmith.tflite.file import digest, load, refuse_unwritable
from litesmith.timing.host import host
from litesmith.units import (
    bytes_text,
    percent_text,
    plain,
    ratio_text,
    score_text,
    time_text,
    total_text,
)


@dataclass(frozen=True, repr=False)
class Gated:
    """All checks of a model.

    host    the present machine
    notes   remarks on the comparison
    report  the page, if one was written
    """

    baseline: str
    model: str
    digest: str
    target: str
    checks: tuple[Check, ...]
    host: Environment
    notes: tuple[str, ...] = ()
    strict: bool = False
    report: Path | None = None

    __repr__ = show_line
    _repr_html_ = show_html

    @property
    def verdict(self) -> str:
        """The verdict: ok, worse or unclear."""
        return overall((check.verdict for check in self.checks), strict=self.strict)

    @property
    def passes(self) -> bool:
        """False where the model is worse than the baseline allows."""
        return self.verdict != WORSE

    is_as_asked = passes

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
                "{name} is worse than {file} allows: {worse}", name, file, join(worse, ", ")
            )
        if self.verdict == WORSE:
            return phrase(
                "{name} is not shown to be within what {file} allows: {open_ones}",
                name,
                file,
                join(open_ones, ", "),
            )
        doubt = phrase("; not certain: {open_ones}", join(open_ones, ", ")) if open_ones else ""
        return phrase("{name} is within what {file} allows{doubt}", name, file, doubt)

    def to_rows(self) -> list[dict[str, object]]:
        """One row per check, for a data frame."""
        return [check.row() for check in self.checks]

    def to_json(self) -> dict[str, object]:
        """The checks as `--json` prints them."""
        return {
            "schema": 1,
            "verdict": self.verdict,
            "baseline": self.baseline,
            "model": self.model,
            "digest": self.digest,
            "target": self.target,
            "strict": self.strict,
            "checks": self.to_rows(),
            "notes": list(self.notes),
            "host": dict(self.host),
        }


@dataclass(frozen=True, repr=False, eq=False)
class Renewed:
    """A newly written baseline.

    command  the command that compares the next model with it
    """

    path: Path
    baseline: Baseline
    command: str = ""

    __repr__ = show_line
    _repr_html_ = show_html

    @property
    def sentence(self) -> str:
        name = plain(Path(self.baseline.model).name)
        return phrase("{path}: the baseline is {name}", self.path, name)

    def to_rows(self) -> list[dict[str, str]]:
        """One row per quantity: the baseline's value, and how much worse it may get."""
        return [
            {"quantity": quantity, "title": title, "baseline": words, "allowed": allowed.text}
            for quantity, title, words in known_quantities(self.baseline)
            for allowed in (self.baseline.allowed[quantity],)
        ]

    def to_json(self) -> dict[str, object]:
        """The baseline as `--json` prints it."""
        made = self.baseline
        return {
            "schema": 1,
            "out": str(self.path),
            "model": made.model,
            "digest": made.digest,
            "target": str(made.target),
            "allow": {name: allowed.typed for name, allowed in made.allowed.items()},
            "bytes": made.size.bytes,
        }


def renew_baseline(
    path: Path, model: Path, data: Data | None, manner: GateSettings, *, called: str = ""
) -> Baseline:
    """Measures a model and writes the baseline for later ones. Earlier allowances and the earlier
    target stay; a new baseline has the target cpu:1. The record names the model's file, or
    `called`."""
    refuse_unwritable(path)
    kept = baseline_to_update(path)
    content, target = load(model), manner.on or (kept.target if kept else Target())
    own_scores = None if data is None else score_model(model, data, target, manner)
    allowed = _allowances(kept, own_scores, manner)
    if own_scores is not None:  # refuses points for a metric without points, before the long work
        accuracy_bound(allowed["accuracy"], own_scores.value, own_scores.unit)
    known = () if kept is None else tuple(found.target for found in kept.delegations[1:])
    workload, timing, why = "", None, NOT_ASKED
    if allowed["latency"].unit != OFF:
        workload, timing, why = _time_baseline(model, content, target, manner)
    made = Baseline(
        model=called or str(model),
        digest=digest(model),
        target=target,
        size=measure_size(model),
        peak_bytes=None
        if allowed["memory"].unit == OFF
        else least_peak_bytes(model, target, enough=0),  # the least of all tries
        delegations=list_delegations(model, content, target, manner.places or known),
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


def _allowances(
    kept: Baseline | None, own_scores: Scores | None, manner: GateSettings
) -> dict[str, Allowed]:
    """The requested allowances, else the earlier ones, else the defaults."""
    usual = {name: Allowed.parse(name, row.usual) for name, row in QUANTITIES.items()}
    allowed = {**usual, **(kept.allowed if kept is not None else {})}
    has_points = own_scores is None or own_scores.unit == "share"
    if not has_points and allowed["accuracy"].unit == "pt":
        allowed["accuracy"] = Allowed.parse("accuracy", USUAL_WITHOUT_POINTS)
    return {**allowed, **manner.allow}


def _time_baseline(
    model: Path, content: Model, target: Target, manner: GateSettings
) -> tuple[str, Timing | None, str]:
    """The workload, the model's ratio to it, and the reason where there is none."""
    workload = pack_workload(content)
    with temporary_file(unpack_workload(workload), "workload.tflite") as reference:
        try:
            probe(reference, target)
        except CannotRun as error:
            reason = str(error).replace(str(reference), "its graph with made-up weights")
            return "", None, phrase("there is no reference workload: {told}", reason)
        timing = baseline_timing(reference, model, target, manner.seconds, manner.progress)
        return workload, timing, ""


def run_gate(path: Path, model: Path, data: Data | None, manner: GateSettings) -> Gated:
    """Checks every quantity of a model against the baseline in a file."""
    baseline = read_baseline(path)
    if manner.on is not None and manner.on != baseline.target:
        raise BadInput(
            "{path}: is of {target}, not of {place}; leave out {on}, or write a baseline of "
            "its own for each target",
            path,
            baseline.target,
            manner.on,
            argument("on"),
        )
    case = GateCase(baseline, path, model, load(model), data, manner, host().facts())
    return Gated(
        str(path),
        str(model),
        digest(model),
        str(baseline.target),
        check_all(case),
        case.host,
        _notes(case),
    )


def _notes(case: GateCase) -> tuple[str, ...]:
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
                "the runtime is {runtime}, the baseline's was {runtime2}: a change in speed of "
                "the runtime itself does not show, because both models run on it",
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


def known_quantities(made: Baseline) -> list[tuple[str, str, str]]:
    """The name, title and value in words of every quantity in a baseline."""
    scores, timing = made.scores, made.timing
    accuracy = phrase("none: {unscored}", made.unscored)
    if scores is not None:
        value = score_text(scores.value, scores.unit, scores.low, scores.high)
        accuracy = phrase(
            "{title} {value}, {count} samples",
            metric_named(scores.metric).title,
            value,
            total_text(scores.count),
        )
    time = phrase("none: {untimed}", made.untimed)
    if timing is not None:
        ratio = ratio_text(timing.ratio.value, *timing.ratio.interval)
        time = phrase(
            "{time} on {target}; {ratio} of its own graph", time_text(timing.us), made.target, ratio
        )
    peak = "none" if made.peak_bytes is None else bytes_text(made.peak_bytes)
    words = {
        "accuracy": accuracy,
        "latency": time,
        "size": bytes_text(made.size.bytes),
        "gzip": bytes_text(made.size.gzip_bytes),
        "memory": peak,
    }
    known = [(name, QUANTITIES[name].title, text) for name, text in words.items()]
    places = [
        ("delegation", phrase("ops on {target}", one.target), _taken(one))
        for one in made.delegations
    ]
    return known + places


def _taken(one: Delegation) -> str:
    ops = phrase("{ops} of {ops2} ops delegated", one.ops - one.left, one.ops)
    return one.why or phrase(
        "{ops}, {share} of the MACs ({how})", ops, percent_text(one.macs), one.how
    )
