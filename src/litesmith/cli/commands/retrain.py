"""The command retrain: a classifier of the user's classes from any float network."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from litesmith.cli.options.data_options import (
    DEFAULT_CROP,
    DEFAULT_RESIZE,
    Crop,
    DataSource,
    ImageOptions,
    Mean,
    NormName,
    Resize,
    SampleCount,
    Std,
    say,
)
from litesmith.cli.options.declare import argument, option
from litesmith.cli.options.shared_options import Json
from litesmith.cli.options.training_options import (
    AugmentName,
    Batch,
    Device,
    Minutes,
    Rate,
    Resume,
    Seed,
    forget,
    has_record,
)
from litesmith.cli.text.retrain_text import Shown, print_json, print_text
from litesmith.errors import BadInput
from litesmith.pages.folder_kinds import write_report
from litesmith.phrases import phrase
from litesmith.search.trial.folder import RETRAIN, Folder
from litesmith.tflite.file import refuse_output
from litesmith.training.recipe_context import Record
from litesmith.training.retrain_record import evidence_facts, record_facts, trials_of
from litesmith.training.retrain_request import NO_TUNING, Request, Retrained, is_scratch
from litesmith.training.retraining import SCRATCH_EPOCHS, carry_out, default_training, refuse_early
from litesmith.training.settings import Training

Backbone = Annotated[
    Path,
    argument(
        metavar="BACKBONE",
        help="A float .tflite: a classifier, or a feature extractor; or a network of "
        "`litesmith catalogue` by name, to train from scratch.",
        show_default=False,
    ),
]
OutFile = Annotated[Path, option("-o", "--output", metavar="OUT", help="The .tflite to write.")]
Val = Annotated[
    str | None,
    option(
        "--val",
        metavar="D2",
        help="Other data to judge by. [D/val, else a fifth of each class]",
        show_default=False,
    ),
]
At = Annotated[
    str,
    option(
        "--at",
        metavar="TENSOR",
        help="Learn from this tensor, by name or index. [the vector before the classifier]",
        show_default=False,
    ),
]
Balance = Annotated[
    bool, option("--balance", help="Let every class count the same, large or small.")
]
FineTune = Annotated[
    str,
    option(
        "--fine-tune",
        metavar="none|last|all|N",
        help="Train the last layers, all or N too, with torch; none takes seconds, not minutes.",
    ),
]
Epochs = Annotated[
    float | None,
    option(
        "--epochs",
        help=f"Times that each sample is used. [{Training.epochs:g}, from scratch "
        f"{SCRATCH_EPOCHS:g}]",
        show_default=False,
    ),
]
SampleRate = Annotated[
    int,
    option(
        "--sample-rate",
        min=0,
        help="Samples a second that a model of sounds takes. [its metadata, else 16000, said]",
        show_default=False,
    ),
]
Evidence = Annotated[
    Path | None,
    option(
        "--evidence",
        metavar="DIR",
        help="The folder for the report. [OUT without its ending, and -retrain]",
        show_default=False,
    ),
]


def retrain(
    backbone: Backbone,
    out: OutFile,
    data: DataSource = None,
    val: Val = None,
    at: At = "",
    balance: Balance = False,
    fine_tune: FineTune = NO_TUNING,
    samples: SampleCount = None,
    epochs: Epochs = None,
    minutes: Minutes = Training.minutes,
    rate: Rate = Training.rate,
    batch: Batch = Training.batch,
    augment: AugmentName = Training.augment,
    seed: Seed = Training.seed,
    device: Device = Training.device,
    resume: Resume = False,
    mean: Mean = None,
    std: Std = None,
    norm: NormName = None,
    resize: Resize = DEFAULT_RESIZE,
    crop: Crop = DEFAULT_CROP,
    sample_rate: SampleRate = 0,
    evidence: Evidence = None,
    as_json: Json = False,
) -> None:
    """Make a classifier of your classes: a new head, or a whole network from scratch."""
    if data is None:
        raise BadInput("retrain needs data; give --data and a folder with a folder for each class")
    refuse_output(out, backbone)
    trains = fine_tune != NO_TUNING or is_scratch(backbone)
    if resume and not trains:
        raise BadInput("--resume: nothing is trained here: that needs --fine-tune")
    options = ImageOptions(mean, std, norm, resize, crop)
    epochs = default_training(backbone).epochs if epochs is None else epochs
    training = Training(epochs, minutes, rate, batch, 1.0, augment, seed, device)
    records = out.with_name(f"{out.name}.training")
    request = Request(
        backbone,
        data,
        out,
        val,
        at,
        replace(options.preparation(), rate=sample_rate),
        samples,
        balance,
        fine_tune,
        training,
        Record(records, resume) if trains else Record(),
    )
    folder = Folder(evidence or out.with_name(f"{out.stem}-retrain"), RETRAIN)
    with _taken_back(folder.path), folder.held():
        result = _carried_out(request, quiet=as_json)
        page = _write(folder, result)
    if as_json:
        print_json(result, page)
    else:
        print_text(result, page)


@contextmanager
def _taken_back(folder: Path) -> Iterator[None]:
    """A folder that was made for nothing goes again."""
    was_there = folder.exists()
    try:
        yield
    except BaseException:
        if not was_there:
            for lock in folder.glob(".lock"):
                lock.unlink(missing_ok=True)
            with suppress(OSError):  # where it holds something
                folder.rmdir()
        raise


def _carried_out(request: Request, *, quiet: bool) -> Retrained:
    refuse_early(request)
    records = request.record.folder
    if request.record.resume and (records is None or not records.is_dir()):
        raise BadInput("--resume: there is no interrupted training to go on with; leave it out")
    if records is not None:
        if not request.record.resume and has_record(records):
            say("note", phrase("{records}: of an interrupted training, which starts anew", records))
            forget(records)
        records.mkdir(exist_ok=True)
    shown = Shown(quiet=quiet)
    try:
        with shown:
            result = carry_out(request, lambda note: say("note", note), shown.progress, shown.watch)
    except KeyboardInterrupt as error:
        if records is not None and has_record(records):
            error.add_note(phrase("{records} keeps what was trained: --resume goes on", records))
        raise
    finally:
        if records is not None:
            with suppress(OSError):  # where it holds something
                records.rmdir()
    if records is not None:
        forget(records)
    return result


def _write(folder: Folder, result: Retrained) -> Path:
    """The record, the evidence and the page."""
    command = shlex.join(["litesmith", *sys.argv[1:]])
    folder.write_summary(record_facts(result, command))
    for trial in trials_of(result):
        folder.add(trial)
    folder.write_evidence(result.digest, evidence_facts(result))
    return write_report(folder.path)
