"""A detector that was taught: how good it is, class by class, and its worst pictures."""

import base64
import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from litesmith._version import VERSION
from litesmith.accuracy.average_precision import each_at_half, of_class, precision_curve
from litesmith.accuracy.evaluate import Evaluation
from litesmith.accuracy.metrics import METRICS, value_of
from litesmith.accuracy.paired import Estimate, Groups, Rows
from litesmith.display import show_html, show_line
from litesmith.evidence.codec import encode_fields
from litesmith.evidence.measurement import Trial
from litesmith.evidence.retraining import (
    ClassShare,
    CurveRow,
    EmbeddingRow,
    FineTuning,
    MistakeRow,
    RetrainData,
    RetrainInside,
    RetrainResult,
    RetrainSummary,
    RetrainTrial,
    ShareRight,
)
from litesmith.ir.types import Array
from litesmith.phrases import phrase
from litesmith.tasks.task import Shown
from litesmith.tflite.file import digest
from litesmith.timing.host import host
from litesmith.timing.statistics import Row
from litesmith.training.retrain_request import FineTuned, Request
from litesmith.transfer.confusion import Mistake
from litesmith.transfer.feature_maps import FeatureMap
from litesmith.units import number_text, plain, score_text, total_text

_THUMB, _QUALITY = 160, 75
_TRUE, _SAID = (40, 200, 90), (220, 40, 40)


@dataclass(frozen=True, eq=False)
class Judged:
    """A detector on pictures that it has not seen: AP50 of all, and what became of each picture."""

    evaluation: Evaluation
    rows: Rows
    groups: Groups
    names: tuple[str, ...]

    def of_class(self, place: int) -> Estimate | None:
        """AP50 of one class; None where there is none of it to find."""
        if not self.wanted[place]:
            return None
        return value_of(METRICS["ap50"], of_class(self.rows, place), self.groups)

    @property
    def whole(self) -> Estimate:
        """AP over the overlaps from 0.5 to 0.95."""
        return value_of(METRICS["ap"], self.rows, self.groups)

    @property
    def wanted(self) -> tuple[int, ...]:
        """How many things of each class there are to find."""
        return tuple(map(int, self.rows[:, 1 : 1 + len(self.names)].sum(axis=0)))

    @property
    def worst(self) -> list[int]:
        """The pictures with something missing or told that is not there, the worst first."""
        alone = each_at_half(self.rows)
        return [p for p in np.argsort(alone, kind="stable").tolist() if alone[p] < 1]


@dataclass(frozen=True, eq=False, repr=False)
class TaughtDetector:
    """A detector and how good it is on pictures that it has not seen.

    value, low, high, n  AP50, its 95 % interval, and how many pictures they are
    frozen               the same of the head on the backbone as it was, where more was trained
    """

    request: Request
    maps: tuple[FeatureMap, ...]
    names: tuple[str, ...]
    learned: tuple[int, ...]
    pictures: int
    sources: tuple[str, str]
    preparation: str
    found: Judged
    mistakes: tuple[Mistake, ...]
    notes: tuple[str, ...]
    seconds: float
    tuned: FineTuned | None = None
    frozen: Judged | None = None
    report: Path | None = None

    __repr__ = show_line
    _repr_html_ = show_html

    @property
    def sentence(self) -> str:
        """What it comes to, in a line."""
        return phrase(
            "{name}: AP50 {value} on {count} pictures not learned from",
            plain(self.out.name),
            score_text(self.value, "share", self.low, self.high),
            total_text(self.n),
        )

    def to_rows(self) -> list[Row]:
        """One row a class, for a data frame."""
        shares = map(self.found.of_class, range(len(self.names)))
        return [
            _row(name, count, share)
            for name, count, share in zip(self.names, self.found.wanted, shares, strict=True)
        ]

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
        """What a program wants to know: the same in the record and with --json."""
        tensors = ", ".join(one.tensor.name for one in self.maps)
        strides = ", ".join(str(one.stride) for one in self.maps)
        return RetrainResult(
            out=str(self.out),
            right=_share(self.found.evaluation),
            n=self.n,
            classes=self.names,
            metric="ap50",
            per_class=tuple(self._class_shares()),
            confusion=(),
            learned=self.pictures,
            embedding=EmbeddingRow(
                tensors,
                sum(one.tensor.shape[-1] for one in self.maps),
                phrase("maps of the strides {strides}", strides),
            ),
            preparation=self.preparation,
            strength=None,
            fine_tuned=self._fine_tuning(),
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
        return RetrainInside(
            tuple(
                MistakeRow(one.name, one.true, one.said, one.confidence, one.thumbnail)
                for one in self.mistakes
            ),
            tuple(
                CurveRow(name, precision_curve(self.found.rows, place))
                for place, name in enumerate(self.names)
                if self.found.wanted[place]
            ),
        )

    def list_trials(self) -> tuple[Trial[RetrainTrial], ...]:
        """The head on the backbone as it was, and what training of it all made of that."""
        training, parent = self.request.training, digest(self.request.backbone)
        recipe = f"detector(epochs={number_text(training.epochs)}, seed={training.seed})"
        own = self.digest
        if self.frozen is None:
            found = self.found.evaluation.measurement
            return (Trial(recipe, parent, own, (found,), details=RetrainTrial("head alone")),)
        more = f"{recipe[:-1]}, fine_tune={self.request.fine_tune})"
        pairs = (
            (self.frozen.evaluation, "", recipe, phrase("head alone")),
            (self.found.evaluation, own, more, phrase("fine-tuned")),
        )
        return tuple(
            Trial(
                what,
                parent,
                whose,
                (replace(value.measurement, model=whose),),
                details=RetrainTrial(name),
            )
            for value, whose, what, name in pairs
        )

    def _class_shares(self) -> Iterator[ClassShare]:
        for place, name in enumerate(self.names):
            value = self.found.of_class(place)
            share = None if value is None else ShareRight(value.value, value.low, value.high)
            yield ClassShare(name, self.found.wanted[place], share)

    def _fine_tuning(self) -> FineTuning | None:
        tuned = self.tuned
        if tuned is None:
            return None
        alone = (self.frozen or self.found).evaluation
        return FineTuning(
            layers=self.request.fine_tune,
            is_kept=tuned.model is not None,
            before=tuned.before,
            after=tuned.after,
            held_out=tuned.held,
            told=tuned.told,
            head_alone=_share(alone),
        )


def _row(name: str, count: int, share: Estimate | None) -> Row:
    row: Row = {"class": name, "n": count}
    return row if share is None else row | share._asdict()


def _share(value: Evaluation) -> ShareRight:
    return ShareRight(value.value, value.low, value.high)


def draw_mistake(name: str, pixels: Array, wanted: Shown, told: Shown) -> Mistake:
    """A picture with the true boxes in green and those of the detector in red."""
    image = Image.fromarray(pixels)
    image.thumbnail((_THUMB, _THUMB))
    draw = ImageDraw.Draw(image)
    sides = (image.width, image.height) * 2
    for shown, colour in ((wanted, _TRUE), (told, _SAID)):
        for mark in shown.marks:
            box = [value * side for value, side in zip(mark.box, sides, strict=True)]
            draw.rectangle(box, outline=colour, width=2)
    content = io.BytesIO()
    image.save(content, "JPEG", quality=_QUALITY)
    nothing = phrase("nothing")
    surest = max((float(m.words.rpartition(" ")[2]) for m in told.marks), default=0.0)
    return Mistake(
        name,
        ", ".join(mark.words for mark in wanted.marks) or nothing,
        ", ".join(mark.words.rpartition(" ")[0] for mark in told.marks[:3]) or nothing,
        surest,
        base64.b64encode(content.getvalue()).decode(),
    )
