"""What a task is: how a source becomes items, how a model's outputs become answers, and how these
are scored."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from litesmith.errors import BadInput
from litesmith.ir.types import Array, Model
from litesmith.tflite.read_metadata import metadata

Rows = NDArray[np.float64]  # (items, numbers)
Outputs = Sequence[Array]


class Settings(NamedTuple):
    """A user's settings for a task.

    decode       the layout of the outputs; "" to be recognised
    class_names  a file with the model's classes, or letters, one per line; "" for its own
    vocab        a tokenizer.json, or a list of word pieces; "" for the model's own
    features     how sound becomes the model's input, as in logmel:80; "" to be recognised
    size         height and width of the model's input image; None where it takes no image
    rate         samples per second of the model's input sound; 0 if it is not stated
    """

    decode: str = ""
    class_names: str = ""
    vocab: str = ""
    features: str = ""
    size: tuple[int, int] | None = None
    rate: int = 0


class Answer(NamedTuple):
    """A model's answer to a sample.

    outputs  real numbers, items first
    label    the labels of the items, items first
    inputs   the model's inputs
    """

    outputs: Outputs
    label: Array
    inputs: Sequence[Array] = ()
    name: str = ""


class Scorer(Protocol):
    """Scores answers; can be sent to another process."""

    def rows(self, metric: str, answer: Answer) -> Rows:
        """The statistics of a metric of the task: one row per item."""
        ...

    def tell(self, answer: Answer) -> "Shown":
        """The answer to the first item, as it is shown to people."""
        ...


@runtime_checkable
class Graded(Protocol):
    """A scorer that can also grade an answer by one number, whatever the metric. The normalisation
    that a model was made for is recognised by it.
    """

    def goodness(self, answer: Answer) -> float:
        """From 0 for useless to 1 for right."""
        ...


class Mark(NamedTuple):
    """Something drawn on an image: a box in shares of it, with words."""

    box: tuple[float, float, float, float]
    words: str
    is_point: bool = False


class Shown(NamedTuple):
    """An answer in a form that can be displayed.

    text   words, for texts and transcripts
    marks  boxes and points on the image
    mask   the class of every pixel
    """

    text: str = ""
    marks: tuple[Mark, ...] = ()
    mask: Array | None = None


Place = tuple[float, float, float, float]  # left, top, right, bottom in shares

# The first number of the label row that gives the image's place in the input.
_PLACE = -2.0


def with_place(label: Array, place: Place) -> Array:
    """Adds a row to a label: the part of the input that the image fills."""
    row = np.zeros((1, label.shape[1]))
    row[0, :5] = (_PLACE, *place)
    return np.concatenate([label, row])


def is_placed(label: Array) -> bool:
    """Whether a label says which part of the input the image fills."""
    return bool((label[:, 0] == _PLACE).any())


def in_image(points: Rows, label: Array) -> Rows:
    """Points (n, 2) in shares of the input, in shares of the image that fills a part of it."""
    if not is_placed(label):
        return points
    left, top, right, bottom = label[label[:, 0] == _PLACE][0, 1:5]
    return (points - (left, top)) / (right - left, bottom - top)


class Words(NamedTuple):
    """Items that are texts: the text of each, and the encoding of any text for the model."""

    texts: Sequence[str]
    arrays: Callable[[str], tuple[Array, ...]]


@dataclass(frozen=True, eq=False)
class TaskItems:
    """A source as a task sees it.

    names   the origin of each item
    label   the label of an item, by number
    scorer  scores the answers
    files   the files of the items, where they are images or clips
    arrays  the inputs of an item that is neither image nor clip
    more    the inputs of further calls, for an item longer than the model's input
    classes the model's class of each item, where labels are classes
    notes   decisions made for the user, and what was left out because it was wrong
    sizes   width and height of each image as its annotations state them
    words   the texts of the items, where they are texts
    placed  a label, and the part of the input that the image fills -> the label for that place
    """

    names: Sequence[str]
    label: Callable[[int], Array]
    scorer: Scorer
    files: Sequence[Path] = ()
    arrays: Callable[[int], tuple[Array, ...]] | None = None
    notes: tuple[str, ...] = ()
    classes: Array | None = None
    sizes: Sequence[tuple[int, int] | None] = ()
    placed: Callable[[Array, Place], Array] = with_place
    more: Callable[[int], Sequence[tuple[Array, ...]]] | None = None
    words: Words | None = None


class Task(NamedTuple):
    """One kind of work that models do.

    metrics   the names of its metrics, the usual one first
    item      what an item is: "image", "clip" or "text"; "" where it may be anything
    open      a source, a model and settings -> its items; None where labels are numbers, which any
              source of data may have
    is_given  whether a source and a model look like this task
    """

    title: str
    metrics: tuple[str, ...]
    item: str = ""
    open: Callable[[Path, Model, Settings], TaskItems] | None = None
    is_given: Callable[[Path, Model, Settings], bool] | None = None


def model_labels(model: Model, settings: Settings) -> tuple[str, ...]:
    """The model's classes: from the given file, else from the model."""
    return read_list(Path(settings.class_names)) if settings.class_names else metadata(model).labels


def read_list(path: Path) -> tuple[str, ...]:
    """The lines of a text file."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput("{path}: no list of classes, one a line ({error})", path, error) from None
    while lines and not lines[-1]:
        lines.pop()
    return tuple(line.strip("\r\n") for line in lines)


def one_by_one(answer: Answer) -> list[Answer]:
    """The answers to the items of a batch, each without the batch dimension; outputs without that
    dimension belong to the only item.
    """
    count = len(answer.label)
    if count == 1:
        outputs = [o[0] if o.ndim and len(o) == 1 else o for o in answer.outputs]
        return [Answer(outputs, answer.label[0], answer.inputs, answer.name)]
    return [
        Answer(
            [output[n] for output in answer.outputs],
            answer.label[n],
            [given[n : n + 1] for given in answer.inputs],
            answer.name,
        )
        for n in range(count)
    ]


def pad_rows(rows: Sequence[Rows]) -> Rows:
    """Joins rows of several widths into one array, filled up with NaN."""
    width = max(row.shape[1] for row in rows)
    made = np.full((sum(map(len, rows)), width), np.nan)
    start = 0
    for row in rows:
        made[start : start + len(row), : row.shape[1]] = row
        start += len(row)
    return made
