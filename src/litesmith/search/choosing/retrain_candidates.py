"""Backbones that learn a user's classes before they are compared, and what they are judged by."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from litesmith.data.preparation import Preparation
from litesmith.data.sources import Given
from litesmith.errors import BadInput, LitesmithError
from litesmith.ir.types import Model
from litesmith.passes.core.step import Context
from litesmith.passes.quantizing.integer_graph import integer_tensors
from litesmith.passes.tidy.fold import Fold
from litesmith.phrases import phrase
from litesmith.progress import Note, Status
from litesmith.search.choosing.candidates import ModelCandidate
from litesmith.search.choosing.shared_data import Judge, Source
from litesmith.training.retrain_request import HELD_OUT, Request
from litesmith.training.retraining import carry_out
from litesmith.transfer.embedding import embedding_of
from litesmith.transfer.labelled import open_beside, open_labelled, parted, sources_of

Tell = Callable[[str, float], None]  # what is going on, and the share of it that is done


class Lesson(NamedTuple):
    """What is learned: the data, and other data to judge by, where there is some."""

    source: Source
    val: Given | None = None

    def open(self, candidate: ModelCandidate) -> Judge:
        """The data of a candidate that has not learned yet; raises where it could not, or where the
        data teaches nothing."""
        try:
            _refuse_unable(candidate.model)
            asked = self.source.preparation
            return self.judge(candidate, asked if asked.is_chosen else replace(asked, norm="raw"))
        except LitesmithError as error:
            raise type(error)(f"{candidate.name}: {error}") from None

    def key(self, judge: Judge) -> tuple[str, ...]:
        """Equal where a candidate would learn the same."""
        assert judge.calibration is not None
        return judge.calibration.digest, judge.data.digest, self.source.preparation.text

    def judge(self, candidate: ModelCandidate, preparation: Preparation | None = None) -> Judge:
        """What a candidate has not learned from, and what it has."""
        given, proof, _ = sources_of(self.source.given, self.val)
        asked = self.source.preparation if preparation is None else preparation
        found = open_labelled(given, candidate.model, asked, self.source.samples)
        if proof is None:
            learned, beside = parted(found, 1 / HELD_OUT)
        else:
            beside = open_beside(proof, candidate.model, found)
            known = {*beside.data.digests}
            digests = found.data.digests
            learned = found.at(row for row, one in enumerate(digests) if one not in known)
        return Judge(beside.data, learned.data)

    def teach(
        self, candidate: ModelCandidate, place: Path, tell: Tell
    ) -> tuple[str, tuple[str, ...]]:
        """Writes the candidate with a head for the classes of the data; tells the recipe, and what
        was chosen for the user."""
        request = Request(
            candidate.file,
            self.source.given,
            place,
            self.val,
            preparation=self.source.preparation,
            samples=self.source.samples,
        )

        def progress(event: Status | Note) -> None:
            if isinstance(event, Status):
                what = phrase("retraining {name}: {what}", candidate.name, event.what)
                tell(what, event.done / event.of if event.of else 0.0)

        notes = carry_out(request, progress).notes
        if not candidate.is_taught:
            notes = (
                *notes,
                phrase("only its head has learned: the weights before it are random numbers"),
            )
        return "retrain", notes


def _refuse_unable(model: Model) -> None:
    """Raises where a model has nothing that a head could read."""
    if integer_tensors(Fold(float16=True).apply(model, Context()).model):
        raise BadInput(
            "is quantized, and only float models learn; leave it out, and --quantized makes int8 "
            "forms of the others"
        )
    try:
        embedding_of(model)
    except BadInput:
        raise BadInput(
            "has no vector before a classifier that could be seen; leave it out, or make a "
            "candidate of it with `litesmith retrain --at`"
        ) from None
