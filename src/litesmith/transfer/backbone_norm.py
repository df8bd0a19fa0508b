"""The normalisation of a backbone, where it is not stated: the one whose embeddings separate the
classes best.
"""

from dataclasses import replace

import numpy as np

from litesmith.anatomy.footprint import op_macs
from litesmith.data.answers import outputs_of
from litesmith.data.guess_norm import (
    Choice,
    TriedItems,
    from_model,
    guess,
    normalized_samples,
    norms_to_try,
    tried_count,
    with_norm,
)
from litesmith.data.images import in_parallel, picture
from litesmith.data.preparation import NORMS, Preparation
from litesmith.data.samples import are_pixels, is_real
from litesmith.ir.softmax_scores import ends_in_softmax
from litesmith.ir.types import Array, Model
from litesmith.numeric.softmax_regression import CrossValidated, cross_validate
from litesmith.phrases import phrase
from litesmith.transfer.head import Embedded, examples_of, folds_of
from litesmith.transfer.labelled_data import Labelled
from litesmith.units import percent_text, plain

# The number of items to try, and how much to compute for each normalisation: in total about ten
# seconds of one core.
_MOST_TRIED, _LEAST_TRIED, _MOST_MACS = 160, 40, 100e9
_STRENGTHS, _FOLDS = (1.0, 0.1), 4

# The smallest lead with which the best normalisation counts as sure.
_CLEARLY = 0.03


def settle_norm(
    found: Labelled, model: Model, given: Preparation, whole: Model
) -> tuple[Labelled, tuple[str, ...]]:
    """The data with a complete preparation, and the decisions made for the user.

    `whole` is the model from which `model` was cut: a classifier reveals its normalisation by how
    certain it is of its own classes.
    """
    if given.is_chosen or not _are_images(found, model):
        return found, ()
    choice = from_model(model, 0)
    notes = choice.notes if choice is not None else ()
    if choice is None or not choice.preparation.is_chosen:
        choice = _best_norm(found, model) if _is_mute(whole) else _most_certain_norm(found, whole)
        notes = (*notes, *choice.notes)
    data = found.data
    made = with_norm(data.preparation, choice.preparation)
    return replace(found, data=replace(data, preparation=made)), notes


def _is_mute(whole: Model) -> bool:
    """True where a model outputs no class probabilities."""
    outputs = whole.main.outputs
    return not outputs or not ends_in_softmax(whole.main, outputs[0])


def _most_certain_norm(found: Labelled, whole: Model) -> Choice:
    """The normalisation with which a classifier is most certain, whatever its classes are."""
    some = _pick_items(found, tried_count(whole))
    pixels = [arrays[0] for arrays, _ in in_parallel(found.data.rows.read, some)]
    return guess(whole, TriedItems(pixels, None), (0,))


def _are_images(found: Labelled, model: Model) -> bool:
    tensor = model.main.inputs[0]
    arrays, _ = found.data.rows.read(found.data.chosen[0])
    return len(arrays) == 1 and is_real(tensor) and are_pixels(tensor, arrays[0])


def _best_norm(found: Labelled, model: Model) -> Choice:
    """The normalisation with the best head on some of the items."""
    tensor = model.main.inputs[0]
    wanted = picture(tensor)
    assert wanted is not None
    macs = sum(op_macs(op) or 0 for op in model.main.ops)
    affordable = int(_MOST_MACS / max(macs, 1))
    some = _pick_items(found, min(_MOST_TRIED, max(_LEAST_TRIED, affordable)))
    pixels = [arrays[0] for arrays, _ in in_parallel(found.data.rows.read, some)]
    labels = found.data.rows.classes
    assert labels is not None
    digests = tuple(found.data.rows.digest(place) for place in some)
    scores: dict[str, CrossValidated] = {}
    for name in norms_to_try(wanted):
        features = _features(model, pixels, name)
        items = Embedded(features, labels[some], digests, np.array(some))
        examples = examples_of(items, len(found.names))
        tried = cross_validate(examples, folds_of(items, _FOLDS), _STRENGTHS)
        scores[name] = min(tried, key=lambda one: one.loss)
    return _describe_choice(scores, len(some), plain(tensor.name))


def _pick_items(found: Labelled, count: int) -> list[int]:
    """Picks some items, equally many of every class, by their contents."""
    each = max(2, count // len(found.names))
    by_class: dict[int, list[tuple[str, int]]] = {}
    data = found.data
    for digest, label, place in zip(data.digests, found.labels, data.chosen, strict=True):
        by_class.setdefault(int(label), []).append((digest, place))
    return [place for own in by_class.values() for _, place in sorted(own)[:each]]


def _features(model: Model, pixels: list[Array], name: str) -> Array:
    samples = normalized_samples(model, name, pixels)
    answers = outputs_of([model], samples, lambda _, outputs: outputs[0][0][:1].copy())
    return np.nan_to_num(np.concatenate(list(answers)).astype(np.float64))


def _describe_choice(scores: dict[str, CrossValidated], count: int, name: str) -> Choice:
    order = sorted(scores, key=lambda one: scores[one].loss)
    best, *others = order
    shown = ", ".join(f"{one} {percent_text(scores[one].accuracy)}" for one in order[:3])
    least = scores[best].accuracy - _CLEARLY
    sure = phrase(", which is not sure") if any(scores[o].accuracy > least for o in others) else ""
    text = phrase(
        "normalisation {best} ({formula}) for input {name!r}: heads tell {count} images "
        "apart best with it ({shown}){sure}; --norm says otherwise",
        best,
        NORMS[best].formula,
        name,
        count,
        shown,
        sure,
    )
    return Choice(Preparation(norm=best), (text,))
