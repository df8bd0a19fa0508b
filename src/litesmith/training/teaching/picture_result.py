"""A detector or segmenter that was taught: its score, class by class, and its worst images."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from litesmith._version import VERSION
from litesmith.accuracy.average_precision import each_at_half, of_class, precision_curve
from litesmith.accuracy.evaluate import Evaluation
from litesmith.accuracy.metrics import METRICS, value_of
from litesmith.accuracy.paired import Estimate, Groups, Rows
from litesmith.accuracy.scoring import mean_iou
from litesmith.display import show_html, show_line
from litesmith.evidence.codec import encode_fields
from litesmith.evidence.measurement import Trial
from litesmith.evidence.retrain_record import (
    CurveRow,
    EmbeddingRow,
    MistakeRow,
    RetrainData,
    RetrainInside,
    RetrainResult,
    RetrainSummary,
    RetrainTrial,
)
from litesmith.ir.types import Array
from litesmith.phrases import phrase
from litesmith.tflite.file import digest
from litesmith.timing.host import host
from litesmith.timing.statistics import Row
from litesmith.training.teaching.retrain_request import FineTuned, RetrainRequest
from litesmith.training.teaching.retrain_result import (
    class_rows,
    class_shares,
    describe_fine_tuning,
    share_right,
)
from litesmith.transfer.confusion import Mistake
from litesmith.transfer.feature_maps import FeatureMap
from litesmith.units import number_text, plain, score_text, total_text


@dataclass(frozen=True)
class PictureJudge:
    """How the rows of a metric describe classes and images.

    title     the metric's title
    own       selects the rows of one class, by its number and the number of classes
    wanted    the number of objects of each class, or of images with it, given the number of classes
    alone     the score of each image by itself
    curve     for one class, pairs of recall and precision
    """

    metric: str
    title: str
    own: Callable[[Rows, int, int], Rows]
    wanted: Callable[[Rows, int], Array]
    alone: Callable[[Rows], Rows]
    curve: Callable[[Rows, int], tuple[tuple[float, float], ...]] | None = None


def _own_boxes(rows: Rows, place: int, classes: int) -> Rows:
    del classes
    return of_class(rows, place)


def _wanted_boxes(rows: Rows, classes: int) -> Array:
    return rows[:, 1 : 1 + classes].sum(axis=0)


def _own_pixels(rows: Rows, place: int, classes: int) -> Rows:
    return rows[:, [place, classes + place, 2 * classes + place]]


def _wanted_pixels(rows: Rows, classes: int) -> Array:
    return (rows[:, 2 * classes :] > 0).sum(axis=0)


JUDGES = {
    "ap50": PictureJudge("ap50", "AP50", _own_boxes, _wanted_boxes, each_at_half, precision_curve),
    "miou": PictureJudge("miou", phrase("mean IoU"), _own_pixels, _wanted_pixels, mean_iou),
}


@dataclass(frozen=True, eq=False)
class JudgedPictures:
    """A network's results on images that it did not learn from: the overall metric, and the outcome
    on each image.
    """

    evaluation: Evaluation
    rows: Rows
    groups: Groups
    names: tuple[str, ...]
    judge: PictureJudge

    def of_class(self, place: int) -> Estimate | None:
        """The metric of one class; None where no image has that class."""
        if not self.wanted[place]:
            return None
        own = self.judge.own(self.rows, place, len(self.names))
        return value_of(METRICS[self.judge.metric], own, self.groups)

    @property
    def whole(self) -> Estimate | None:
        """AP over the overlaps from 0.5 to 0.95; None where no boxes are predicted."""
        is_detector = self.judge.metric == "ap50"
        return value_of(METRICS["ap"], self.rows, self.groups) if is_detector else None

    @property
    def wanted(self) -> tuple[int, ...]:
        """The number of objects of each class, or of images with it."""
        return tuple(map(int, self.judge.wanted(self.rows, len(self.names))))

    @property
    def worst(self) -> list[int]:
        """The images with missed objects or false predictions, worst first."""
        alone = self.judge.alone(self.rows)
        return [p for p in np.argsort(alone, kind="stable").tolist() if alone[p] < 1]


@dataclass(frozen=True, eq=False, repr=False)
class TaughtNetwork:
    """A detector or segmenter, and its score on images that it did not learn from.

    value, low, high, n  AP50 or mean IoU, its 95 % interval, and the number of images
    frozen               the same of the head on the unchanged backbone, where that was trained too
    """

    request: RetrainRequest
    maps: tuple[FeatureMap, ...]
    names: tuple[str, ...]
    learned: tuple[int, ...]
    pictures: int
    sources: tuple[str, str]
    preparation: str
    found: JudgedPictures
    mistakes: tuple[Mistake, ...]
    notes: tuple[str, ...]
    seconds: float
    tuned: FineTuned | None = None
    frozen: JudgedPictures | None = None
    report: Path | None = None

    __repr__ = show_line
    _repr_html_ = show_html

    @property
    def sentence(self) -> str:
        """The result in one line."""
        return phrase(
            "{name}: {metric} {value} on {count} pictures not learned from",
            plain(self.out.name),
            self.found.judge.title,
            score_text(self.value, "share", self.low, self.high),
            total_text(self.n),
        )

    def to_rows(self) -> list[Row]:
        """One row a class, for a data frame."""
        return class_rows(self.names, self.found.wanted, self.found.of_class)

    def to_json(self) -> dict[str, object]:
        """Everything that a program wants to know, as `--json` prints it."""
        page = None if self.report is None else str(self.report)
        return {"schema": 1, **encode_fields(self.as_result()), "report": page}

    @property
    def out(self) -> Path:
        return self.request.out

    @property
    def value(self) -> float:
        return self.found.evaluation.value

    @property
    def low(self) -> float:
        return self.found.evaluation.low

    @property
    def high(self) -> float:
        return self.found.evaluation.high

    @property
    def n(self) -> int:
        return self.found.evaluation.n

    @property
    def classes(self) -> tuple[str, ...]:
        return self.names

    @property
    def digest(self) -> str:
        return digest(self.out)

    def as_result(self) -> RetrainResult:
        """The result as a program needs it; the record and --json share these fields."""
        tensors = ", ".join(one.tensor.name for one in self.maps)
        strides = ", ".join(str(one.stride) for one in self.maps)
        return RetrainResult(
            out=str(self.out),
            right=share_right(self.found.evaluation),
            n=self.n,
            classes=self.names,
            metric=self.found.judge.metric,
            per_class=class_shares(self.names, self.found.wanted, self.found.of_class),
            confusion=(),
            learned=self.pictures,
            embedding=EmbeddingRow(
                tensors,
                sum(one.tensor.shape[-1] for one in self.maps),
                phrase("maps of the strides {strides}", strides),
            ),
            preparation=self.preparation,
            strength=None,
            fine_tuned=self.tuned
            and describe_fine_tuning(
                self.request, self.tuned, (self.frozen or self.found).evaluation
            ),
            from_scratch=None,
            digest=self.digest,
            seconds=round(self.seconds, 3),
            notes=self.notes,
        )

    def as_summary(self, command: str) -> RetrainSummary:
        """The record of a folder."""
        return RetrainSummary(
            schema=1,
            version=VERSION,
            command=command,
            model=self.out.name,
            backbone=self.request.backbone.name,
            backbone_digest=digest(self.request.backbone),
            data=RetrainData(
                *self.sources,
                is_part=self.sources[0] == self.sources[1],
                learned_counts=self.learned,
                judged_counts=self.found.wanted,
            ),
            head=(),
            environment=host().facts(),
            result=self.as_result(),
        )

    def as_inside(self) -> RetrainInside:
        """The bulky part: the worst pictures, and the curves."""
        curve = self.found.judge.curve
        return RetrainInside(
            tuple(
                MistakeRow(one.name, one.true, one.said, one.confidence, one.thumbnail)
                for one in self.mistakes
            ),
            tuple(
                CurveRow(name, curve(self.found.rows, place))
                for place, name in enumerate(self.names)
                if curve is not None and self.found.wanted[place]
            ),
        )

    def list_trials(self) -> tuple[Trial[RetrainTrial], ...]:
        """The head on the original backbone, and the result of training all of it."""
        training, parent = self.request.training, digest(self.request.backbone)
        task = self.request.preparation.task
        recipe = f"{task}(epochs={number_text(training.epochs)}, seed={training.seed})"
        own = self.digest
        alone, is_tuned = self.frozen or self.found, self.tuned is not None
        is_kept = self.tuned is not None and self.tuned.model is not None
        head = Trial(
            recipe,
            parent,
            "" if is_kept else own,
            (replace(alone.evaluation.measurement, model_digest="" if is_kept else own),),
            details=RetrainTrial("head alone"),
        )
        if not is_tuned:
            return (head,)
        more = Trial(
            f"{recipe[:-1]}, fine_tune={self.request.fine_tune})",
            parent,
            own if is_kept else "",
            (self.found.evaluation.measurement,) if is_kept else (),
            reason="" if self.tuned is None else self.tuned.told,
            details=RetrainTrial("fine-tuned"),
        )
        return (head, more)
