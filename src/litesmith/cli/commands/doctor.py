"""The command doctor: why a model is slow or inaccurate, and the command that acts on it."""

import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Annotated, NamedTuple

import click
from rich.cells import cell_len, set_cell_size

from litesmith.cli.commands.profile import On, checked_target
from litesmith.cli.options.data_options import (
    DEFAULT_CROP,
    DEFAULT_RESIZE,
    Crop,
    DataSource,
    ImageOptions,
    LabelOffset,
    Mean,
    NormName,
    Resize,
    SampleCount,
    Std,
    say,
    say_notes,
    typed,
    with_progress,
)
from litesmith.cli.options.declare import option
from litesmith.cli.options.overlay_option import (
    OverlayFile,
    Place,
    lay_errors,
    lay_times,
    refuse_errors,
    refuse_overlay,
)
from litesmith.cli.options.shared_options import Json, ModelFile
from litesmith.cli.text import printing as show
from litesmith.data.samples import Data
from litesmith.data.sources import open_data
from litesmith.diagnosis.bundle import bundle_files, write_bundle
from litesmith.diagnosis.fitting import Fit, obstacles, recipe_for
from litesmith.diagnosis.slowness import Diagnosis, Patient, diagnoses
from litesmith.diagnosis.verdict import Verdict, examine
from litesmith.errors import BadInput, CannotRun
from litesmith.ir.types import Model
from litesmith.lang import language
from litesmith.passes.core.recipe import is_float
from litesmith.phrases import phrase
from litesmith.profiling.op_times import profile_ops
from litesmith.run.core.placement import PREDICTED
from litesmith.run.trial_run import probe
from litesmith.tflite.file import load, refuse_output
from litesmith.units import bytes_text, plain, time_text, total_text

Against = Annotated[
    Path | None,
    option("--against", metavar="FLOAT", help="The float .tflite that a quantized one stands for."),
]

For = Annotated[
    str | None,
    option(
        "--for",
        metavar="edgetpu|ethos-u55|hexagon|gpu|…",
        help="What keeps the model from running there whole, and the recipe that changes that.",
        show_default=False,
    ),
]

# Samples that accuracy is told of where nobody asks for a number.
_USUAL_SAMPLES = 500


_STRIPPED = phrase(
    "left out: the weights (random ones of the same ranges instead), names, metadata, "
    "labels, description, attached files; kept: ops and the names of custom ones, shapes, "
    "types, scales, integer settings"
)


def doctor(
    model: ModelFile,
    data: DataSource = None,
    against: Against = None,
    on: On = "cpu:1",
    accelerator: For = None,
    samples: SampleCount = None,
    mean: Mean = None,
    std: Std = None,
    norm: NormName = None,
    resize: Resize = DEFAULT_RESIZE,
    crop: Crop = DEFAULT_CROP,
    label_offset: LabelOffset = None,
    bundle: Annotated[
        Path | None,
        option(
            "--bundle", metavar="OUT.zip", help="Write what another person needs to see the same."
        ),
    ] = None,
    keep_custom_options: Annotated[
        bool,
        option(
            "--keep-custom-options",
            help="Do not replace the options of custom ops by zeros in the bundle.",
        ),
    ] = False,
    overlay: OverlayFile = None,
    as_json: Json = False,
) -> None:
    """Why a model is slow; with data, where it loses accuracy; and the command that acts on it."""
    if bundle is not None:
        refuse_output(bundle, model)
    if overlay is not None:
        refuse_overlay(overlay, model)
    content = load(model)
    if accelerator is not None:
        if overlay is not None:
            raise BadInput("doctor --for times nothing to lay over the graph; leave out --overlay")
        _fit(model, content, accelerator, as_json)
        return
    if data is not None:
        if bundle is not None:
            raise BadInput("doctor --data tells of accuracy; a bundle is made without it")
        options = ImageOptions(mean, std, norm, resize, crop, label_offset)
        reference = load(against) if against is not None else None
        if overlay is not None:
            refuse_errors(content, reference)
        opened = _opened(data, reference or content, options, samples)
        given = f"{quote(data)}{typed(options, samples)}"
        is_float_model = against is None and is_float(content)
        files = Files(model, model if is_float_model else against, given)
        found = _accuracy(files, content, reference, opened, as_json)
        if overlay is not None:
            lay_errors(Place(model, overlay, as_json), found.pair, opened)
        return
    if against is not None:
        raise BadInput("doctor --against compares answers, which needs data; give --data")
    patient = _examined(model, content, on)
    _slowness(model, patient, bundle, keep_custom_options, as_json)
    if overlay is not None:
        place = Place(model, overlay, as_json)
        lay_times(place, content, patient.profile, patient.no_profile)


def _slowness(
    model: Path, patient: Patient, bundle: Path | None, keep_custom_options: bool, as_json: bool
) -> None:
    """What costs time, ranked; and the bundle, where one is asked for."""
    found = diagnoses(patient)
    shown: dict[str, object] = {
        "schema": 1,
        "model": str(model),
        "target": str(patient.target),
        "run_us": None if patient.profile is None else patient.profile.run_us,
        "findings": [_row(one, model) for one in found],
    }
    if not as_json:
        _print_findings(model, patient, found)
    if bundle is not None:
        shown["bundle"] = _bundled(bundle, patient, keep_custom_options)
    if as_json:
        click.echo(json.dumps(shown))


def _fit(path: Path, model: Model, accelerator: str, as_json: bool) -> None:
    """What an accelerator does not take of a model, and the recipe that changes that."""
    fit = recipe_for(model, accelerator)
    before, after = fit.before, fit.after
    found = [one if fit.vain is None else replace(one, command="") for one in obstacles(before)]
    command = _fitting_command(path, fit, fit.recipe)
    if as_json:
        rows = [_row(replace(one, command=command or one.command), path) for one in found]
        told = {"schema": 1, "model": str(path), "for": before.target, "how": before.how}
        fitted = {
            "recipe": fit.recipe,
            "command": command,
            "taken": after.taken,
            "ops": len(after.homes),
            "how": after.how,
            "left": [{"what": one.what, "why": one.why} for one in obstacles(after)],
            "notes": list(fit.notes),
            "hint": _fitting_command(path, fit, fit.hint),
        }
        shown = {"is_whole": before.is_whole, "findings": rows, "fit": fitted}
        click.echo(json.dumps({**told, **shown}))
        return
    _print_obstacles(path, fit, found)
    if fit.recipe:
        _print_recipe(fit, command)
    elif not before.is_whole:
        _print_vain(fit)
    if fit.hint:
        show.line("float16 weights make the file smaller, and it computes in float16 anyway:")
        show.command(f"  {_fitting_command(path, fit, fit.hint)}")


def _print_obstacles(path: Path, fit: Fit, found: list[Diagnosis]) -> None:
    before = fit.before
    taken = phrase("{taken} of {count} ops", before.taken, len(before.homes))
    show.line(
        phrase(
            "{name} on {target}: {taken}, {how}", plain(path.name), before.target, taken, before.how
        ),
        "bold",
    )
    if not found:
        show.line("it takes the model whole")
    for one in found:
        show.line(f"- {one.what}: {one.where}", "bold")
        show.indented("  ", one.why)
        if one.command and not fit.recipe:
            show.command(f"  {_row(one, path)['command']}")


def _print_vain(fit: Fit) -> None:
    """That nothing helps, and what stays after the best that was tried."""
    if fit.vain is None:
        show.line("nothing that was tried makes it take more")
        return
    best = phrase("{taken} of {count} ops", fit.vain.taken, len(fit.vain.homes))
    show.line(
        phrase("nothing that was tried makes it take most of the model; at its best {best}:", best)
    )
    for one in obstacles(fit.vain):
        show.line(f"- {one.what}: {one.where}")
        show.indented("  ", one.why)


def _print_recipe(fit: Fit, command: str) -> None:
    after = fit.after
    show.heading(
        "the recipe that helps" + (phrase(", where D is your data") if fit.needs_data else "")
    )
    show.command(f"  {command}")
    for note in fit.notes:
        show.indented("  ", note)
    known = phrase("by its documents") if after.how == PREDICTED else phrase("by its own compiler")
    tried = phrase("on random inputs in place of data; ") if fit.needs_data else ""
    show.line(
        phrase(
            "after it: {taken} of {count} ops, {how} {known} ({tried}no file was written)",
            after.taken,
            len(after.homes),
            after.how,
            known,
            tried,
        )
    )
    for one in obstacles(after):
        show.line(phrase("- stays: {what}: {where}", one.what, one.where))
        show.indented("  ", one.why)


def _fitting_command(path: Path, fit: Fit, recipe: str) -> str:
    """The command that carries the recipe out; "" for no recipe."""
    if not recipe:
        return ""
    out = quote(f"{path.stem}_{fit.before.target}.tflite")
    data = phrase(" --data D") if fit.needs_data else ""
    return f"litesmith apply {quote(str(path))} {quote(recipe)}{data} -o {out}"


def _opened(source: str, model: Model, options: ImageOptions, samples: int | None) -> Data:
    """The data, or a part of it that is large enough; what was chosen is said on stderr."""
    wanted = samples or _USUAL_SAMPLES
    data = open_data(
        source,
        model,
        preparation=options.preparation(),
        samples=wanted,
        is_asked=samples is not None,
    )
    stored = data.items.stored
    if samples is None and stored is not None:
        kept = list(data.notes)
        count = len(stored.rows.names) // stored.batch
        if count > len(data):
            told = phrase(
                "accuracy is told of {count} of {count2} samples",
                total_text(len(data)),
                total_text(count),
            )
            kept.append(phrase("{told}; --samples takes more", told))
        elif len(data) == wanted:  # of a generator, which may have more
            kept.append(
                phrase(
                    "accuracy is told of {count} samples, as --samples {wanted}",
                    total_text(wanted),
                    wanted,
                )
            )
        data = replace(stored, notes=tuple(kept))
    say_notes(data)
    return data


class Files(NamedTuple):
    """What the words of a command stand for; `reference` is None where no float model is known."""

    model: Path
    reference: Path | None
    data: str

    def filled(self, command: str) -> str:
        """The command with the user's own files, so that it can be typed."""
        names = {"MODEL": quote(str(self.model)), "DATA": self.data}
        names["FLOAT"] = quote(str(self.reference)) if self.reference else "FLOAT.tflite"
        return re.sub(r"\b(MODEL|FLOAT|DATA)\b", lambda found: names[found[0]], command)


def _accuracy(
    files: Files, content: Model, reference: Model | None, data: Data, as_json: bool
) -> Verdict:
    watch = partial(with_progress, quiet=as_json)
    found = examine(content, data, against=reference, watch=watch)
    for note in found.notes:
        say("note", note)
    rows = [{**one.row(), "command": files.filled(one.command)} for one in found.findings]
    if as_json:
        drift = found.drift
        shown = {
            "schema": 1,
            "model": str(files.model),
            "verdict": found.sentence,
            "snr_db": None if drift is None else drift.decibels,
            "findings": rows,
        }
        click.echo(json.dumps(shown))
        return found
    show.line(f"{plain(files.model.name)} {found.sentence}", "bold")
    _print_rows(rows)
    return found


def _print_rows(rows: Sequence[Mapping[str, object]]) -> None:
    for row in rows:
        show.heading(plain(str(row["what"])))
        names = {name: language.say(name) for name in ("where", "why", "costs")}
        room = max(map(cell_len, names.values()))
        for name, shown in names.items():
            show.indented(f"  {set_cell_size(shown, room)}  ", str(row[name]))
        if row["command"]:
            show.command(f"  {row['command']}")


def _examined(model: Path, content: Model, on: str) -> Patient:
    """The model with its profile. One that runs but has none still gets what the file tells."""
    target = checked_target(model, on)
    try:
        return Patient(content, target, profile_ops(model, target))
    except CannotRun as error:
        return Patient(content, target, None, str(error))


def _row(one: Diagnosis, model: Path) -> dict[str, str | float | None]:
    return {**one.row(), "command": one.command.replace("MODEL", quote(str(model)))}


def _print_findings(model: Path, patient: Patient, found: list[Diagnosis]) -> None:
    taken = (
        ""
        if patient.profile is None
        else phrase(": {time} a run", time_text(patient.profile.run_us))
    )
    show.line(phrase("{name} on {target}{taken}", plain(model.name), patient.target, taken), "bold")
    if not found:
        show.line("nothing stands out")
    _print_rows([_row(one, model) for one in found])


def _bundled(path: Path, patient: Patient, keep_custom_options: bool) -> dict[str, object]:
    """Lists on stderr, beside the JSON, what the bundle will hold; then writes it."""
    keeps = phrase(" --keep-custom-options") if keep_custom_options else ""
    files = bundle_files(
        patient.model,
        patient.profile,
        command=f"litesmith doctor MODEL --on {patient.target} --bundle OUT.zip{keeps}",
        keep_custom_options=keep_custom_options,
    )
    custom = [op for _, _, op in patient.model.ops() if op.rest.get("custom_options") is not None]
    lines = [phrase("{path} will hold:", path)]
    lines += [f"  {name}  {bytes_text(len(content))}" for name, content in files.items()]
    lines.append(_STRIPPED)
    if custom:
        state = (
            phrase("kept as they are") if keep_custom_options else "zeros (--keep-custom-options)"
        )
        lines.append(phrase("options of {count} custom ops: {state}", len(custom), state))
    why_not = _why_not(files["model.tflite"], patient)
    if why_not:
        lines.append(phrase("the stripped model does not run: {why_not}", why_not))
    click.echo("\n".join(map(language.say, lines)), err=True)
    write_bundle(path, files)
    return {"out": str(path), "files": {name: len(content) for name, content in files.items()}}


def _why_not(content: bytes, patient: Patient) -> str:
    """Why the stripped model does not run; "" where it does."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tflite"
        path.write_bytes(content)
        try:
            probe(path, patient.target)
        except CannotRun as error:
            return str(error).replace(str(path), "model.tflite")
    return ""
