"""`retrain`: a classifier of the user's classes from any float network."""

import os
from collections.abc import Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from litesmith.arguments import argument, check_types, refuse_below
from litesmith.data.preparation import UNTOUCHED, Preparation, read_preparation
from litesmith.data.sources import Given
from litesmith.errors import BadInput
from litesmith.evidence.folder import RETRAIN, Folder
from litesmith.front.recipe_job import forget, has_record
from litesmith.front.resize import Shape, shape_texts
from litesmith.known_networks import catalogue_room
from litesmith.pages.folder_kinds import write_report
from litesmith.phrases import phrase
from litesmith.progress import Note, Progress, Status, silent
from litesmith.temporary import temporary_file
from litesmith.tflite.write import to_bytes
from litesmith.training.settings import (
    RECORD_SECONDS,
    Training,
    TrainingOptions,
    TrainingRecord,
    read_training,
    split_preparing,
)
from litesmith.training.teaching.picture_result import TaughtNetwork
from litesmith.training.teaching.retrain_request import NO_TUNING, RetrainRequest
from litesmith.training.teaching.retrain_result import (
    Retrained,
    list_trials,
    retrain_inside,
    retrain_summary,
)
from litesmith.training.teaching.retraining import (
    carry_out,
    choose_task,
    default_out,
    default_training,
    refuse_early,
)

Place = str | os.PathLike[str]


@check_types
def retrain(
    backbone: Place,
    data: Given | None = None,
    out: Place | None = None,
    *,
    val: Given | None = None,
    at: str = "",
    balance: bool = False,
    fine_tune: str | int = NO_TUNING,
    pretrained: bool = False,
    samples: int | None = None,
    shape: Shape | None = None,
    raw: bool = False,
    sample_rate: int | None = None,
    preparation: Preparation = UNTOUCHED,
    training: Training | None = None,
    resume: bool = False,
    record_every: float = RECORD_SECONDS,
    evidence: Place | None = None,
    command: str = "",
    progress: Progress = silent,
    **options: Unpack[TrainingOptions],
) -> Retrained | TaughtNetwork:
    """A classifier of your classes from any float classifier or feature extractor.

    >>> found = litesmith.retrain("model.tflite", "val.npz", "mine.tflite")
    >>> found.low < found.value <= found.high
    True

    `data` is a folder with a folder for each class, arrays `x` and `y`, or a function. The result
    is judged on `val`, or on one item in five of each class. `fine_tune` trains the last layers
    ("last"), a number of them (6) or the whole network ("all") from there on, which needs torch;
    `resume` continues a training that was interrupted. The name of a network of the catalogue,
    "resnet8", trains that from random weights, with torch; where it is `pretrained` it is a
    backbone with published weights, which pip fetches. `shape` gives a file's inputs other sizes
    first, as in {"x": (1, 96, 96, 3)}. Pictures with boxes (COCO, VOC, YOLO) make a detector, with
    torch, and pictures with masks a segmenter; `raw` leaves out of a detector's file the op that
    chooses among boxes. `evidence` is a folder for the record and the report, `command` what the
    user typed, for the record.
    """
    if data is None:
        raise BadInput(
            "retrain needs data; give {data} and a folder with a folder for each class",
            argument("data"),
        )
    refuse_below("samples", samples, 1)
    with ExitStack() as held:
        path = Path(backbone)
        if pretrained:
            progress(Status(phrase("fetching the weights of {name}", path)))
            path = held.enter_context(_pretrained_file(path))
        prepared = read_preparation(preparation, **split_preparing(options))
        task = choose_task(prepared.task, data)
        if raw and task != "detection":
            raise BadInput("{raw}: is for detectors; leave it out", argument("raw", True))
        prepared = replace(prepared, task=task)
        request = RetrainRequest(
            path,
            data,
            default_out(path) if out is None else Path(out),
            val,
            at,
            prepared if sample_rate is None else replace(prepared, rate=sample_rate),
            samples,
            balance,
            str(fine_tune),
            read_training(training or default_training(path, task), **options),
            shape=() if shape is None else shape_texts(shape),
            raw=raw,
        )
        request = _with_record(request, resume, record_every)
        refuse_early(request)
        folder = None if evidence is None else Folder(Path(evidence), RETRAIN)
        if folder is not None:
            held.enter_context(_hold(folder))
        result = _carry_out(request, progress)
        return result if folder is None else replace(result, report=_write(folder, result, command))


def _pretrained_file(backbone: Path) -> AbstractContextManager[Path]:
    """A network of the catalogue with published weights, as a file that goes away."""
    if backbone.exists():
        raise BadInput(
            "{pretrained}: {path} is a file, with weights of its own; leave it out",
            argument("pretrained", True),
            backbone,
        )
    name = backbone.as_posix()
    model = catalogue_room().load_pretrained(name)
    return temporary_file(to_bytes(model), f"{catalogue_room().parse(name).name}.tflite")


def _with_record(request: RetrainRequest, resume: bool, every: float) -> RetrainRequest:
    """The request with a place for what is trained, should the training be interrupted."""
    resuming = argument("resume", True)
    if not request.trains:
        if resume:
            raise BadInput(
                "{resume}: nothing is trained here: that needs {fine_tune}",
                resuming,
                argument("fine_tune"),
            )
        return request
    records = request.out.with_name(f"{request.out.name}.training")
    if resume and not records.is_dir():
        raise BadInput(
            "{resume}: there is no interrupted training to go on with; leave it out", resuming
        )
    return replace(request, record=TrainingRecord(records, resume, every))


@contextmanager
def _hold(folder: Folder) -> Generator[None]:
    """Keeps others out of the folder, which goes again where it was made for nothing."""
    was_there = folder.path.exists()
    try:
        with folder.hold():
            yield
    except BaseException:
        if not was_there:
            for lock in folder.path.glob(".lock"):
                lock.unlink(missing_ok=True)
            with suppress(OSError):  # where it holds something
                folder.path.rmdir()
        raise


def _carry_out(request: RetrainRequest, progress: Progress) -> Retrained | TaughtNetwork:
    """Retrains, and keeps what was trained for as long as the work may be continued."""
    records = request.record.folder
    if records is None:
        return carry_out(request, progress)
    if not request.record.resume and has_record(records):
        progress(Note(phrase("{records}: of an interrupted training, which starts anew", records)))
        forget(records)
    records.mkdir(exist_ok=True)
    try:
        result = carry_out(request, progress)
    except KeyboardInterrupt as error:
        if has_record(records):
            resuming = argument("resume", True)
            error.add_note(
                phrase("{records} keeps what was trained: {resume} continues", records, resuming)
            )
        raise
    finally:
        with suppress(OSError):  # where it holds something
            records.rmdir()
    forget(records)
    return result


def _write(folder: Folder, result: Retrained | TaughtNetwork, command: str) -> Path:
    """The record, the evidence and the page."""
    if isinstance(result, TaughtNetwork):
        folder.write_summary(result.as_summary(command))
        for trial in result.list_trials():
            folder.add(trial)
        folder.write_evidence(result.digest, result.as_inside())
        return write_report(folder.path)
    folder.write_summary(retrain_summary(result, command))
    for trial in list_trials(result):
        folder.add(trial)
    folder.write_evidence(result.digest, retrain_inside(result))
    return write_report(folder.path)
