"""Questions: the words of a paragraph that answer one."""

import json
import re
import string
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litesmith.errors import BadInput
from litesmith.ir.types import Array, Model
from litesmith.phrases import phrase
from litesmith.tasks.task import Answer, Outputs, Rows, Settings, Shown, Task, TaskItems, one_by_one
from litesmith.tasks.texts import as_arrays, encoder, ending, read_bytes, token_inputs
from litesmith.type_guards import is_list_or_tuple, is_mapping
from litesmith.units import plain

# An answer has at most so many places.
_LONGEST = 30

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_MARKS = str.maketrans("", "", string.punctuation)


class Question(NamedTuple):
    """A question about a paragraph, and what answers it; nothing where it has no answer."""

    name: str
    words: str
    paragraph: str
    answers: tuple[str, ...]


def normal_form(text: str) -> str:
    """An answer as answers are compared: small letters without marks, articles and spare spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_MARKS)).split())


def exact(answer: str, right: Sequence[str]) -> float:
    """1 where an answer is one of the right ones."""
    return float(any(normal_form(answer) == normal_form(one) for one in right or ("",)))


def overlap(answer: str, right: Sequence[str]) -> float:
    """The F1 of the words that an answer shares with the right one that it is most like."""
    return max(_f1(normal_form(answer).split(), normal_form(one).split()) for one in right or ("",))


def _f1(found: list[str], wanted: list[str]) -> float:
    if not found or not wanted:
        return float(found == wanted)
    both = sum((Counter(found) & Counter(wanted)).values())
    return 2 * both / (len(found) + len(wanted))


def read_squad(path: Path) -> list[Question]:
    """The questions of a file as SQuAD has them."""
    try:
        told = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise BadInput("{path}: not JSON ({error})", plain(str(path)), error) from None
    try:
        found = list(_questions(told))
    except (KeyError, TypeError, AttributeError) as error:
        raise BadInput(
            "{path}: not as SQuAD has it: data, paragraphs, qas ({error})", plain(str(path)), error
        ) from None
    if not found:
        raise BadInput("{path}: no question in it", plain(str(path)))
    return found


def _questions(told: object) -> Iterator[Question]:
    for article in _list(told, "data"):
        for paragraph in _list(article, "paragraphs"):
            text = _text(paragraph, "context")
            for one in _list(paragraph, "qas"):
                answers = tuple(_text(answer, "text") for answer in _list(one, "answers"))
                yield Question(_text(one, "id"), _text(one, "question"), text, answers)


def _list(told: object, key: str) -> Sequence[object]:
    if not is_mapping(told) or not is_list_or_tuple(told.get(key)):
        raise TypeError(phrase("{key} is no list", key))
    return told[key]  # pyright: ignore[reportReturnType]


def _text(told: object, key: str) -> str:
    if not is_mapping(told) or not isinstance(told.get(key), str | int):
        raise TypeError(phrase("{key} is no text", key))
    return str(told[key])


@dataclass(frozen=True)
class QuestionScorer:
    """Scores the words that a model marks; `ends_first` where its first output is that of ends."""

    ends_first: bool = False

    def rows(self, metric: str, answer: Answer) -> Rows:
        score = exact if metric == "em" else overlap
        told = [(json.loads(str(one.label)), one) for one in one_by_one(answer)]
        return np.array([[score(self._words(fact, one), fact["answers"])] for fact, one in told])

    def _words(self, fact: dict[str, object], one: Answer) -> str:
        spans = np.array(fact["spans"], np.int64).reshape(-1, 2)
        starts, ends = _scores(one.outputs, len(spans))
        starts, ends = (ends, starts) if self.ends_first else (starts, ends)
        first, last = best_span(starts, ends, spans[:, 0] >= 0)
        text = str(fact["paragraph"])
        return text[spans[first, 0] : spans[last, 1]] if first >= 0 else ""

    def tell(self, answer: Answer) -> Shown:
        one = one_by_one(answer)[0]
        return Shown(self._words(json.loads(str(one.label)), one))


def _scores(outputs: Outputs, length: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How likely an answer begins, and ends, at each place: two outputs, or one with both."""
    both = [o for o in outputs if o.size == 2 * length]
    if both:
        pair = (
            both[0].reshape(length, 2) if both[0].shape[-1] == 2 else both[0].reshape(2, length).T
        )
        return pair[:, 0].astype(np.float64), pair[:, 1].astype(np.float64)
    found = [o.reshape(-1).astype(np.float64) for o in outputs if o.size == length]
    if len(found) < 2:
        shapes = ", ".join(str(o.shape) for o in outputs)
        raise BadInput(
            "answers need scores of their start and their end; outputs are {shapes}", shapes
        )
    return found[0], found[1]


def best_span(
    starts: NDArray[np.float64], ends: NDArray[np.float64], is_text: NDArray[np.bool_]
) -> tuple[int, int]:
    """The start and end in the text with the highest sum, no longer than an answer is; −1 for
    none."""
    allowed = is_text[:, None] & is_text[None, :]
    allowed &= np.triu(np.ones_like(allowed)) & ~np.triu(np.ones_like(allowed), _LONGEST)
    sums = np.where(allowed, starts[:, None] + ends[None, :], -np.inf)
    sums = np.where(np.isnan(sums), -np.inf, sums)
    if not sums.size or not np.isfinite(sums.max()):
        return -1, -1
    first, last = np.unravel_index(int(sums.argmax()), sums.shape)
    return int(first), int(last)


def _open(source: Path, model: Model, settings: Settings) -> TaskItems:
    inputs = token_inputs(model)
    if not inputs:
        raise BadInput("{source}: the model takes no text as numbers", plain(str(source)))
    questions = read_squad(source)
    encode, length = encoder(model, settings), inputs[0].shape[-1]

    def arrays(index: int) -> tuple[Array, ...]:
        one = questions[index]
        return as_arrays(inputs, encode(one.words, one.paragraph, length))

    def label(index: int) -> Array:
        one = questions[index]
        spans = [
            (a, b) if part == 1 else (-1, -1)
            for part, a, b in encode(one.words, one.paragraph, length).spans
        ]
        fact = {"paragraph": one.paragraph, "answers": one.answers, "spans": spans}
        return np.array(json.dumps(fact))

    names = [one.name for one in questions]
    first = model.main.outputs[0].name.lower() if model.main.outputs else ""
    return TaskItems(names, label, QuestionScorer("end" in first), arrays=arrays)


def _is_given(source: Path, model: Model, settings: Settings) -> bool:
    del settings
    is_json = source.is_file() and ending(source) == ".json"
    return is_json and bool(token_inputs(model)) and b'"paragraphs"' in read_bytes(source)[:100_000]


QUESTIONS = Task(phrase("questions"), ("f1", "em"), "text", _open, _is_given)
