"""The command doctor: why a model is slow, and the command that acts on it."""

import json
import tempfile
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from litesmith.cli import show
from litesmith.cli.model import Json, ModelFile, refuse_place
from litesmith.cli.profile import On, checked_target
from litesmith.errors import CannotRun
from litesmith.ir.types import Model
from litesmith.measure.bundle import bundle_files, write_bundle
from litesmith.measure.doctor import Diagnosis, Patient, diagnoses
from litesmith.measure.profile import profile
from litesmith.run.probe import probe
from litesmith.tflite.file import load
from litesmith.units import bytes_text, plain, time_text

_STRIPPED = (
    "left out: the weights (random ones of the same ranges instead), names, metadata, labels, "
    "description, attached files; kept: ops and the names of custom ones, shapes, types, scales, "
    "integer settings"
)


def doctor(
    model: ModelFile,
    on: On = "cpu:1",
    bundle: Annotated[
        Path | None,
        typer.Option(
            "--bundle", metavar="OUT.zip", help="Write what another person needs to see the same."
        ),
    ] = None,
    keep_custom_options: Annotated[
        bool,
        typer.Option(
            "--keep-custom-options",
            help="Do not replace the options of custom ops by zeros in the bundle.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Why a model is slow: what costs how much time, and the command that acts on it."""
    if bundle is not None:
        refuse_place(bundle, model)
    content = load(model)
    patient = _examined(model, content, on)
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
        typer.echo(json.dumps(shown))


def _examined(model: Path, content: Model, on: str) -> Patient:
    """The model with its profile. One that runs but has none still gets what the file tells."""
    target = checked_target(model, on)
    try:
        return Patient(content, target, profile(model, target))
    except CannotRun as error:
        return Patient(content, target, None, str(error))


def _row(one: Diagnosis, model: Path) -> dict[str, str | float | None]:
    return {**one.row(), "command": one.command.replace("MODEL", quote(str(model)))}


def _print_findings(model: Path, patient: Patient, found: list[Diagnosis]) -> None:
    taken = "" if patient.profile is None else f": {time_text(patient.profile.run_us)} a run"
    show.line(f"{plain(model.name)} on {patient.target}{taken}", "bold")
    if not found:
        show.line("nothing stands out")
    for one in found:
        show.heading(plain(one.what))
        show.line(f"  where  {one.where}")
        show.line(f"  why    {one.why}")
        show.line(f"  costs  {one.costs}")
        show.command(f"  {one.command.replace('MODEL', quote(str(model)))}")


def _bundled(path: Path, patient: Patient, keep_custom_options: bool) -> dict[str, object]:
    """Lists on stderr, beside the JSON, what the bundle will hold; then writes it."""
    keeps = " --keep-custom-options" if keep_custom_options else ""
    files = bundle_files(
        patient.model,
        patient.profile,
        command=f"litesmith doctor MODEL --on {patient.target} --bundle OUT.zip{keeps}",
        keep_custom_options=keep_custom_options,
    )
    custom = [op for _, _, op in patient.model.ops() if op.rest.get("custom_options") is not None]
    lines = [f"{path} will hold:"]
    lines += [f"  {name}  {bytes_text(len(content))}" for name, content in files.items()]
    lines.append(_STRIPPED)
    if custom:
        state = "kept as they are" if keep_custom_options else "zeros (--keep-custom-options)"
        lines.append(f"options of {len(custom)} custom ops: {state}")
    why_not = _why_not(files["model.tflite"], patient)
    if why_not:
        lines.append(f"the stripped model does not run: {why_not}")
    typer.echo("\n".join(lines), err=True)
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
