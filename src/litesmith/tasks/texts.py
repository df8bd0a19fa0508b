"""Text: tables of sentences, and their tokens as models take them."""

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from litesmith.errors import BadInput, os_reason
from litesmith.installing import install_command
from litesmith.ir.types import Array, Model, Tensor
from litesmith.phrases import phrase
from litesmith.tasks.class_names import match_classes
from litesmith.tasks.task import (
    Answer,
    Rows,
    Settings,
    Shown,
    Task,
    TaskItems,
    Words,
    model_labels,
)
from litesmith.tflite.read_metadata import AttachedFile, vocabulary_file
from litesmith.type_guards import is_list_or_tuple, is_mapping
from litesmith.units import plain, total_text

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

ENDINGS = (".csv", ".tsv", ".jsonl")
TEXT_COLUMNS = ("text", "sentence", "review", "content")
LABEL_COLUMNS = ("label", "class", "target", "sentiment", "category")


# The largest table or vocabulary that is read.
_MOST_BYTES = 1_000_000_000


def read_bytes(path: Path) -> bytes:
    """The contents of a file, decompressed where necessary."""
    try:
        if path.suffix.lower() != ".gz":
            content = path.read_bytes() if path.stat().st_size <= _MOST_BYTES else None
        else:
            with gzip.open(path) as file:
                content = file.read(_MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        why = os_reason(error) if isinstance(error, OSError) else str(error)
        raise BadInput("{path}: cannot be read ({why})", plain(str(path)), why) from None
    if content is None or len(content) > _MOST_BYTES:
        raise BadInput("{path}: over 1 GB is too much for text", plain(str(path)))
    return content


def ending(path: Path) -> str:
    """The ending of a file in lower case, without that of a compression."""
    inner = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return inner.suffix.lower()


def read_table(path: Path, first: Sequence[str], second: Sequence[str]) -> list[tuple[str, str]]:
    """Two columns of a table: those with the given names, else the column with the longest values
    first and the other second.
    """
    rows = read_records(path, _HEADS)
    names = {name.casefold().strip(): name for name in rows[0]} if rows else {}
    one = next((names[name] for name in first if name in names), None)
    two = next((names[name] for name in second if name in names), None)
    if one is None or two is None:
        raise BadInput(
            "{path}: has the columns {names}; a column {first} and a column {second} are needed",
            plain(str(path)),
            ", ".join(map(plain, names)) or "none",
            first[0],
            second[0],
        )
    return [(row.get(one, ""), row.get(two, "")) for row in rows]


def read_records(path: Path, heads: Collection[str] = ()) -> list[dict[str, str]]:
    """The rows of a table by the names of its columns. With `heads`, a first row that has none of
    these names is data like the others."""
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadInput("{path}: not text in UTF-8", plain(str(path))) from None
    if ending(path) == ".jsonl":
        return _json_rows(text, path)
    return _listed_rows(text, path, heads)


def _json_rows(text: str, path: Path) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            content = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BadInput(
                "{path}: line {number} is no JSON ({error})", plain(str(path)), number, error
            ) from None
        if not is_mapping(content):
            raise BadInput("{path}: line {number} is no object", path, number)
        rows.append({str(key): _as_text(value) for key, value in content.items()})
    return rows


def _as_text(value: object) -> str:
    """A value as text in a table; the elements of a list are separated by |."""
    return "|".join(map(str, value)) if is_list_or_tuple(value) else str(value)


def _listed_rows(text: str, path: Path, heads: Collection[str]) -> list[dict[str, str]]:
    is_tabbed = ending(path) == ".tsv"
    quoting = csv.QUOTE_NONE if is_tabbed else csv.QUOTE_MINIMAL
    try:
        lines = io.StringIO(text, newline="")
        read = csv.reader(lines, delimiter="\t" if is_tabbed else ",", quoting=quoting)
        rows = [row for row in read if row]
    except csv.Error as error:
        raise BadInput("{path}: not a table ({error})", plain(str(path)), error) from None
    if not rows:
        return []
    wide = len(rows[0])
    bad = next((n for n, row in enumerate(rows, 1) if len(row) != wide), None)
    if bad is not None:
        raise BadInput(
            "{path}: row {bad} has {count} columns; the first has {wide}",
            plain(str(path)),
            bad,
            len(rows[bad - 1]),
            wide,
        )
    if not heads or {name.casefold().strip() for name in rows[0]} & {*heads}:
        head, *rows = rows
    else:  # without names, the column with the longest values is the text
        long = max(range(wide), key=lambda n: sum(len(row[n]) for row in rows[:100]))
        heads_in_use = [n for n in range(wide) if n != long]
        head = [
            "text" if n == long else "label" if n == heads_in_use[-1] else str(n)
            for n in range(wide)
        ]
    return [dict(zip(head, row, strict=True)) for row in rows]


_HEADS = {*TEXT_COLUMNS, *LABEL_COLUMNS, "file", "path", "transcript", "audio", "wav"}


# Words to tokens.


class Encoded(NamedTuple):
    """A text as numbers.

    ids, mask, types  one number for each place of the model's input
    spans             the characters that each place stands for, and their text; −1 for none
    cut               whether some words did not fit
    more              the further, overlapping parts of a second text that did not fit
    """

    ids: list[int]
    mask: list[int]
    types: list[int]
    spans: list[tuple[int, int, int]]
    cut: bool = False
    more: "tuple[Encoded, ...]" = ()


Encode = Callable[[str, str | None, int], Encoded]


def encoder(model: Model, settings: Settings) -> Encode:
    """Makes the encoder of text for a model, by the given vocabulary or the model's own."""
    name, content = vocabulary_of(model, settings.vocab)
    if name.lower().endswith(".json"):
        return _encode_by_pieces(_tokenizer(content, name))
    lines = content.decode("utf-8", "replace").splitlines()
    if lines and re.fullmatch(r"\S+\s+\d+", lines[0].strip()):
        return _encode_by_words(lines, name)
    return _encode_by_pieces(_word_pieces(tuple(lines), name))


def vocabulary_of(model: Model, given: str) -> AttachedFile:
    """The vocabulary in the given file, else in the archive at the end of the model's file."""
    if given:
        return AttachedFile(given, read_bytes(Path(given)))
    found = vocabulary_file(model)
    if found is None:
        raise BadInput(
            "the model brings no vocabulary; give its tokenizer.json or its list of word pieces "
            "with {option}",
            "--vocab",
        )
    return found


def _tokenizer(content: bytes, name: str) -> "Tokenizer":
    found = _library()
    try:
        return found.Tokenizer.from_buffer(content)
    except BaseException as error:
        _refuse_ending(error)
        raise BadInput("{name}: no tokenizer ({error})", plain(name), error) from None


def _refuse_ending(error: BaseException) -> None:
    """Re-raises errors that are not the library's. The library's own kinds include exceptions made
    in Rust (pyo3_runtime.PanicException, which no module exports) that are no Exception."""
    if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
        raise error


@cache
def _library() -> ModuleType:
    try:
        import tokenizers
    except ImportError:
        raise BadInput(
            "text needs the package tokenizers: {install}", install_command("tasks")
        ) from None
    return tokenizers


def _word_pieces(lines: tuple[str, ...], name: str) -> "Tokenizer":
    """BERT's tokenizer: words in lower case, split into the pieces of a list."""
    _library()
    from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers, processors
    from tokenizers.models import WordPiece

    vocabulary = {line.rstrip("\r\n"): place for place, line in enumerate(lines)}
    missing = [mark for mark in ("[UNK]", "[CLS]", "[SEP]") if mark not in vocabulary]
    if missing:
        raise BadInput("{name}: no list of word pieces, it lacks {mark}", plain(name), missing[0])
    made = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    is_small = not any(word.isalpha() and word.isupper() for word in vocabulary)
    made.normalizer = normalizers.BertNormalizer(lowercase=is_small)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    made.post_processor = processors.BertProcessing(
        ("[SEP]", vocabulary["[SEP]"]), ("[CLS]", vocabulary["[CLS]"])
    )
    return made


def _encode_by_pieces(tokenizer: "Tokenizer") -> Encode:
    tokenizer.no_padding()
    one_at_a_time = Lock()

    def encode(text: str, second: str | None, length: int) -> Encoded:
        try:
            with one_at_a_time:
                if second is None:
                    tokenizer.enable_truncation(length)  # pyright: ignore
                else:
                    again = _overlap(tokenizer, text, length)
                    parts = {"stride": again, "strategy": "only_second"}
                    tokenizer.enable_truncation(length, **parts)  # pyright: ignore
                found: Encoding = tokenizer.encode(text, second)
        except BaseException as error:
            _refuse_ending(error)
            raise BadInput(
                "a text cannot be cut to {length} places ({error})", length, error
            ) from None
        more = found.overflowing if second is not None else []
        made = [_pad(part, length) for part in (found, *more)]
        return made[0]._replace(cut=bool(found.overflowing), more=tuple(made[1:]))

    return encode


def _overlap(tokenizer: "Tokenizer", first: str, length: int) -> int:
    """The number of tokens of a second text repeated in the next part: a third of all, as BERT's
    authors chose for questions, or half of what the first text leaves."""
    tokenizer.no_truncation()
    room = length - len(tokenizer.encode(first, "").ids)
    if room < 1:
        raise ValueError(phrase("the first of two texts fills them"))
    return min(length // 3, room // 2)


def _pad(found: "Encoding", length: int) -> Encoded:
    pad = [0] * (length - len(found.ids))
    spans = [
        (-1 if part is None else part, *span)
        for part, span in zip(found.sequence_ids, found.offsets, strict=True)
    ]
    return Encoded(
        [*found.ids, *pad],
        [*found.attention_mask, *pad],
        [*found.type_ids, *pad],
        [*spans, *((-1, 0, 0) for _ in pad)],
    )


def _encode_by_words(lines: Sequence[str], name: str) -> Encode:
    """Encodes whole words by their numbers in a list, as TensorFlow's average of word
    vectors does."""
    pairs = [line.split() for line in lines if line.strip()]
    try:
        numbers = {word: int(number) for word, number in pairs}
    except ValueError:
        raise BadInput("{name}: a line is a word and its number", plain(name)) from None
    start, unknown = numbers.get("<START>"), numbers.get("<UNKNOWN>", 0)
    pad = numbers.get("<PAD>", 0)

    def encode(text: str, second: str | None, length: int) -> Encoded:
        words = re.findall(r"[\w']+", f"{text} {second}" if second else text)
        found = [numbers.get(word, numbers.get(word.lower(), unknown)) for word in words]
        found = found if start is None else [start, *found]
        kept = found[:length]
        blank = length - len(kept)
        ids, mask = [*kept, *([pad] * blank)], [*([1] * len(kept)), *([0] * blank)]
        return Encoded(ids, mask, [0] * length, [(-1, 0, 0)] * length, len(found) > length)

    return encode


def token_inputs(model: Model) -> tuple[Tensor, ...]:
    """The inputs of a model that takes tokens; none for other models."""
    inputs = model.main.inputs
    is_text = all(t.dtype in ("int32", "int64") and len(t.shape) == 2 for t in inputs)
    lengths = {t.shape[-1:] for t in inputs}
    return inputs if inputs and is_text and len(inputs) <= 3 and len(lengths) == 1 else ()


def as_arrays(inputs: Sequence[Tensor], encoded: Encoded) -> tuple[Array, ...]:
    """Assigns encoded arrays to inputs by name, otherwise in the order ids, mask, types."""
    columns = {"ids": encoded.ids, "mask": encoded.mask, "types": encoded.types}
    return tuple(
        np.array(columns[role], tensor.dtype)
        for tensor, role in zip(inputs, _roles(inputs), strict=True)
    )


def _roles(inputs: Sequence[Tensor]) -> list[str]:
    roles = [_role(tensor.name.lower()) for tensor in inputs]
    return (
        roles
        if sorted(roles) == sorted({*roles}) and "ids" in roles
        else ["ids", "mask", "types"][: len(inputs)]
    )


def _role(name: str) -> str:
    if "mask" in name:
        return "mask"
    return "types" if "type" in name or "segment" in name else "ids"


# Text classification.


@dataclass(frozen=True)
class TextScorer:
    """Shows the class of a text, and the text where its name is known."""

    names: tuple[str, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    def rows(self, metric: str, answer: Answer) -> Rows:
        raise NotImplementedError(metric)  # top1 is shared with labels that belong to no task

    def tell(self, answer: Answer) -> Shown:
        scores = answer.outputs[0].reshape(-1)
        chosen = int(scores.argmax())
        class_name = self.names[chosen] if chosen < len(self.names) else str(chosen)
        text = self.texts.get(answer.name, "")
        return Shown(f"{class_name}: {text}" if text else class_name)


def _open(source: Path, model: Model, settings: Settings) -> TaskItems:
    inputs = token_inputs(model)
    if not inputs:
        raise BadInput("{source}: the model takes no text as numbers", plain(str(source)))
    rows = read_table(source, TEXT_COLUMNS, LABEL_COLUMNS)
    if not rows:
        raise BadInput("{source}: no rows in it", plain(str(source)))
    labels = model_labels(model, settings)
    classes, notes = _classes([label for _, label in rows], labels, model, source)
    encode, length = encoder(model, settings), inputs[0].shape[-1]

    def encoded(text: str) -> tuple[Array, ...]:
        return as_arrays(inputs, encode(text, None, length))

    cut = sum(encode(text, None, length).cut for text, _ in rows[:_LOOKED_AT])
    if cut:
        note = phrase(
            "texts longer than the model's {length} places, of the first {count}: {cut}; they are "
            "cut",
            length,
            total_text(min(len(rows), _LOOKED_AT)),
            cut,
        )
        notes = (*notes, note)
    names = [f"{source.name}:{number}" for number in range(1, len(rows) + 1)]
    texts = [text for text, _ in rows]
    return TaskItems(
        names,
        classes.__getitem__,
        TextScorer(labels, dict(zip(names, texts, strict=True))),
        arrays=lambda index: encoded(texts[index]),
        notes=notes,
        classes=classes,
        words=Words(texts, encoded),
    )


def class_labels(source: Path) -> tuple[str, ...]:
    """The classes that a table has, in order; empty where they are numbers."""
    labels = {label.strip() for _, label in read_table(source, TEXT_COLUMNS, LABEL_COLUMNS)}
    return () if all(map(_is_number, labels)) else tuple(sorted(labels))


def _is_number(label: str) -> bool:
    return re.fullmatch(r"\d{1,9}", label.strip()) is not None


# The number of texts examined to tell whether texts fit.
_LOOKED_AT = 200


def _classes(
    class_texts: Sequence[str], labels: Sequence[str], model: Model, source: Path
) -> tuple[Array, tuple[str, ...]]:
    """The model's class of each row: numbers as they are; names by its labels, or in order."""
    if all(map(_is_number, class_texts)):
        return np.array([int(label) for label in class_texts], np.int64), ()
    names = sorted({label.strip() for label in class_texts})
    count = model.main.outputs[0].shape[-1] if model.main.outputs else 0
    found = match_classes(names, labels, count, plain(str(source)))
    places = dict(zip(names, found.numbers, strict=True))
    missing = [name for name, place in places.items() if place is None]
    if missing:
        raise BadInput(
            "{source}: the class {name} is none of the model's",
            plain(str(source)),
            plain(missing[0]),
        )
    return np.array([places[label.strip()] for label in class_texts], np.int64), found.notes


def _is_given(source: Path, model: Model, settings: Settings) -> bool:
    del settings
    inputs, outputs = token_inputs(model), model.main.outputs
    chooses = bool(inputs) and len(outputs) == 1 and outputs[0].shape[-1:] != inputs[0].shape[-1:]
    return source.is_file() and ending(source) in ENDINGS and chooses


TEXT = Task(phrase("text classification"), ("top1", "top5"), "text", _open, _is_given)
