"""Question answering: the words of a paragraph that answer a question."""

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
from litesmith.tasks.texts import Encoded, as_arrays, encoder, ending, read_bytes, token_inputs
from litesmith.type_guards import is_list_or_tuple, is_mapping
from litesmith.units import plain, total_text

# The largest number of tokens in an answer.
_LONGEST = 30

# The number of paragraphs examined to tell whether paragraphs fit.
_LOOKED_AT = 200

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_MARKS = str.maketrans("", "", string.punctuation)


class Question(NamedTuple):
    """A question about a paragraph with its answers; none where it has no answer."""

    name: str
    words: str
    paragraph: str
    answers: tuple[str, ...]


def normal_form(text: str) -> str:
    """An answer as it is compared: in lower case, without punctuation, articles and extra
    spaces.
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_MARKS)).split())


def exact(answer: str, right: Sequence[str]) -> float:
    """1 where an answer equals one of the right ones."""
    return float(any(normal_form(answer) == normal_form(one) for one in right or ("",)))


def overlap(answer: str, right: Sequence[str]) -> float:
    """The F1 of the words that an answer shares with the most similar right answer."""
    return max(_f1(normal_form(answer).split(), normal_form(one).split()) for one in right or ("",))


def _f1(found: list[str], wanted: list[str]) -> float:
    if not found or not wanted:
        return float(found == wanted)
    both = sum((Counter(found) & Counter(wanted)).values())
    return 2 * both / (len(found) + len(wanted))


def read_squad(path: Path) -> list[Question]:
    """The questions of a file as SQuAD has them."""
    try:
        content = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise BadInput("{path}: not JSON ({error})", plain(str(path)), error) from None
    try:
        found = list(_questions(content))
    except (KeyError, TypeError, AttributeError) as error:
        raise BadInput(
            "{path}: not as SQuAD has it: data, paragraphs, qas ({error})", plain(str(path)), error
        ) from None
    if not found:
        raise BadInput("{path}: no question in it", plain(str(path)))
    return found


def _questions(content: object) -> Iterator[Question]:
    for article in _list(content, "data"):
        for paragraph in _list(article, "paragraphs"):
            text = _text(paragraph, "context")
            for one in _list(paragraph, "qas"):
                answers = tuple(_text(answer, "text") for answer in _list(one, "answers"))
                yield Question(_text(one, "id"), _text(one, "question"), text, answers)


def _list(content: object, key: str) -> Sequence[object]:
    if not is_mapping(content) or not is_list_or_tuple(content.get(key)):
        raise TypeError(phrase("{key} is no list", key))
    return content[key]  # pyright: ignore[reportReturnType]


def _text(content: object, key: str) -> str:
    if not is_mapping(content) or not isinstance(content.get(key), str | int):
        raise TypeError(phrase("{key} is no text", key))
    return str(content[key])


@dataclass(frozen=True)
class QuestionScorer:
    """Scores the words that a model marks; `ends_first` where its first output marks ends."""

    ends_first: bool = False

    def rows(self, metric: str, answer: Answer) -> Rows:
        score = exact if metric == "em" else overlap
        pairs = [(json.loads(str(one.label)), one) for one in one_by_one(answer)]
        return np.array([[score(self._words(fact, one), fact["answers"])] for fact, one in pairs])

    def _words(self, fact: dict[str, object], one: Answer) -> str:
        """The best answer of all parts of the paragraph; none where the first place, which stands
        for "no answer", scores higher in every part, and the data has questions without an answer.
        """
        parts = np.array(fact["spans"], np.int64)  # (parts, places, 2)
        starts, ends = _scores(one.outputs, *parts.shape[:2])
        starts, ends = (ends, starts) if self.ends_first else (starts, ends)
        best, text = -np.inf, ""
        for start, end, spans in zip(starts, ends, parts, strict=True):
            first, last = best_span(start, end, spans[:, 0] >= 0)
            if first >= 0 and start[first] + end[last] > best:
                best = start[first] + end[last]
                text = str(fact["paragraph"])[spans[first, 0] : spans[last, 1]]
        is_none = bool(fact["may_be_none"]) and (starts[:, 0] + ends[:, 0]).min() > best
        return "" if is_none else text

    def tell(self, answer: Answer) -> Shown:
        one = one_by_one(answer)[0]
        return Shown(self._words(json.loads(str(one.label)), one))


def _scores(
    outputs: Outputs, parts: int, length: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How likely an answer begins, and ends, at each place of each part (parts, places): two
    outputs, or one with both."""
    both = next((o for o in outputs if o.size == 2 * parts * length), None)
    if both is not None:
        is_last = both.shape[-1] == 2
        shape = (parts, length, 2) if is_last else (parts, 2, length)
        pair = np.moveaxis(both.reshape(shape).astype(np.float64), 2 if is_last else 1, 0)
        return pair[0], pair[1]
    size = parts * length
    found = [o.reshape(parts, length).astype(np.float64) for o in outputs if o.size == size]
    if len(found) < 2:
        shapes = ", ".join(str(o.shape) for o in outputs)
        raise BadInput(
            "answers need scores of their start and their end; outputs are {shapes}", shapes
        )
    return found[0], found[1]


def best_span(
    starts: NDArray[np.float64], ends: NDArray[np.float64], is_text: NDArray[np.bool_]
) -> tuple[int, int]:
    """The start and end in the text with the highest sum of scores, within the longest answer; −1
    for none.
    """
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
    unanswered = sum(not one.answers for one in questions)
    encode, (batch, length) = encoder(model, settings), inputs[0].shape

    def parts(index: int) -> list[Encoded]:
        first = encode(questions[index].words, questions[index].paragraph, length)
        return [first, *first.more] if batch == 1 else [first]

    def arrays(index: int) -> tuple[Array, ...]:
        return as_arrays(inputs, parts(index)[0])

    def more(index: int) -> list[tuple[Array, ...]]:
        return [as_arrays(inputs, part) for part in parts(index)[1:]]

    def label(index: int) -> Array:
        one = questions[index]
        spans = [
            [(a, b) if part == 1 else (-1, -1) for part, a, b in found.spans]
            for found in parts(index)
        ]
        known = {"paragraph": one.paragraph, "answers": one.answers}
        return np.array(json.dumps({**known, "spans": spans, "may_be_none": unanswered > 0}))

    long = sum(encode(q.words, q.paragraph, length).cut for q in questions[:_LOOKED_AT])
    names = [one.name for one in questions]
    first = model.main.outputs[0].name.lower() if model.main.outputs else ""
    return TaskItems(
        names,
        label,
        QuestionScorer("end" in first),
        arrays=arrays,
        notes=tuple(_notes(len(questions), unanswered, long, length, batch)),
        more=more,
    )


def _notes(count: int, unanswered: int, long: int, length: int, batch: int) -> Iterator[str]:
    tried = total_text(min(count, _LOOKED_AT))
    if long and batch == 1:
        yield phrase(
            "paragraphs longer than the model's {length} places, of the first {count}: {long}; "
            "they are read in parts that overlap",
            length,
            tried,
            long,
        )
    elif long:
        yield phrase(
            "paragraphs longer than the model's {length} places, of the first {count}: {long}; "
            "they are cut, as a model that takes {batch} at a time reads no parts",
            length,
            tried,
            long,
            batch,
        )
    if unanswered:
        yield phrase(
            "questions without an answer: {unanswered} of {count}; a model says so by the scores "
            "of its first place",
            total_text(unanswered),
            total_text(count),
        )


def _is_given(source: Path, model: Model, settings: Settings) -> bool:
    del settings
    return source.is_file() and ending(source) == ".json" and bool(token_inputs(model))


QUESTIONS = Task(phrase("questions"), ("f1", "em"), "text", _open, _is_given)
