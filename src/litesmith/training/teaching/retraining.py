"""`retrain`: the head of a classifier replaced for a user's classes, and fine-tuned if asked."""

import time
from dataclasses import replace
from pathlib import Path

from litesmith.arguments import argument
from litesmith.data.audio import rate_of, sound_features
from litesmith.data.images import picture
from litesmith.data.preparation import NORMS
from litesmith.data.sources import Given
from litesmith.data.unusable_items import tells_of_unusable
from litesmith.errors import BadInput
from litesmith.installing import install_command
from litesmith.ir.types import Model
from litesmith.known_networks import catalogue_room, find_catalogue_room
from litesmith.passes.core.step import Context
from litesmith.passes.quantizing.integer_graph import integer_tensors
from litesmith.passes.rewriting.rewrite import Rewrite
from litesmith.passes.tidy.fold import Fold
from litesmith.passes.tidy.resize import Resize
from litesmith.phrases import phrase
from litesmith.plugins import why_missing
from litesmith.progress import Note, Progress, Status, silent
from litesmith.tasks.texts import vocabulary_of
from litesmith.tflite.file import load, refuse_output, save
from litesmith.tflite.read_metadata import AttachedFile, StatedNorm, metadata, vocabulary_file
from litesmith.tflite.sound_metadata import state_features
from litesmith.tflite.write_metadata import Described, describe
from litesmith.training.recipe_context import has_torch
from litesmith.training.settings import Look, Training, look_status
from litesmith.training.teaching.picture_result import TaughtNetwork
from litesmith.training.teaching.picture_tasks import PICTURE_TASKS, holds_boxes, holds_masks
from litesmith.training.teaching.picture_teaching import PictureJob, refuse_untrainable
from litesmith.training.teaching.retrain_request import (
    HELD_OUT,
    NO_TUNING,
    RetrainRequest,
    is_scratch,
)
from litesmith.training.teaching.retrain_result import Retrained
from litesmith.transfer.backbone_norm import settle_norm
from litesmith.transfer.confusion import Confusion, confusion
from litesmith.transfer.embedding import cut_at, embedding_of
from litesmith.transfer.head import Embedded, embed, solve_head, with_head
from litesmith.transfer.labelled_data import (
    Labelled,
    Sources,
    ambiguous,
    listed_names,
    open_beside,
    open_labelled,
    sources_of,
    split_by_class,
)
from litesmith.type_guards import is_whole
from litesmith.units import percent_text, total_text

_TUNINGS = (NO_TUNING, "last", "all")


def _no_torch() -> str:
    return phrase("needs torch, which is not installed; {install}", install_command("train"))


# The epochs of a network that begins with random weights.
SCRATCH_EPOCHS = 40.0


# The same for the head of a detector or segmenter.
PICTURE_EPOCHS = 30.0

# The tasks for which there is a head to teach.
TAUGHT = ("classification", "detection", "segmentation", "text")


# A note is given if classes differ in size by more than this factor.
_UNEVEN = 3.0


class RetrainJob:
    """A retraining in progress: its data, its notes, and its callback."""

    def __init__(self, request: RetrainRequest, progress: Progress) -> None:
        self._request, self._progress = request, progress
        self.notes: list[str] = []

    def say(self, *notes: str) -> None:
        """Passes notes on, each once."""
        for note in notes:
            if note and note not in self.notes:
                self.notes.append(note)
                self._progress(Note(note))

    def show(self, what: str, done: int = 0, of: int = 0) -> None:
        self._progress(Status(what, done, of))

    def watch(self, look: Look) -> None:
        """Passes on how far a training has come."""
        self._progress(look_status(look))

    def open_parts(self, features: Model, whole: Model) -> tuple[Labelled, Labelled, Embedded]:
        """The data to learn from, the data to judge by, and the embeddings of the first."""
        learned, proof = self.part_data(features, whole)
        what = phrase("running the backbone")

        def tell(done: int, of: int) -> None:
            self.show(what, done, of)

        return learned, proof, embed(features, learned.data, learned.labels, tell)

    def part_data(self, features: Model, whole: Model) -> tuple[Labelled, Labelled]:
        """The data to learn from and the data to judge by, which has no say in the normalisation
        either; nothing is run."""
        sources = sources_of(self._request.data, self._request.val)
        self.say(*sources.notes)
        found = self._open_classes(sources, features)
        if sources.proof is None:
            learned, proof = self._split(found)
        else:
            proof = open_beside(sources.proof, features, found)
            self.say(*filter(tells_of_unusable, proof.data.notes))
            learned = self._without_shared(found, proof)
            self._say_unjudged(proof)
        learned = self._settle_norm(learned, features, whole)
        made = learned.data.preparation
        return learned, replace(proof, data=replace(proof.data, preparation=made))

    def _open_classes(self, sources: Sources, features: Model) -> Labelled:
        """Opens data with classes; its normalisation stays open unless it was requested."""
        requested = self._request.preparation
        found = open_labelled(
            sources.learned,
            features,
            requested if requested.is_chosen else replace(requested, norm="raw"),
            self._request.samples,
        )
        self.say(*found.data.notes, *ambiguous(found))
        return found

    def _settle_norm(self, opened: Labelled, features: Model, whole: Model) -> Labelled:
        """The items to learn from, with a complete preparation."""
        requested = self._request.preparation
        if not requested.is_chosen:
            unset = replace(opened.data.preparation, norm="")
            opened = replace(opened, data=replace(opened.data, preparation=unset))
        self.show(phrase("choosing the normalisation"))
        found, notes = settle_norm(opened, features, requested, whole)
        self.say(*notes)
        made = found.data.preparation
        if made.as_norm().reverse:
            name = made.norm or next(n for n, norm in NORMS.items() if norm.reverse)
            note = phrase("metadata has no word for BGR: say --norm {name} with the result", name)
            self.say(note)
        least, most = min(found.counts), max(found.counts)
        if most > _UNEVEN * least and not self._request.balance:
            self.say(
                phrase(
                    "classes have from {count} to {count2} items, and the large ones count for "
                    "more; --balance lets all count the same",
                    total_text(least),
                    total_text(most),
                )
            )
        return found

    def _split(self, found: Labelled) -> tuple[Labelled, Labelled]:
        learned, proof = split_by_class(found, 1 / HELD_OUT)
        held, of = len(proof.labels), len(found.labels)
        self.say(
            phrase(
                "{count} of {count2} items ({share}), some of each class, are held out to judge "
                "by; --val gives others",
                total_text(held),
                total_text(of),
                percent_text(held / of),
            )
        )
        return learned, proof

    def _say_unjudged(self, proof: Labelled) -> None:
        missing = [name for name, count in zip(proof.names, proof.counts, strict=True) if not count]
        if missing:
            self.say(
                phrase(
                    "{source}: no items to judge by of class {listed_names}",
                    proof.data.source,
                    listed_names(missing),
                )
            )

    def _without_shared(self, found: Labelled, proof: Labelled) -> Labelled:
        known = {*proof.data.digests}
        kept = [place for place, one in enumerate(found.data.digests) if one not in known]
        lost = len(found.data.digests) - len(kept)
        if not lost:
            return found
        if not kept:
            raise BadInput(
                "{source}: all of its items are in {source2} too, which would prove "
                "nothing; give other data as --val",
                found.data.source,
                proof.data.source,
            )
        self.say(
            phrase(
                "{count} items to judge by are in the data too; not learned from", total_text(lost)
            )
        )
        return found.at(kept)

    def judge(self, model: Model, proof: Labelled) -> Confusion:
        """Scores a model on data that it has not seen."""
        return confusion(model, proof, lambda done, of: self.show("judging", done, of))


def default_out(backbone: Path) -> Path:
    """The default path of the result."""
    if is_scratch(backbone):
        return Path(f"{catalogue_room().parse(backbone.as_posix()).name}-trained.tflite")
    return Path(f"{backbone.stem}-retrained.tflite")


def default_training(backbone: Path, task: str = "") -> Training:
    """The default training: random weights need more."""
    if task in PICTURE_TASKS:
        return Training(epochs=PICTURE_EPOCHS)
    return Training(epochs=SCRATCH_EPOCHS) if is_scratch(backbone) else Training()


def choose_task(requested: str, data: Given) -> str:
    """The task to learn: the requested one; otherwise detection for images with boxes, and
    segmentation for images with masks; "" for data with classes."""
    if requested not in ("", *TAUGHT):
        raise BadInput(
            "{task}: no head is taught for it; there are {tasks}",
            argument("task", requested),
            ", ".join(TAUGHT),
        )
    if not requested and holds_boxes(data):
        return "detection"
    if not requested and holds_masks(data):
        return "segmentation"
    return "" if requested == "classification" else requested


def carry_out(request: RetrainRequest, progress: Progress = silent) -> Retrained | TaughtNetwork:
    """Opens, learns, writes and judges."""
    if request.preparation.task in PICTURE_TASKS:
        refuse_untrainable(request)
        return PictureJob(request, load_backbone(request), progress).carry_out()
    return teach_classes(request, progress)


def teach_classes(request: RetrainRequest, progress: Progress = silent) -> Retrained:
    """A classifier: opens, learns, writes and judges."""
    if request.is_scratch:
        return _from_scratch(request, progress)
    began = time.monotonic()
    job = RetrainJob(request, progress)
    whole = load_backbone(request)
    embedding = embedding_of(whole, request.at)
    features = _without_classes(cut_at(whole, embedding.tensor), whole)
    job.say(
        phrase(
            "learns from {how}: {shape} numbers an item", embedding.how, embedding.tensor.shape[-1]
        )
    )
    learned, proof, items = job.open_parts(features, whole)
    job.show(phrase("solving the head"))
    head = solve_head(items, len(learned.names), balance=request.balance)
    model = _labelled_model(with_head(features, head.linear), learned)
    found = job.judge(model, proof)
    result = Retrained(request, embedding, learned, proof, head, found, (), 0.0)
    if request.fine_tune != NO_TUNING:
        tuned, result = _fine_tune(job, result, features)
        model = model if tuned is None else _labelled_model(tuned, learned)
    save(model, request.out)
    return replace(result, notes=tuple(job.notes), seconds=time.monotonic() - began)


def _from_scratch(request: RetrainRequest, progress: Progress) -> Retrained:
    """Retrains a network of the catalogue from random weights."""
    refuse_early(request)
    from litesmith.training.teaching.from_scratch import normalised, opened, trained

    began = time.monotonic()
    request, note = normalised(request)
    job = RetrainJob(request, progress)
    job.say(note)
    embedding, learned, proof = opened(job, request)
    made = trained(learned, request, job.watch)
    job.say(made.told)
    model = _labelled_model(made.model, learned)
    found = job.judge(model, proof)
    save(model, request.out)
    return Retrained(
        request,
        embedding,
        learned,
        proof,
        None,
        found,
        tuple(job.notes),
        time.monotonic() - began,
        scratch=made,
    )


def _fine_tune(
    job: RetrainJob, result: Retrained, features: Model
) -> tuple[Model | None, Retrained]:
    """The trained model and the result about it; no model where the head alone is as good."""
    from litesmith.training.teaching.finetune import fine_tuned

    tuned = fine_tuned(features, result.learned, result.request, job.watch)
    job.say(tuned.told)
    if tuned.model is None:
        return None, replace(result, tuned=tuned)
    found = job.judge(tuned.model, result.proof)
    return tuned.model, replace(result, tuned=tuned, found=found, head_alone=result.found)


def refuse_early(request: RetrainRequest) -> None:
    """Raises before any data is read if the request cannot be met."""
    refuse_output(request.out, request.backbone)
    if request.is_scratch:
        _refuse_unlearnable(request)
        return
    _refuse_unknown(request.backbone)
    layers = request.fine_tune
    if layers not in _TUNINGS and not (is_whole(layers) and int(layers) > 0):
        raise BadInput(
            "{fine_tune}: give {tunings} or a number of layers",
            argument("fine_tune", layers),
            ", ".join(_TUNINGS),
        )
    if layers != NO_TUNING and not has_torch():
        raise BadInput("{fine_tune}: {no_torch}", argument("fine_tune", layers), _no_torch())


def _refuse_unknown(backbone: Path) -> None:
    """Refuses a name that belongs neither to a file nor to a network."""
    if backbone.exists() or backbone.suffix == ".tflite":
        return
    found = find_catalogue_room()
    if found is None:
        raise BadInput(
            "{backbone}: no such file; {why_missing}", backbone, why_missing("catalogue")
        )
    networks = ", ".join(family.name for family in found.families())
    raise BadInput(
        "{backbone}: neither a file nor a network of the catalogue; there are {networks}",
        backbone,
        networks,
    )


def _refuse_unlearnable(request: RetrainRequest) -> None:
    """Refuses requests that make no sense, or are impossible, with random initial weights."""
    name = catalogue_room().parse(request.backbone.as_posix()).name
    for option, is_given in (
        ("at", bool(request.at)),
        ("shape", bool(request.shape)),
        ("fine_tune", request.fine_tune not in (NO_TUNING, "all")),
    ):
        if is_given:
            raise BadInput(
                "{option}: {name} learns from random weights, all of it; leave it out",
                argument(option),
                name,
            )
    if not has_torch():
        raise BadInput("{name}: to train it {no_torch}", name, _no_torch())


def load_backbone(request: RetrainRequest) -> Model:
    """The backbone, its float16 weights unpacked; BadInput where it computes with integers."""
    refuse_early(request)
    model = load(request.backbone)
    if request.shape:
        model = Resize(request.shape).apply(model, Context()).model
    model = Fold(float16=True).apply(model, Context()).model
    integers = integer_tensors(model)
    if integers and not (request.fine_tune == NO_TUNING and _has_integer_body(model)):
        raise BadInput(
            "{backbone}: is quantized ({integers}), {way_to_float}",
            request.backbone,
            integers,
            _way_to_float(model),
        )
    if not model.main.inputs:
        raise BadInput("{backbone}: has no input", request.backbone)
    return model


def _has_integer_body(model: Model) -> bool:
    """True for a network of integers behind a float front end, on which a head alone can be
    solved as on any other."""
    computed = (t for op in model.main.ops for t in op.outputs)
    takes_floats = all(tensor.dtype == "float32" for tensor in model.main.inputs)
    return takes_floats and any(tensor.quant is not None for tensor in computed)


def _way_to_float(model: Model) -> str:
    """The sentence that tells how a quantized model can become a backbone."""
    unpacked = Rewrite(unpack=True).apply(model, Context()).model
    if not integer_tensors(unpacked):
        return phrase(
            "in its weights alone; `litesmith apply BACKBONE 'rewrite(unpack=true)' -o "
            "FLOAT` makes it float"
        )
    return phrase(
        "and what rounding took cannot be learned back; give the float file that it was "
        "made from, and quantize the result"
    )


def _without_classes(features: Model, model: Model) -> Model:
    """The cut model with the normalisation of the backbone and none of its class names."""
    stated = metadata(model)
    inputs = [Described(norm, rate=stated.rate) for norm in stated.inputs]
    words = vocabulary_file(model)
    if any(stated.inputs) or stated.rate or words is not None:
        return describe(features, inputs, (), words=words)
    return replace(features, metadata=(), attached=b"")


def _labelled_model(model: Model, learned: Labelled) -> Model:
    """The model with metadata: how its input is prepared, and the names of its classes."""
    described = describe(
        model, _described(model, learned), learned.names, words=_words(model, learned)
    )
    if not _has_clips(learned):
        return described
    features = sound_features(model, learned.data.preparation)
    return state_features(described, "" if features.kind == "wave" else features.text)


def _described(model: Model, learned: Labelled) -> list[Described]:
    """The metadata of the result's input: the normalisation of its training."""
    made = learned.data.preparation
    wanted = picture(model.main.inputs[0])
    if _has_clips(learned):
        return [Described(rate=rate_of(model, made)[0])]
    if len(model.main.inputs) != 1 or wanted is None:
        return [Described(rate=metadata(model).rate) for _ in model.main.inputs]
    norm = made.as_norm()
    if not made.is_chosen or norm.reverse:
        return [Described(channels=wanted.channels)]
    return [Described(StatedNorm(norm.mean, norm.std), wanted.channels)]


def _words(model: Model, learned: Labelled) -> AttachedFile | None:
    """The vocabulary that maps words to numbers; None where there are no texts."""
    if learned.data.rows.words is None:
        return vocabulary_file(model)
    found = vocabulary_of(model, learned.data.preparation.vocab)
    is_tokenizer = found.name.lower().endswith(".json")
    return found._replace(name="tokenizer.json" if is_tokenizer else "vocab.txt")


def _has_clips(learned: Labelled) -> bool:
    return learned.data.rows.averages
