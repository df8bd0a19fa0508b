"""`retrain` for images in which positions matter: a light head on a backbone's maps learns to find
objects, or to predict the class of every pixel."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from litesmith.accuracy.evaluate import evaluate_all
from litesmith.arguments import argument
from litesmith.data.answers import outputs_of
from litesmith.data.guess_norm import from_model, with_norm
from litesmith.data.images import decode, in_parallel, picture
from litesmith.data.opened_samples import OpenedSamples
from litesmith.data.preparation import Preparation
from litesmith.data.sample_splits import row_groups
from litesmith.data.sources import Given, open_data
from litesmith.errors import BadInput, CannotApply
from litesmith.installing import install_command
from litesmith.ir.types import Array, Model
from litesmith.numeric.arrays import array_on_disk
from litesmith.phrases import phrase
from litesmith.progress import Note, Progress, Status
from litesmith.tasks.segmentation import Surveyed
from litesmith.tasks.task import Answer
from litesmith.tflite.file import save
from litesmith.tflite.read_metadata import StatedNorm
from litesmith.tflite.write_metadata import Described, describe
from litesmith.training.recipe_context import has_torch
from litesmith.training.settings import HELD_OUT as STOPPING
from litesmith.training.settings import Look, look_status
from litesmith.training.teaching.picture_result import JUDGES, JudgedPictures, TaughtNetwork
from litesmith.training.teaching.picture_tasks import PICTURE_TASKS, PictureTask
from litesmith.training.teaching.retrain_request import HELD_OUT, RetrainRequest
from litesmith.transfer.backbone_norm import settle_norm
from litesmith.transfer.confusion import MOST_MISTAKES, Mistake
from litesmith.transfer.embedding import cut_at, embedding_of
from litesmith.transfer.feature_maps import FeatureMap, feature_maps
from litesmith.transfer.labelled_data import open_labelled

if TYPE_CHECKING:
    from litesmith.training.teaching.picture_training import TrainedHead

# The smallest training set.
FEWEST = 16

# The number of images by which the normalisation is chosen if it is not stated; and the usual one.
_MOST_TRIED, _USUAL_NORM = 160, "tf"

# Images of more bytes than this lie in a temporary file.
_IN_MEMORY = 2_000_000_000


class Pictures(NamedTuple):
    """The data to learn from, and the data to judge by."""

    learned: OpenedSamples
    proof: OpenedSamples
    sources: tuple[str, str]


@dataclass(frozen=True)
class PictureJob:
    """The training of a network of images: the request, the backbone, and the progress callback."""

    request: RetrainRequest
    whole: Model
    progress: Progress

    @property
    def task(self) -> PictureTask:
        return PICTURE_TASKS[self.request.preparation.task]

    def carry_out(self) -> TaughtNetwork:
        """Opens, teaches, writes and judges."""
        began, request, task = monotonic(), self.request, self.task
        maps = feature_maps(self.whole, task.strides)
        survey = task.survey(request.data, request.preparation)
        names = survey.names
        start = task.build(self.whole, maps, len(names), request.training.seed)
        preparation, notes = self._prepare(survey)
        open_model = task.finish(start, _strides(maps), True)
        described = _described(open_model, names, preparation)
        pictures = self._part(described, preparation)
        notes += tuple(n for n in pictures.learned.notes if n not in notes)
        strides = ", ".join(map(str, _strides(maps)))
        notes = (phrase("learns from maps of the strides {strides}", strides), *notes)
        for note in notes:
            self.progress(Note(note))
        trained = self._teach(start, maps, names, pictures.learned)
        model = self._finish(trained.model, maps, names, preparation)
        save(model, request.out)
        found = self._judge(model, pictures.proof, names)
        frozen = None
        if trained.frozen is not None:
            alone = self._finish(trained.frozen, maps, names, preparation)
            frozen = self._judge(alone, pictures.proof, names)
        return TaughtNetwork(
            request,
            maps,
            names,
            self._counts(pictures.learned, len(names)),
            len(pictures.learned.chosen),
            pictures.sources,
            preparation.text,
            found,
            self._mistakes(model, pictures.proof, found),
            (*notes, *trained.told),
            monotonic() - began,
            tuned=trained.tuned,
            frozen=frozen,
        )

    def _prepare(self, survey: Surveyed) -> tuple[Preparation, tuple[str, ...]]:
        """The preparation with a normalisation: the requested one, the backbone's, or the one that
        best distinguishes the classes of the largest objects."""
        preparation = replace(self.request.preparation, crop=0.0)
        if preparation.is_chosen:
            return preparation, ()
        stated = from_model(self.whole, 0)
        if stated is not None and stated.preparation.is_chosen:
            return with_norm(preparation, stated.preparation), stated.notes
        self.progress(Status(phrase("choosing the normalisation")))
        try:
            found, notes = self._guess(survey)
        except (BadInput, CannotApply):
            usual = Preparation(norm=_USUAL_NORM)
            note = phrase(
                "normalisation {norm} ({formula}) assumed: the data does not tell; --norm says "
                "otherwise",
                _USUAL_NORM,
                usual.as_norm().formula,
            )
            return with_norm(preparation, usual), (note,)
        return with_norm(preparation, found), notes

    def _guess(self, survey: Surveyed) -> tuple[Preparation, tuple[str, ...]]:
        wanted = picture(self.whole.main.inputs[0])
        assert wanted is not None
        sample_paths = survey.main[:: max(1, len(survey.main) // _MOST_TRIED)]
        whole = Preparation(crop=0.0)
        pixels = list(in_parallel(lambda one: decode(one[0], wanted, whole), sample_paths))
        arrays = {
            "x": np.stack(pixels),
            "y": np.unique([number for _, number in sample_paths], return_inverse=True)[1],
        }
        embedding = embedding_of(self.whole)
        features = cut_at(self.whole, embedding.tensor)
        found = open_labelled(arrays, features, Preparation(norm="raw"))
        unset = replace(found.data.preparation, norm="")
        opened = replace(found, data=replace(found.data, preparation=unset))
        chosen, notes = settle_norm(opened, features, Preparation(), self.whole)
        return chosen.data.preparation, notes

    # The data.

    def _part(self, model: Model, preparation: Preparation) -> Pictures:
        request = self.request
        found = _opened(request.data, model, preparation, request.samples)
        if request.val is None:
            learned, proof = _split(found, HELD_OUT)
            sources = (found.source, found.source)
        else:
            proof = _opened(request.val, model, preparation, None)
            known = {*proof.digests}
            kept = [n for n, one in enumerate(found.digests) if one not in known]
            learned, sources = found.at(kept), (found.source, proof.source)
        if len(learned.chosen) < FEWEST:
            raise BadInput(
                "{source}: {count} pictures are too few to learn from; give {fewest} or more",
                found.source,
                len(learned.chosen),
                FEWEST,
            )
        return Pictures(learned, proof, sources)

    # The training.

    def _teach(
        self, start: Model, maps: Sequence[FeatureMap], names: tuple[str, ...], data: OpenedSamples
    ) -> "TrainedHead":
        from litesmith.training.teaching.finetune import training_key
        from litesmith.training.teaching.picture_course import PictureSamples
        from litesmith.training.teaching.picture_training import PictureLesson

        pixels, labels = self._gather(data)
        samples = PictureSamples(pixels, labels, *_split_places(data, STOPPING), names)
        key = training_key(start, data, self.request)
        norm = data.preparation.as_norm()
        strides = _strides(maps)
        lesson = PictureLesson(samples, self.task, strides, norm, self.request, key, self._watch)
        return lesson.train(start)

    def _watch(self, look: Look) -> None:
        self.progress(look_status(look))

    def _gather(self, data: OpenedSamples) -> tuple[Array, Array]:
        """All images as bytes, with their labels."""
        wanted = picture(data.model.main.inputs[0])
        assert wanted is not None
        shape = (len(data.chosen), wanted.height, wanted.width, wanted.channels)
        is_small = int(np.prod(shape)) <= _IN_MEMORY
        store = np.empty(shape, np.uint8) if is_small else array_on_disk(shape, np.dtype(np.uint8))
        labels: list[Array] = []
        for place, (arrays, label) in enumerate(in_parallel(data.rows.read, data.chosen)):
            assert label is not None
            store[place] = arrays[0]
            labels.append(label)
            self.progress(Status(phrase("reading pictures"), place + 1, len(data.chosen)))
        return store, np.stack(labels)

    # The result.

    def _finish(
        self, model: Model, maps: Sequence[FeatureMap], names: Sequence[str], made: Preparation
    ) -> Model:
        finished = self.task.finish(model, _strides(maps), self.request.raw)
        return _described(finished, names, made)

    def _counts(self, data: OpenedSamples, classes: int) -> tuple[int, ...]:
        """The number of objects of each class, or of images with it."""
        label = data.rows.label
        assert label is not None
        each = [self.task.count(label(index), classes) for index in data.chosen]
        return tuple(np.sum(each, axis=0).tolist())

    def _judge(self, model: Model, proof: OpenedSamples, names: tuple[str, ...]) -> JudgedPictures:
        data = _opened_like(proof, model)
        (found,) = evaluate_all([model], data, metric=self.task.metric, progress=self.progress)
        assert found.rows is not None
        groups = row_groups(data, len(found.rows))
        return JudgedPictures(found, found.rows, groups, names, JUDGES[self.task.metric])

    def _mistakes(
        self, model: Model, proof: OpenedSamples, found: JudgedPictures
    ) -> tuple[Mistake, ...]:
        data = _opened_like(proof, model)
        worst = found.worst[:MOST_MISTAKES]
        scorer = data.rows.scorer
        assert scorer is not None
        some = data.at(worst)
        answers = outputs_of([model], some.one_by_one(), lambda sample, outs: (sample, outs[0]))
        made: list[Mistake] = []
        for index, (sample, outputs) in zip(some.chosen, answers, strict=True):
            assert sample.label is not None
            answer = scorer.tell(Answer(outputs, sample.label))
            (pixels,), label = data.rows.read(index)
            assert label is not None
            made.append(self.task.draw(sample.name, pixels, label, answer, found.names))
        return tuple(made)


def _described(model: Model, names: Sequence[str], made: Preparation) -> Model:
    norm = made.as_norm()
    said = Described(None if norm.reverse else StatedNorm(norm.mean, norm.std), channels=3)
    return describe(model, [said], names)


def _opened(
    source: Given, model: Model, preparation: Preparation, samples: int | None
) -> OpenedSamples:
    data = open_data(source, model, preparation=preparation, samples=samples)
    stored = data.items.stored
    assert stored is not None, "pictures of these tasks are files"
    return stored


def _opened_like(proof: OpenedSamples, model: Model) -> OpenedSamples:
    """The same images for a model with another output layout."""
    again = _opened(Path(proof.source), model, proof.preparation, None)
    places = {name: n for n, name in enumerate(again.rows.names)}
    chosen = tuple(places[name] for name in proof.names)
    return replace(again, chosen=chosen)


def _split(data: OpenedSamples, parts: int) -> tuple[OpenedSamples, OpenedSamples]:
    rest, held = _split_places(data, parts)
    return data.at(rest.tolist()), data.at(held.tolist())


def _split_places(data: OpenedSamples, parts: int) -> tuple[Array, Array]:
    """Splits the places of images, one in `parts` apart from the others: by content, copies
    together."""
    groups, first = data.groups.tolist(), dict[int, str]()
    for group, digest in zip(groups, data.digests, strict=True):
        first[group] = min(digest, first.get(group, digest))
    order = sorted(first, key=lambda group: first[group])
    chosen = {*order[: max(1, len(order) // parts)]}
    places = np.arange(len(groups))
    is_held = np.array([group in chosen for group in groups])
    return places[~is_held], places[is_held]


def _strides(maps: Sequence[FeatureMap]) -> tuple[int, ...]:
    return tuple(one.stride for one in maps)


def refuse_untrainable(request: RetrainRequest) -> None:
    """Raises before any data is read where no head for images can be taught."""
    for option, is_given in (("at", bool(request.at)), ("balance", request.balance)):
        if is_given:
            raise BadInput("{option}: is for classifiers; leave it out", argument(option))
    if not has_torch():
        raise BadInput(
            "{task}: needs torch, which is not installed; {install}",
            argument("task", request.preparation.task),
            install_command("train"),
        )
