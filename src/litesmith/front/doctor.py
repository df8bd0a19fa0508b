"""`doctor`: why a model is slow or inaccurate, and the command that acts on it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, Unpack

from litesmith.anatomy.source_file import Source, SourceFile, open_source
from litesmith.arguments import argument, check_types, refuse_below
from litesmith.data.preparation import Preparing, read_preparation
from litesmith.data.samples import Data, watch_data
from litesmith.data.sources import Given, open_data
from litesmith.diagnosis.accelerator_fit import Fit, obstacles, recipe_for
from litesmith.diagnosis.accuracy_verdict import (
    MOST_SAMPLES,
    RACE_SECONDS,
    AccuracyVerdict,
    examine,
    spread,
)
from litesmith.diagnosis.bundle import bundle_files, write_bundle
from litesmith.diagnosis.float_pairs import inseparable
from litesmith.diagnosis.op_losses import op_errors, shown_model
from litesmith.diagnosis.slowness import Diagnosis, ModelToDiagnose, diagnoses
from litesmith.display import show_html, show_line
from litesmith.errors import BadInput, CannotRun
from litesmith.front.given_data import source_text, tell_notes, type_options
from litesmith.front.made_model import Json, Place, read_place
from litesmith.graph_view.gather_view import ViewRequest, gather_view
from litesmith.ir.types import Model
from litesmith.operating_system import quote
from litesmith.pages.graph.findings_page import findings_text
from litesmith.pages.overlay import (
    Overlay,
    errors_overlay,
    refuse_name,
    times_overlay,
    write_overlay,
)
from litesmith.passes.core.recipe import is_float
from litesmith.phrases import join, phrase
from litesmith.profiling.op_times import USUAL_SECONDS, profile_ops
from litesmith.progress import Note, Progress, silent
from litesmith.run.core.target import Target
from litesmith.run.trial_run import probe
from litesmith.temporary import temporary_file
from litesmith.tflite.file import write_whole
from litesmith.timing.host import host, noise
from litesmith.timing.latency import Rule
from litesmith.units import bytes_text, time_text, total_text

# Samples that accuracy is told of where nobody asks for a number.
_USUAL_SAMPLES = 500


@dataclass(frozen=True, repr=False)
class Slowness:
    """What costs a model time on a target, ranked.

    run_us    the time of a run; None where the model has no profile
    bundle    the file that shows another person the same, and the bytes of what it holds
    overlay   the file for Model Explorer, where one was written
    warnings  what makes times on this machine unsteady
    """

    model: Path | None
    target: str
    run_us: float | None
    findings: tuple[Diagnosis, ...]
    bundle: tuple[Path, dict[str, int]] | None = None
    overlay: Path | None = None
    warnings: tuple[str, ...] = ()

    __repr__ = show_line

    def _repr_html_(self) -> str:
        return show_html(self, self.warnings)

    @property
    def sentence(self) -> str:
        name = phrase("the given model") if self.model is None else self.model.name
        if self.run_us is None:
            return phrase("{name} on {target}", name, self.target)
        return phrase("{name} on {target}: {time} a run", name, self.target, time_text(self.run_us))

    def to_rows(self) -> list[Json]:
        return [{**one.row()} for one in self.findings]

    def to_json(self) -> Json:
        told: Json = {
            "schema": 1,
            "model": None if self.model is None else str(self.model),
            "target": self.target,
            "run_us": self.run_us,
            "findings": self.to_rows(),
            "warnings": list(self.warnings),
        }
        if self.bundle is not None:
            told["bundle"] = {"out": str(self.bundle[0]), "files": self.bundle[1]}
        return told


@dataclass(frozen=True, repr=False)
class Inaccuracy:
    """Where a quantized model loses accuracy; commands name the user's own files."""

    model: Path | None
    verdict: AccuracyVerdict
    findings: tuple[Diagnosis, ...]
    overlay: Path | None = None

    __repr__ = show_line

    @property
    def sentence(self) -> str:
        return self.verdict.sentence

    def to_rows(self) -> list[Json]:
        return [{**one.row()} for one in self.findings]

    def to_json(self) -> Json:
        drift = self.verdict.drift
        return {
            "schema": 1,
            "model": None if self.model is None else str(self.model),
            "verdict": self.sentence,
            "snr_db": None if drift is None else drift.decibels,
            "findings": self.to_rows(),
        }

    def _repr_html_(self) -> str:
        return show_html(self, self.verdict.notes)


@dataclass(frozen=True, repr=False)
class Fitting:
    """What an accelerator does not take of a model, and the recipe that changes that."""

    model: Path | None
    fit: Fit
    findings: tuple[Diagnosis, ...]

    __repr__ = show_line

    @property
    def command(self) -> str:
        """The command that carries the recipe out; "" for no recipe."""
        return self._typed(self.fit.recipe)

    @property
    def hint(self) -> str:
        """The command of a recipe that is no remedy, and still of use there; "" for none."""
        return self._typed(self.fit.hint)

    def _typed(self, recipe: str) -> str:
        if not recipe:
            return ""
        path = self.model or Path("MODEL")
        out = quote(f"{path.stem}_{self.fit.before.target}.tflite")
        data = " --data DATA" if self.fit.needs_data else ""
        return f"litesmith apply {quote(str(path))} {quote(recipe)}{data} -o {out}"

    @property
    def sentence(self) -> str:
        before = self.fit.before
        return phrase(
            "{name} on {target}: {taken} of {ops} ops, {how}",
            phrase("the given model") if self.model is None else self.model.name,
            before.target,
            before.taken,
            len(before.homes),
            before.how,
        )

    def to_rows(self) -> list[Json]:
        return [{**one.row()} for one in self.findings]

    def to_json(self) -> Json:
        before, after, command = self.fit.before, self.fit.after, self.command
        rows = [{**replace(one, command=command or one.command).row()} for one in self.findings]
        return {
            "schema": 1,
            "model": None if self.model is None else str(self.model),
            "for": before.target,
            "how": before.how,
            "is_whole": before.is_whole,
            "findings": rows,
            "fit": {
                "recipe": self.fit.recipe,
                "command": command,
                "taken": after.taken,
                "ops": len(after.homes),
                "how": after.how,
                "left": [{"what": one.what, "why": one.why} for one in obstacles(after)],
                "notes": list(self.fit.notes),
                "hint": self.hint,
            },
        }

    def _repr_html_(self) -> str:
        return show_html(self, self.fit.notes)


class Asked(NamedTuple):
    """What doctor was asked beside the model."""

    against: SourceFile | None
    samples: int | None
    seconds: float
    bundle: Path | None
    keep_custom_options: bool
    overlay: Path | None
    page: Path | None
    preparing: Preparing
    progress: Progress


@check_types
def doctor(
    model: Source,
    data: Given | None = None,
    *,
    against: Source | None = None,
    on: str | Target = "cpu:1",
    accelerator: str | None = None,
    samples: int | None = None,
    seconds: float = ModelToDiagnose.seconds,
    bundle: Place | None = None,
    keep_custom_options: bool = False,
    overlay: Place | None = None,
    page: Place | None = None,
    progress: Progress = silent,
    **options: Unpack[Preparing],
) -> Slowness | Inaccuracy | Fitting:
    """Why a model is slow; with data, where it loses accuracy; and the command that acts on it.

    >>> found = litesmith.doctor("model.tflite", seconds=0.1)
    >>> [(finding.what, finding.command) for finding in found.findings]
    [...]

    A remedy for slowness is timed beside the model for `seconds`, and where these are few, the ops
    are timed in haste as well. `accelerator` asks what keeps the model from running there whole.
    `bundle` is a .zip that shows another person the same without the weights; `overlay` a .json
    file for Model Explorer; `page` the findings and the graph as one .html file.
    """
    refuse_below("samples", samples, 1)
    Rule(seconds=seconds)  # raises where nothing can be timed so
    read_preparation(**options)
    places = read_place(bundle, model), read_place(overlay, model), read_place(page, model)
    if places[1] is not None:
        refuse_name(places[1])
    source = open_source(model)
    reference = None if against is None else open_source(against)
    told = (places[0], keep_custom_options, places[1], places[2])
    asked = Asked(reference, samples, seconds, *told, options, progress)
    if accelerator is not None:
        return _fit(source, accelerator, asked)
    if data is not None:
        return _examine_accuracy(source, data, Target.parse(on), asked)
    if reference is not None:
        _refuse_reference(source.model, reference.model)
    return _examine_time(source, Target.parse(on), asked)


def _refuse_reference(model: Model, reference: Model) -> None:
    """Raises where a float model tells nothing of the times of another."""
    against = argument("against")
    if is_float(model):
        raise BadInput(
            "doctor {against} compares answers, which needs data; give {data}",
            against,
            argument("data"),
        )
    shapes = [
        [t.shape for t in (*one.main.inputs, *one.main.outputs)] for one in (model, reference)
    ]
    if not is_float(reference) or shapes[0] != shapes[1]:
        raise BadInput(
            "doctor {against}: give the float model that the quantized one was made from", against
        )


def _fit(source: SourceFile, accelerator: str, asked: Asked) -> Fitting:
    if asked.overlay is not None:
        raise BadInput(
            "doctor {accelerator} times nothing to lay over the graph; leave out {overlay}",
            argument("accelerator"),
            argument("overlay"),
        )
    fit = recipe_for(source.model, accelerator)
    found = [one if fit.vain is None else replace(one, command="") for one in obstacles(fit.before)]
    result = Fitting(source.path, fit, tuple(_with_model(one, source) for one in found))
    _write_page(result, [source], None, Target(), asked)
    return result


def _with_model(one: Diagnosis, source: SourceFile) -> Diagnosis:
    """The same with a command that can be typed."""
    return replace(one, command=one.command.replace("MODEL", quote(str(source.path or "MODEL"))))


def _examine_time(source: SourceFile, target: Target, asked: Asked) -> Slowness:
    """What costs time; a model that runs but has no profile still gets what the file tells."""
    if source.is_file and source.path is not None:
        probe(source.path, target)
    warnings = noise(host(), [target])
    try:
        seconds = min(USUAL_SECONDS, 2 * asked.seconds)
        profile = profile_ops(source.origin, target, seconds=seconds)
        reference = None if asked.against is None else asked.against.model
        patient = ModelToDiagnose(
            source.model, target, profile, seconds=asked.seconds, reference=reference
        )
    except CannotRun as error:
        patient = ModelToDiagnose(source.model, target, None, str(error), seconds=asked.seconds)
    files = _Files(source, asked, "DATA")
    found = tuple(replace(one, command=files.fill(one.command)) for one in diagnoses(patient))
    bundle = None if asked.bundle is None else (asked.bundle, _write_bundle(patient, asked))
    if asked.overlay is not None:
        if patient.profile is None:
            raise CannotRun("no overlay: {why_not}", patient.no_profile)
        _lay(asked.overlay, source.model, times_overlay(source.model, patient.profile), asked)
    run_us = None if patient.profile is None else patient.profile.run_us
    told = (run_us, found, bundle, asked.overlay, warnings)
    result = Slowness(source.path, str(target), *told)
    against = [] if asked.against is None else [asked.against]
    _write_page(result, [*against, source], None, target, asked)
    return result


def _lay(path: Path, model: Model, overlay: Overlay, asked: Asked) -> None:
    for note in write_overlay(path, model, overlay):
        asked.progress(Note(note))


def _examine_accuracy(source: SourceFile, data: Given, target: Target, asked: Asked) -> Inaccuracy:
    if asked.bundle is not None:
        told = argument("data")
        raise BadInput("doctor {data} is about accuracy; a bundle is made without it", told)
    model, progress = source.model, asked.progress
    reference = None if asked.against is None else asked.against.model
    if asked.overlay is not None:
        _refuse_errors(model, reference)
    opened = _open(data, reference or model, asked)
    watch = partial(watch_data, progress=progress)
    seconds = min(RACE_SECONDS, asked.seconds)
    found = examine(model, opened, against=reference, target=target, seconds=seconds, watch=watch)
    for note in found.notes:
        progress(Note(note))
    if asked.overlay is not None:
        assert found.pair is not None, "models that have none were refused"
        few = watch(spread(opened, MOST_SAMPLES), phrase("looking at every op"))
        overlay = errors_overlay(op_errors(found.pair, few))
        _lay(asked.overlay, shown_model(found.pair), overlay, asked)
    files = _Files(source, asked, f"{quote(source_text(data))}{_typed(asked)}")
    findings = tuple(replace(one, command=files.fill(one.command)) for one in found.findings)
    result = Inaccuracy(source.path, found, findings, asked.overlay)
    first = [] if asked.against is None else [asked.against]
    sources = [*first, source]
    if found.pair is not None and found.pair.is_ours:
        sources = [source, SourceFile(found.pair.model, Path("int8"))]
    seen = opened if len(sources) == 2 else None
    _write_page(result, sources, seen, target, asked, files.data)
    return result


def _write_page(
    result: Slowness | Inaccuracy | Fitting,
    sources: Sequence[SourceFile],
    data: Data | None,
    target: Target,
    asked: Asked,
    typed: str = "DATA",
) -> None:
    """The findings and the graph of what was looked at, where a page was asked for."""
    if asked.page is None:
        return
    name = quote(str(sources[0].path or "FLOAT.tflite"))
    seconds = min(USUAL_SECONDS, 2 * asked.seconds)
    request = ViewRequest(target, seconds, name, f"--data {typed}", asked.progress)
    view = gather_view(sources, data, request)
    heading = phrase("the given model") if result.model is None else result.model.name
    text = findings_text(heading, result.sentence, result.findings, view)
    write_whole(asked.page, [text.encode()])


def _typed(asked: Asked) -> str:
    return type_options(asked.preparing, asked.samples)


class _Files(NamedTuple):
    """What the words of a command stand for."""

    source: SourceFile
    asked: Asked
    data: str

    def fill(self, command: str) -> str:
        """The command with the user's own files, so that it can be typed."""
        own = self.asked.against
        if own is None and is_float(self.source.model):
            own = self.source
        known = None if own is None else own.path
        names = {
            "MODEL": quote(str(self.source.path or "MODEL")),
            "DATA": self.data,
            "FLOAT": "FLOAT.tflite" if known is None else quote(str(known)),
        }
        return re.sub(
            r"\b(MODEL|FLOAT|DATA)\b(?:(?<=FLOAT)\.tflite)?", lambda found: names[found[1]], command
        )


def _refuse_errors(model: Model, reference: Model | None) -> None:
    """Raises before the work where the errors of single ops cannot be told."""
    overlay = argument("overlay")
    if reference is None and not is_float(model):
        raise BadInput(
            "doctor {overlay} shows errors beside a float model; give {against}",
            overlay,
            argument("against", "FLOAT"),
        )
    why_not = inseparable(model) or (inseparable(reference) if reference else "")
    if why_not:
        raise CannotRun(
            "doctor {overlay}: {why_not}; leave out {data} for the times",
            overlay,
            why_not,
            argument("data"),
        )


def _open(source: Given, model: Model, asked: Asked) -> Data:
    """The data, or a part of it that is large enough; what was chosen is told."""
    wanted, is_asked = asked.samples or _USUAL_SAMPLES, asked.samples is not None
    preparation = read_preparation(**asked.preparing)
    data = open_data(source, model, preparation=preparation, samples=wanted, is_asked=is_asked)
    stored = data.items.stored
    if not is_asked and stored is not None:
        told = _extent(len(data), len(stored.rows.names) // stored.batch, wanted)
        data = replace(stored, notes=(*data.notes, *told))
    tell_notes(data, asked.progress)
    return data


def _extent(count: int, every: int, wanted: int) -> list[str]:
    """Of how many samples accuracy is told, where there are, or may be, more."""
    if every > count:
        told = phrase(
            "accuracy was measured on {count} of {every} samples; {samples} uses more",
            total_text(count),
            total_text(every),
            argument("samples"),
        )
        return [told]
    if count != wanted:
        return []
    return [  # of a generator, which may have more
        phrase(
            "accuracy was measured on {count} samples, as {samples}",
            total_text(wanted),
            argument("samples", wanted),
        )
    ]


def _write_bundle(patient: ModelToDiagnose, asked: Asked) -> dict[str, int]:
    """Tells what the bundle will hold, then writes it."""
    path, keeps = asked.bundle or Path(), asked.keep_custom_options
    files = bundle_files(
        patient.model,
        patient.profile,
        target=str(patient.target),
        keep_custom_options=keeps,
    )
    sizes = {name: len(content) for name, content in files.items()}
    listed = join([f"{name} ({bytes_text(size)})" for name, size in sizes.items()], ", ")
    asked.progress(Note(phrase("{path} will hold: {files}", path, listed)))
    asked.progress(
        Note(
            phrase(
                "left out: the weights (random ones of the same ranges instead), names, metadata, "
                "labels, description, attached files; kept: ops, shapes, types, scales, integer "
                "settings"
            )
        )
    )
    custom = [op for _, _, op in patient.model.ops() if op.is_custom]
    if custom:
        zeros = phrase("numbers and zeros ({keep})", argument("keep_custom_options", True))
        state = phrase("kept as they are") if keeps else zeros
        told = phrase("names and options of {count} custom ops: {state}", len(custom), state)
        asked.progress(Note(told))
    why_not = _why_not(files["model.tflite"], patient)
    if why_not:
        told = phrase("the stripped model does not run: {why_not}", why_not)
        asked.progress(Note(told))
    write_bundle(path, files)
    return sizes


def _why_not(content: bytes, patient: ModelToDiagnose) -> str:
    """Why the stripped model does not run; "" where it does."""
    with temporary_file(content) as path:
        try:
            probe(path, patient.target)
        except CannotRun as error:
            return str(error).replace(str(path), "model.tflite")
    return ""
