"""The data of a retraining: opened, prepared, and parted into what is learned and what judges."""

from dataclasses import replace

from litesmith.data.preparation import NORMS
from litesmith.data.unusable import tells_of_unusable
from litesmith.errors import BadInput
from litesmith.ir.types import Model
from litesmith.phrases import phrase
from litesmith.progress import Note, Progress, Status
from litesmith.training.retrain_request import HELD_OUT, Request
from litesmith.training.settings import Look, look_status
from litesmith.transfer.backbone_norm import settled
from litesmith.transfer.confusion import Confusion, confusion
from litesmith.transfer.head import Embedded, embed
from litesmith.transfer.labelled import (
    Labelled,
    Sources,
    ambiguous,
    listed_names,
    open_beside,
    open_labelled,
    parted,
    sources_of,
)
from litesmith.units import percent_text, total_text

# Classes that differ in size by more than this are said to.
_UNEVEN = 3.0


class RetrainJob:
    """A retraining at work: its data, its notes, and the callback that is told of them."""

    def __init__(self, request: Request, progress: Progress) -> None:
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
        found = self._found(sources, features)
        if sources.proof is None:
            learned, proof = self._split(found)
        else:
            proof = open_beside(sources.proof, features, found)
            self.say(*filter(tells_of_unusable, proof.data.notes))
            learned = self._without_shared(found, proof)
            self._say_unjudged(proof)
        learned = self._settled(learned, features, whole)
        made = learned.data.preparation
        return learned, replace(proof, data=replace(proof.data, preparation=made))

    def _found(self, sources: Sources, features: Model) -> Labelled:
        """The data with classes, its normalisation left open unless it is asked for."""
        asked = self._request.preparation
        found = open_labelled(
            sources.learned,
            features,
            asked if asked.is_chosen else replace(asked, norm="raw"),
            self._request.samples,
        )
        self.say(*found.data.notes, *ambiguous(found))
        return found

    def _settled(self, opened: Labelled, features: Model, whole: Model) -> Labelled:
        """The items to learn from with nothing left open in their preparation."""
        asked = self._request.preparation
        if not asked.is_chosen:
            unset = replace(opened.data.preparation, norm="")
            opened = replace(opened, data=replace(opened.data, preparation=unset))
        self.show(phrase("choosing the normalisation"))
        found, notes = settled(opened, features, asked, whole)
        self.say(*notes)
        made = found.data.preparation
        if made.as_norm().reverse:
            name = made.norm or next(n for n, norm in NORMS.items() if norm.reverse)
            told = phrase("metadata has no word for BGR: say --norm {name} with the result", name)
            self.say(told)
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
        learned, proof = parted(found, 1 / HELD_OUT)
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
        """How a model does on what it has not seen."""
        return confusion(model, proof, lambda done, of: self.show("judging", done, of))
