"""Fine-tuning: a backbone and its new head trained together, on labels and changed pictures."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from hashlib import sha256

import numpy as np

from litesmith._version import VERSION
from litesmith.data.samples import Data
from litesmith.ir.types import Model
from litesmith.passes.core.layers import Layer
from litesmith.phrases import phrase
from litesmith.tflite.write import chunks
from litesmith.training.augment import Augment
from litesmith.training.fit import Checkpoint, Fitted, checkpoint_of, fit
from litesmith.training.lesson import Aim, Lesson
from litesmith.training.sample_arrays import TrainingSamples, gather_samples
from litesmith.training.settings import Watch
from litesmith.training.step_tuner import device_named, is_surely_less
from litesmith.training.student import Student
from litesmith.training.teaching.retrain_request import FineTuned, RetrainRequest
from litesmith.transfer.confusion import confusion
from litesmith.transfer.head import Embedded, rows_of, solve_head, with_head
from litesmith.transfer.labelled_data import Labelled
from litesmith.type_guards import is_whole
from litesmith.units import number_text, percent_text, time_text

_RECORD = "stage-0.pt"
LABELS_ONLY = Aim(classes=(True,), spreads=(1.0,), scores=0, follow=0.0)


def fine_tuned(
    features: Model, learned: Labelled, request: RetrainRequest, watch: Watch | None = None
) -> FineTuned:
    """The backbone with a head, trained; judged by samples that neither of them has seen.

    The head that training begins with is solved anew without the samples that are held out from
    it: one that knows them could not be beaten on them.
    """
    data = learned.data
    samples = gather_samples(data, labelled=True)
    start = _start(features, learned, samples, request)
    device = device_named(request.training.device)
    student = Student(start, device=device)
    trained = choose_layers(student.layers, request.fine_tune)
    restrict(student, trained)
    training = request.training
    augment = Augment(start.main, training.augment, training.seed)
    lesson = Lesson(student, samples, (), LABELS_ONLY, augment=augment, batch=training.batch)
    record = record_of(start, data, request)
    fitted = fit(lesson, training, lesson.batch, checkpoint=record, watch=watch)
    held = replace(learned, data=data.at(samples.held.tolist()))
    return _judged(start, student, fitted, held, len(trained))


def _start(
    features: Model, learned: Labelled, samples: TrainingSamples, request: RetrainRequest
) -> Model:
    """The backbone with a head that has learned nothing from the held-out samples."""
    rows = rows_of(features, learned.data)
    batch = learned.data.batch
    own = (samples.learned[:, None] * batch + np.arange(batch)).reshape(-1)
    items = Embedded(
        rows[own], learned.labels[own], tuple(learned.data.digests[i] for i in own), own
    )
    head = solve_head(items, len(learned.names), balance=request.balance)
    return with_head(features, head.linear)


def choose_layers(layers: Sequence[Layer], which: str) -> Sequence[Layer]:
    """The layers that are trained, the head among them."""
    if which == "all":
        return layers
    if is_whole(which):
        return layers[-1 - int(which) :]
    maps = [layer for layer in layers if len(layer.data.shape) == 4]
    smallest = maps[-1].op.outputs[0].shape[1:3] if maps else ()
    last = [x for x in layers if x not in maps or x.op.outputs[0].shape[1:3] == smallest]
    return last if maps else layers[-2:]


def restrict(student: Student, trained: Sequence[Layer]) -> None:
    """Leaves all other layers as they are: constants, which cost no way back."""
    tensors = {t for layer in trained for t in (layer.weight, layer.bias) if t is not None}
    student.layers = list(trained)
    student.weights = {t: part for t, part in student.weights.items() if t in tensors}
    student.biases = {t: part for t, part in student.biases.items() if t in tensors}


def record_of(start: Model, data: Data, request: RetrainRequest) -> Checkpoint:
    """The training's checkpoint in the folder of the request, where it has one."""
    return checkpoint_of(request.record, _RECORD, training_key(start, data, request))


def training_key(start: Model, data: Data, request: RetrainRequest) -> str:
    """Tells a training from any other that would end in another result."""
    running = sha256(VERSION.encode())
    for piece in chunks(start):
        running.update(piece)
    settings = {**asdict(request.training), "minutes": None}
    running.update(f"{data.digest} {request.fine_tune} {request.balance} {settings}".encode())
    return running.hexdigest()


def _judged(
    start: Model, student: Student, fitted: Fitted, held: Labelled, layers: int
) -> FineTuned:
    """The trained model, where the runtime scores it better than the head alone beyond chance; the
    head shipped otherwise has also learned from these held-out samples."""
    alone = confusion(start, held)
    model = student.written() if fitted.best < fitted.first else None
    found = alone if model is None else confusion(model, held)
    before, after = float(alone.right.mean()), float(found.right.mean())
    is_better = after >= before and is_surely_less(found.losses, alone.losses)
    took = time_text(fitted.seconds * 1e6)
    losses = f"{number_text(fitted.first)} → {number_text(fitted.best)}"
    shares = f"{percent_text(before)} → {percent_text(after)}"
    told = phrase(
        "fine-tuned {layers} layers, {steps} steps at rate {number}, {took}: held-out loss "
        "{losses}, right {shares} of {count}",
        layers,
        fitted.steps,
        number_text(fitted.rate),
        took,
        losses,
        shares,
        len(held.labels),
    )
    if not is_better:
        told += phrase("; no better than the head alone beyond chance, which is kept")
    return FineTuned(model if is_better else None, told, before, after, len(held.labels))
