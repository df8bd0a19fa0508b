"""Tasks through `evaluate`, each beside a scorer written for the check."""

import json
import re
import string
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import litesmith
from examples.tasks.make import (
    RATE,
    WORDS,
    detector,
    listener,
    masks,
    point_finder,
    points,
    question_model,
    save_wave,
    scenes,
    segmenter,
    speech,
    spoken,
    squad,
    text_model,
    vocabulary,
)
from litesmith.data.preparation import read_preparation
from litesmith.data.shipping import piece
from litesmith.data.sources import open_data
from litesmith.errors import BadInput
from litesmith.tasks.keypoints import alikeness
from litesmith.tasks.questions import best_span, exact, overlap
from litesmith.tasks.sound import Features, compute_features, read_features, read_sound
from litesmith.tasks.speech import plain_words
from litesmith.tasks.task import Settings
from litesmith.tasks.texts import encoder
from litesmith.tflite.file import load, save

SOUND = "logmel:20,rate=8000"


# Speech.


def edits(found: list[str], wanted: list[str]) -> int:
    """The fewest words to change, by the book."""
    row = list(range(len(wanted) + 1))
    for n, one in enumerate(found, 1):
        last, row[0] = row[0], n
        for m, other in enumerate(wanted, 1):
            last, row[m] = row[m], min(row[m] + 1, row[m - 1] + 1, last + (one != other))
    return row[-1]


def test_word_errors_are_those_of_the_book(tmp_path: Path) -> None:
    said = ["ab ba", "aab", "b a b", "a", "ba ab ba b"]
    wanted = ["ab ba", "aab b", "b b", "b a", "ab ab b"]
    folder = speech(tmp_path / "clips", said, wanted)
    save(listener(), tmp_path / "m.tflite")
    letters = str(folder / "letters.txt")
    found = litesmith.evaluate(tmp_path / "m.tflite", folder, class_names=letters, features=SOUND)
    wrong = sum(edits(a.split(), b.split()) for a, b in zip(said, wanted, strict=True))
    assert (found.metric, found.unit) == ("wer", "share")
    assert found.value == pytest.approx(wrong / sum(len(b.split()) for b in wanted))
    told = litesmith.evaluate(
        tmp_path / "m.tflite", folder, class_names=letters, features=SOUND, metric="cer"
    )
    wrong = sum(edits(list(a), list(b)) for a, b in zip(said, wanted, strict=True))
    assert told.value == pytest.approx(wrong / sum(map(len, wanted)))


def test_more_errors_than_words_have_an_interval(tmp_path: Path) -> None:
    folder = speech(tmp_path / "clips", ["a b a b", "b a a"], ["ba", "b"])
    save(listener(), tmp_path / "m.tflite")
    found = litesmith.evaluate(
        tmp_path / "m.tflite", folder, class_names=str(folder / "letters.txt"), features=SOUND
    )
    assert found.value > 1
    assert 0 <= found.low <= found.value <= found.high


def test_a_rate_that_is_only_assumed_is_hinted_at(tmp_path: Path) -> None:
    folder = speech(tmp_path / "clips", ["ab ba", "b a b"])
    save(listener(), tmp_path / "m.tflite")
    letters = str(folder / "letters.txt")
    found = litesmith.evaluate(
        tmp_path / "m.tflite", folder, class_names=letters, features="logmel:20"
    )
    hint = "--features logmel:20,window=25,hop=10,rate=8000"
    note = next(note for note in found.notes if hint in note)
    assert "the clips have 8,000 samples a second" in note
    features = hint.partition(" ")[2]
    again = litesmith.evaluate(
        tmp_path / "m.tflite", folder, class_names=letters, features=features
    )
    assert again.value == 0 < found.value
    assert not any("--features" in note for note in again.notes)


def test_words_are_compared_without_marks() -> None:
    assert plain_words("  Don't, STOP - now!  ") == "don't stop now"


def test_features_are_typed_as_they_are_told() -> None:
    assert read_features("logmel", 40) == Features("logmel", 40)
    assert read_features("mfcc:13,window=32,hop=20", 40) == Features("mfcc", 13, 32.0, 20.0)
    for wrong in ("mel", "logmel:", "logmel:8,hop=0", "logmel:8,size=3"):
        with pytest.raises(BadInput, match="features"):
            read_features(wrong, 40)


def test_a_tone_is_loud_in_its_band_alone() -> None:
    low, high = (compute_features(spoken(c * 4), RATE, Features("logmel", 20)) for c in "a ")
    assert low.max(axis=0).argmax() < high.max(axis=0).argmax()
    assert compute_features(spoken("a"), RATE, Features("mfcc", 13)).shape[1] == 13
    assert compute_features(np.zeros(3), RATE, Features("logmel", 8)).shape == (1, 8)


def test_flac_is_read_as_wav_is(tmp_path: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    save_wave(tmp_path / "a.wav", spoken("ab"))
    values, rate = read_sound(tmp_path / "a.wav")
    soundfile.write(tmp_path / "a.flac", values, rate)
    again, same = read_sound(tmp_path / "a.flac")
    assert same == rate
    assert again == pytest.approx(values, abs=1e-4)


# Text.


@pytest.fixture
def text(tmp_path: Path) -> Path:
    save(text_model(), tmp_path / "m.tflite")
    vocabulary(tmp_path)
    return tmp_path


ROWS = [("the film is good", 1), ("bad, bad film", 0), ("good good bad", 0), ("The GOOD one.", 1)]


@pytest.mark.parametrize("form", ["tsv", "csv", "jsonl", "names.tsv", "bare.tsv"])
def test_a_table_in_any_form(text: Path, form: str) -> None:
    import csv
    import json

    place = text / f"rows.{form.rpartition('.')[2]}"
    names = {0: "no", 1: "yes"} if form.startswith("names") else {0: "0", 1: "1"}
    rows = [(line, names[label]) for line, label in ROWS]
    if form == "jsonl":
        lines = [json.dumps({"label": label, "sentence": line}) for line, label in rows]
        place.write_text("\n".join(lines))
    else:
        with place.open("w", newline="") as file:
            head = [] if form.startswith("bare") else [("text", "label")]
            between = "," if form == "csv" else "\t"
            quoting = csv.QUOTE_MINIMAL if form == "csv" else csv.QUOTE_NONE
            csv.writer(file, delimiter=between, quoting=quoting).writerows([*head, *rows])
    found = litesmith.evaluate(text / "m.tflite", place, vocab=str(text / "vocab.txt"))
    assert (found.metric, found.value, found.n) == ("top1", 0.75, 4)


def test_a_vocabulary_is_asked_for(text: Path) -> None:
    (text / "rows.tsv").write_text("good\t1\nbad\t0\n")
    with pytest.raises(BadInput, match=r"brings no vocabulary; give its tokenizer\.json"):
        litesmith.evaluate(text / "m.tflite", text / "rows.tsv")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("text,label\ngood,1,2\n", "row 2 has 3 columns; the first has 2"),
        ("text,what\ngood,1\n", "a column text and a column label are needed"),
        ("text,label\n", "a column text and a column label are needed"),
        ("text,label\ngood,fine\nbad,5x\nx,y\n", "none of its classes"),
    ],
)
def test_a_bad_table_is_one_line(text: Path, content: str, why: str) -> None:
    (text / "rows.csv").write_text(content)
    with pytest.raises(BadInput) as told:
        litesmith.evaluate(text / "m.tflite", text / "rows.csv", vocab=str(text / "vocab.txt"))
    assert why in str(told.value)
    assert "\n" not in str(told.value)


# Questions.


def reference_f1(found: str, wanted: str) -> float:
    """As the authors of SQuAD define it, said once more."""

    def words(text: str) -> list[str]:
        bare = "".join(c for c in text.lower() if c not in set(string.punctuation))
        return re.sub(r"\b(a|an|the)\b", " ", bare).split()

    a, b = words(found), words(wanted)
    same = sum((Counter(a) & Counter(b)).values())
    if not a or not b:
        return float(a == b)
    if same == 0:
        return 0.0
    precision, recall = same / len(a), same / len(b)
    return 2 * precision * recall / (precision + recall)


def test_answers_are_compared_as_squad_does() -> None:
    random = np.random.default_rng(0)
    words = ["the", "a", "Cat", "cat", "sat", "on", "an", "U.S.", "us", "mat.", "MAT", "12", ""]
    for _ in range(200):
        drawn = [" ".join(random.choice(words, random.integers(0, 6))) for _ in range(3)]
        found, first, second = drawn
        wanted = max(reference_f1(found, first), reference_f1(found, second))
        assert overlap(found, [first, second]) == pytest.approx(wanted)
        assert exact(found, [first]) == float(
            reference_f1(found, first) == 1
            and exact(found, [first]) == exact(first, [found])
            and normal(found) == normal(first)
        )
    assert (exact("", []), overlap("", []), overlap("x", [])) == (1, 1, 0)


def normal(text: str) -> str:
    bare = "".join(c for c in text.lower() if c not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", bare).split())


def test_the_best_span_is_in_the_text_and_forward() -> None:
    starts, ends = np.array([9.0, 1, 5, 0]), np.array([9.0, 6, 1, 2])
    assert best_span(starts, ends, np.array([False, True, True, True])) == (1, 1)
    assert best_span(starts, ends, np.zeros(4, bool)) == (-1, -1)
    assert best_span(starts * np.nan, ends, np.ones(4, bool)) == (-1, -1)
    long = np.zeros(60)
    long[0] = 9
    tail = np.zeros(60)
    tail[59] = 9
    first, last = best_span(long, tail, np.ones(60, bool))
    assert last - first < 30


def test_questions_are_answered_from_their_paragraph(tmp_path: Path) -> None:
    save(question_model(), tmp_path / "m.tflite")
    vocab = str(vocabulary(tmp_path))
    file = squad(
        tmp_path,
        [
            ("who wrote it", "The film was bad. Kim wrote it in May.", ["Kim"]),
            ("who", "it is Lee. it was bad", ["Lee is", "it"]),
            ("who was it", "the film is good", []),
        ],
    )
    found = litesmith.evaluate(tmp_path / "m.tflite", file, vocab=vocab)
    assert found.measurement.samples[:2] == pytest.approx((1.0, 2 / 3))
    told = litesmith.evaluate(tmp_path / "m.tflite", file, vocab=vocab, metric="em")
    assert told.measurement.samples[:2] == (1.0, 0.0)


@pytest.mark.parametrize("place", [0, 20, 60])
@pytest.mark.parametrize("engine", ["local", "shipped"])
def test_a_long_paragraph_is_read_in_parts(tmp_path: Path, place: int, engine: str) -> None:
    save(question_model(), tmp_path / "m.tflite")
    vocab = str(vocabulary(tmp_path))
    words = ["the", "film", "was", "good"] * 20
    words[place] = "Kim"
    file = squad(tmp_path, [("who wrote it", " ".join(words), ["Kim"])])
    model = load(tmp_path / "m.tflite")
    data = open_data(file, model, preparation=read_preparation(vocab=vocab))
    assert any("24 places, of the first 1: 1; they are read in parts" in n for n in data.notes)
    if engine == "shipped":
        scorer, task = data.items.scorer, data.items.task
        made = piece(data.items.stored, [0], digests=True).open_samples()
        data = replace(made, rows=replace(made.rows, scorer=scorer, task=task))
    found = litesmith.evaluate(tmp_path / "m.tflite", data, metric="em")
    assert (found.value, found.n) == (1.0, 1)


def test_parts_overlap_and_leave_nothing_out(tmp_path: Path) -> None:
    encode = encoder(question_model(), Settings(vocab=str(vocabulary(tmp_path))))
    text = " ".join(f"it{n}" for n in range(40))
    for length in (8, 9, 24):
        first = encode("who wrote it", text, length)
        parts = [[s[1:] for s in part.spans if s[0] == 1] for part in (first, *first.more)]
        assert {span for part in parts for span in part} == {
            (found.start(), found.end()) for found in re.finditer(r"it\d+", text)
        }
        shared = [{*one} & {*two} for one, two in pairwise(parts)]
        assert all(shared) or length == 8  # with room for one word, parts have none in common
    with pytest.raises(BadInput, match="a text cannot be cut to 6 places"):
        encode("who wrote it", text, 6)


@pytest.mark.parametrize(
    ("part", "told"),
    [
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "/////w=="}}, "no tokeniz"),
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAAAAAA"}}, "be cut to"),
        ({"pre_tokenizer": {"type": "FixedLength", "length": 0}}, "a text cannot be cut to 24"),
    ],
)
def test_a_vocabulary_that_panics_is_refused(
    tmp_path: Path, part: dict[str, object], told: str
) -> None:
    """What the library raises then is no Exception: a command ended with status 1."""
    pytest.importorskip("tokenizers")
    whole = {"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "Whitespace"}}
    words = {"type": "WordLevel", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]"}
    place = tmp_path / "tokenizer.json"
    place.write_text(json.dumps({**whole, "model": words, **part}))
    with pytest.raises(BadInput, match=told):
        encoder(question_model(), Settings(vocab=str(place)))("who wrote it", "it did", 24)


def test_no_answer_is_an_answer_where_some_questions_have_none(tmp_path: Path) -> None:
    """As the published scorer of SQuAD 2 has it: nothing is right where there is nothing."""
    b = litesmith.Builder()
    ids = b.input("ids", (1, 24), dtype="int32")
    b.input("segment_ids", (1, 24), dtype="int32")
    scores = np.zeros((len(WORDS), 1), np.float32)
    scores[WORDS.index("[CLS]")], scores[WORDS.index("kim")] = 3, 5
    told = b.op("RESHAPE", b.op("GATHER", scores, ids, axis=0), [1, 24])
    save(b.model(told, b.op("ADD", told, np.zeros(1, np.float32))), tmp_path / "m.tflite")
    vocab = str(vocabulary(tmp_path))
    rows = [("who", "Kim wrote it", ["Kim"]), ("who", "it was good", []), ("who", "Kim is", [])]
    file = squad(tmp_path, rows)
    for metric in ("f1", "em"):
        found = litesmith.evaluate(tmp_path / "m.tflite", file, vocab=vocab, metric=metric)
        assert found.measurement.samples == (1.0, 1.0, 0.0)
        assert any("questions without an answer: 2 of 3" in note for note in found.notes)
    answered = squad(tmp_path, [("who", "it was good", ["it"])])
    assert litesmith.evaluate(tmp_path / "m.tflite", answered, vocab=vocab).value > 0


@pytest.mark.parametrize("task", ["questions", None])
@pytest.mark.parametrize(
    ("content", "why"),
    [
        ('{"data": [', "not JSON"),
        ('{"data": [{"paragraphs": [', "not JSON"),
        ('{"data": 3, "paragraphs": 1}', "not as SQuAD has it"),
    ],
)
def test_bad_questions_are_one_line(
    tmp_path: Path, content: str, why: str, task: str | None
) -> None:
    save(question_model(), tmp_path / "m.tflite")
    (tmp_path / "q.json").write_text(content)
    with pytest.raises(BadInput, match=f"^[^\n]*{why}[^\n]*$"):
        litesmith.evaluate(tmp_path / "m.tflite", tmp_path / "q.json", task=task)


# Key points.


def test_points_at_their_place_are_right_and_others_wrong(tmp_path: Path) -> None:
    folder = points(tmp_path / "dots")
    for shift, wanted in ((0, 1.0), (1, 0.0)):
        save(point_finder(shift), tmp_path / "m.tflite")
        for metric in ("oks", "pck"):
            found = litesmith.evaluate(tmp_path / "m.tflite", folder, norm="unit", metric=metric)
            assert found.value == wanted


def test_likeness_is_that_of_coco(tmp_path: Path) -> None:
    evaluator = pytest.importorskip("pycocotools.cocoeval")
    random = np.random.default_rng(0)
    width, height, area = 200.0, 100.0, 5000.0
    for _ in range(20):
        known = np.concatenate([random.random((17, 2)), random.integers(0, 3, (17, 1))], axis=1)
        known[0, 2] = 2
        told = known[:, :2] + random.normal(0, 0.05, (17, 2))
        head = [0, 0, area / (width * height), 1, 1, width / height]
        ours = alikeness(told, np.concatenate([head, known.reshape(-1)]))
        judge = evaluator.COCOeval(iouType="keypoints")
        judge.params.imgIds, judge.params.catIds = [1], [1]
        wide = known * (width, height, 1)
        thing = {
            "id": 1,
            "keypoints": wide.reshape(-1).tolist(),
            "area": area,
            "bbox": [0, 0, 9, 9],
        }
        found = np.concatenate([told * (width, height), np.ones((17, 1))], axis=1)
        judge._gts[1, 1] = [thing]
        judge._dts[1, 1] = [{"id": 1, "keypoints": found.reshape(-1).tolist(), "score": 1.0}]
        assert ours == pytest.approx(float(judge.computeOks(1, 1)[0, 0]))


# All of them.


def test_a_task_can_be_named_or_recognised(tmp_path: Path) -> None:
    save(segmenter(), tmp_path / "m.tflite")
    masks(tmp_path / "data")
    found = litesmith.evaluate(tmp_path / "m.tflite", tmp_path / "data", norm="unit")
    named = litesmith.evaluate(
        tmp_path / "m.tflite", tmp_path / "data", norm="unit", task="segmentation"
    )
    assert found.value == named.value
    assert any("taken for segmentation" in note for note in found.notes)
    assert not any("taken for" in note for note in named.notes)
    with pytest.raises(BadInput, match="no task 'dance'; there are keypoints, detection"):
        litesmith.evaluate(tmp_path / "m.tflite", tmp_path / "data", task="dance")
    with pytest.raises(BadInput, match="no boxes there"):
        litesmith.evaluate(tmp_path / "m.tflite", tmp_path / "data", task="detection")
    with pytest.raises(BadInput, match="metric wer is for speech"):
        litesmith.evaluate(tmp_path / "m.tflite", tmp_path / "data", norm="unit", metric="wer")


def test_a_quantized_detector_beside_its_float_model(tmp_path: Path) -> None:
    save(detector(), tmp_path / "m.tflite")
    data = scenes(tmp_path / "data", 40)
    litesmith.quantize(tmp_path / "m.tflite", data=data, norm="unit", out=tmp_path / "q.tflite")
    found = litesmith.evaluate(
        tmp_path / "q.tflite", data, norm="unit", against=tmp_path / "m.tflite", metric="ap50"
    )
    assert found.against is not None
    assert found.value > 0.9
    assert found.against.value == 1.0


def test_several_labels(tmp_path: Path) -> None:
    from litesmith.ir.build import Builder

    b = Builder()
    x = b.input("x", (1, 3))
    save(b.model(b.op("LOGISTIC", x)), tmp_path / "m.tflite")
    given = {"x": np.float32([[9, -9, 9], [-9, 9, -9]]), "y": np.array([[1, 0, 0], [0, 1, 1]])}
    found = litesmith.evaluate(tmp_path / "m.tflite", given, metric="labels_f1")
    assert found.value == pytest.approx(2 * 2 / 6)


def test_what_repeats_its_input_tells_the_unusual(tmp_path: Path) -> None:
    from litesmith.ir.build import Builder

    b = Builder()
    x = b.input("x", (1, 4))
    save(b.model(b.op("TANH", x)), tmp_path / "m.tflite")
    random = np.random.default_rng(0)
    usual, odd = random.normal(0, 0.1, (20, 4)), random.normal(0, 3, (20, 4))
    given = {"x": np.float32([*usual, *odd]), "y": np.repeat([0, 1], 20)}
    found = litesmith.evaluate(tmp_path / "m.tflite", given, task="anomaly")
    assert (found.metric, found.value) == ("anomaly_auc", pytest.approx(1.0, abs=0.02))


def test_embeddings_find_their_like(tmp_path: Path) -> None:
    from litesmith.ir.build import Builder

    b = Builder()
    x = b.input("x", (1, 4))
    save(b.model(b.op("MUL", x, np.float32(2.0))), tmp_path / "m.tflite")
    given = {"x": np.float32([[1, 0, 0, 0], [1, 0.1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0.1]])}
    right = litesmith.evaluate(
        tmp_path / "m.tflite", given | {"y": np.array([0, 0, 1, 1])}, task="embedding"
    )
    wrong = litesmith.evaluate(
        tmp_path / "m.tflite", given | {"y": np.array([0, 1, 0, 1])}, task="embedding"
    )
    assert (right.value, wrong.value) == (1.0, 0.0)
