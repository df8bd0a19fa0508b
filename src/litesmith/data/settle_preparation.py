"""The complete preparation of samples: as the user states, as the model states, or guessed."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from litesmith.data.answers import Outputs, outputs_of
from litesmith.data.guess_norm import (
    MOST_TRIED,
    NOT_SURE,
    Choice,
    TriedItems,
    from_model,
    guess,
    norms_to_try,
    possible_offsets,
    right_offset,
    tried_count,
    with_norm,
)
from litesmith.data.images import in_parallel, picture
from litesmith.data.preparation import NORMS, Preparation
from litesmith.data.samples import Sample, are_pixels, is_real
from litesmith.ir.types import Model
from litesmith.phrases import phrase
from litesmith.tasks.task import Answer, Graded
from litesmith.units import percent_text, plain

if TYPE_CHECKING:
    pass

from litesmith.data.opened_samples import OpenedSamples

# The best choice is certain where the next one scores below this share of its score; none is chosen
# where the best scores below the second number.
_CLEARLY, _LEAST = 0.9, 0.02


def settle_preparation(data: OpenedSamples, has_images: bool) -> OpenedSamples:
    """A few of the samples with a complete preparation: the user's settings, the model's statement,
    or a guess; their notes name the choices."""
    given = data.preparation if has_images else replace(data.preparation, resize="", crop=0.0)
    few = data.spread(MOST_TRIED)
    pixels = _pixel_inputs(few)
    offsets = _offsets(data)
    notes: tuple[str, ...] = ()
    if pixels and not given.is_chosen:
        choice = from_model(data.model, pixels[0])
        notes = choice.notes if choice is not None else ()
        if choice is None or not choice.preparation.is_chosen:
            choice = _guess_norm(few, offsets)
            notes += choice.notes
        given = with_norm(given, choice.preparation)
        few = _with_others(few, pixels[1:], given)
    notes += few.notes
    return _with_offset(replace(few, preparation=given, notes=notes), offsets)


def _with_others(few: OpenedSamples, places: Sequence[int], usual: Preparation) -> OpenedSamples:
    """Adds the normalisation of further images, where the model states another one for them."""
    choices = [(place, from_model(few.model, place)) for place in places]
    known = [(place, c) for place, c in choices if c is not None and c.preparation.is_chosen]
    names = [plain(few.model.main.inputs[place].name) for place, _ in known]
    return replace(
        few,
        others=tuple((place, with_norm(usual, c.preparation)) for place, c in known),
        notes=tuple(
            phrase("input {n!r}: {notes}", n, c.notes[-1])
            for n, (_, c) in zip(names, known, strict=True)
        ),
    )


def _guess_norm(few: OpenedSamples, offsets: Sequence[int]) -> Choice:
    few = _in_memory(few.spread(tried_count(few.model)))
    wanted = picture(few.model.main.inputs[0])
    if few.rows.scorer is not None and wanted is not None:

        def prepared(name: str) -> list[Sample]:
            norm = with_norm(few.preparation, Preparation(norm=name))
            return list(replace(few, preparation=norm))

        names = list(norms_to_try(wanted))
        choice = _guess_by_task(few.model, few.rows.scorer, names, prepared)
        if choice is not None:
            return choice
    pixels = [few.rows.read(index)[0][0] for index in few.chosen]
    classes = None if few.rows.classes is None else few.rows.classes[list(few.chosen)]
    return guess(few.model, TriedItems(pixels, classes), offsets)


def _offsets(data: OpenedSamples) -> tuple[int, ...]:
    if data.preparation.label_offset is not None:
        return (data.preparation.label_offset,)
    is_known = data.rows.settled or data.rows.misfit
    return (0,) if is_known else possible_offsets(data.model, data.rows.classes)


def _with_offset(few: OpenedSamples, offsets: Sequence[int]) -> OpenedSamples:
    offset, notes = offsets[0], few.notes
    if len(offsets) > 1 and few.rows.classes is not None:
        first = few.rows.classes[list(few.chosen[:: few.batch])]
        offset, is_sure = right_offset(few.model, few, first)
        notes += _offset_notes(offset, is_sure, len(first))
    made = replace(few.preparation, label_offset=offset)
    return replace(few, preparation=made, notes=notes)


def _offset_notes(offset: int, is_sure: bool, count: int) -> tuple[str, ...]:
    """Notes about the label offset that was found; none about the usual offset where it is
    certain."""
    told = phrase("the model has one class more than the labels, taken for a background class")
    unsure = "" if is_sure else phrase(", which is not sure (tried on {count} samples)", count)
    if offset:
        return (
            phrase(
                "label offset 1: {told}{unsure}; if that is wrong: --label-offset 0", told, unsure
            ),
        )
    return (
        (phrase("label offset 0{unsure}; if that is wrong: --label-offset 1", unsure),)
        if unsure
        else ()
    )


def _in_memory(data: OpenedSamples) -> OpenedSamples:
    """The same samples with all items read at once, several at a time."""
    kept = dict(zip(data.chosen, in_parallel(data.rows.read, data.chosen), strict=True))
    return replace(data, rows=replace(data.rows, read=kept.__getitem__))


def _pixel_inputs(data: OpenedSamples) -> list[int]:
    """The numbers of the inputs that take pixels to be scaled."""
    arrays, _ = data.rows.read(data.chosen[0])
    pairs = enumerate(zip(data.model.main.inputs, arrays, strict=True))
    return [place for place, (t, array) in pairs if is_real(t) and are_pixels(t, array)]


def _guess_by_task(
    model: Model,
    scorer: object,
    names: Sequence[str],
    prepared: Callable[[str], Sequence[Sample]],
) -> Choice | None:
    """Chooses one of the named normalisations, under which `prepared` gives the samples; None where
    the scorer cannot grade, or every grade is too low.
    """
    if not isinstance(scorer, Graded):
        return None

    def grade(sample: Sample, answers: Sequence[Outputs]) -> float:
        if sample.label is None:
            return 0.0
        return scorer.goodness(Answer(answers[0], sample.label, sample.inputs, sample.name))

    found = {
        name: float(np.mean(list(outputs_of([model], prepared(name), grade)))) for name in names
    }
    best, following = sorted(found, key=lambda name: -found[name])[:2]
    if not found[best] > _LEAST:
        return None
    note = phrase(
        "normalisation {name} ({formula}) guessed{sure}: the task is done {share} right on a few "
        "samples, next best {following} {share2}; to pin it: --norm {name}",
        best,
        NORMS[best].formula,
        "" if found[following] < _CLEARLY * found[best] else NOT_SURE,
        percent_text(found[best]),
        following,
        percent_text(found[following]),
    )
    return Choice(Preparation(norm=best), (note,))
