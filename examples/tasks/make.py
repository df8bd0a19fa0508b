"""A model and data for each task, made in code: small enough to see through, real enough to score.

python examples/tasks/make.py detection squares/
litesmith eval squares/model.tflite --data squares/data --norm unit
"""

import json
import sys
import wave
from pathlib import Path

import numpy as np
from PIL import Image

from litesmith.ir.build import Builder
from litesmith.ir.types import Model
from litesmith.tasks.sound import Features, compute_features
from litesmith.tflite.file import save

SIDE, SQUARE = 32, 8
COLOURS = ("red", "green")


def scene(random: np.random.Generator) -> tuple[np.ndarray, list[tuple[int, int, int]]]:
    """A dark image with one or two coloured squares: (class, left, top) of each."""
    pixels = random.integers(0, 40, (SIDE, SIDE, 3)).astype(np.uint8)
    found: list[tuple[int, int, int]] = []
    for half in random.permutation(2)[: random.integers(1, 3)]:
        kind, left = int(random.integers(0, 2)), int(half) * 16 + 4 * int(random.integers(0, 3))
        top = 4 * int(random.integers(0, 7))
        pixels[top : top + SQUARE, left : left + SQUARE, kind] = 230
        found.append((kind, left, top))
    return pixels, found


def scenes(folder: Path, count: int = 24, seed: int = 0) -> Path:
    """Images of squares with COCO's annotations."""
    random = np.random.default_rng(seed)
    (folder / "images").mkdir(parents=True)
    images, told = [], []
    for number in range(count):
        pixels, found = scene(random)
        Image.fromarray(pixels).save(folder / "images" / f"{number:03}.png")
        size = {"width": SIDE, "height": SIDE}
        images.append({"id": number, "file_name": f"{number:03}.png", **size})
        told += [
            {"image_id": number, "category_id": 1 + kind, "bbox": [left, top, SQUARE, SQUARE]}
            for kind, left, top in found
        ]
    told = [{"id": n, "area": SQUARE**2, "iscrowd": 0, **one} for n, one in enumerate(told)]
    categories = [{"id": 1 + n, "name": name} for n, name in enumerate(COLOURS)]
    content = {"images": images, "annotations": told, "categories": categories}
    (folder / "instances.json").write_text(json.dumps(content))
    return folder


def detector(strength: float = 8.0, noise: float = 0.0) -> Model:
    """Finds the squares: heat of either colour, sizes and offsets, as CenterNet tells them."""
    random = np.random.default_rng(5)
    kernel = np.zeros((2, SQUARE, SQUARE, 3), np.float32)
    for kind in range(2):
        kernel[kind, ..., kind] = strength / SQUARE**2
        kernel[kind, ..., 1 - kind] = -strength / SQUARE**2
    kernel += random.normal(0, noise, kernel.shape).astype(np.float32)
    b = Builder()
    x = b.input("image", (1, SIDE, SIDE, 3))
    # the window of place p covers 4p − 2 … 4p + 5: shifted by 2, so that places fit the squares
    moved = b.op("PAD", x, np.int32([[0, 0], [0, 4], [0, 4], [0, 0]]))
    heat = b.op(
        "CONV_2D", moved, kernel, np.full(2, -0.6 * strength, np.float32), stride_h=4, stride_w=4,
        padding="VALID",
    )  # fmt: skip
    grid = SIDE // 4
    sizes = b.op("CONV_2D", heat, np.zeros((2, 1, 1, 2), np.float32), np.full(2, 2.0, np.float32))
    offsets = b.op("CONV_2D", heat, np.zeros((2, 1, 1, 2), np.float32), np.ones(2, np.float32))
    assert heat.shape[1:3] == (grid, grid), heat.shape
    return b.model(b.op("LOGISTIC", heat), sizes, offsets)


def masks(folder: Path, count: int = 12) -> Path:
    """The same scenes with a mask each: 0 for nothing, else 1 and the class."""
    random = np.random.default_rng(1)
    for name in ("images", "masks"):
        (folder / name).mkdir(parents=True)
    for number in range(count):
        pixels, found = scene(random)
        mask = np.zeros((SIDE, SIDE), np.uint8)
        for kind, left, top in found:
            mask[top : top + SQUARE, left : left + SQUARE] = 1 + kind
        mask[0, 0] = 255
        Image.fromarray(pixels).save(folder / "images" / f"{number}.png")
        Image.fromarray(mask).save(folder / "masks" / f"{number}.png")
    return folder


def segmenter() -> Model:
    """The class of every pixel by its colour."""
    weights = np.array([[0, 0, 0], [1, -1, 0], [-1, 1, 0]], np.float32).reshape(3, 1, 1, 3)
    b = Builder()
    x = b.input("image", (1, SIDE, SIDE, 3))
    return b.model(b.op("CONV_2D", x, weights * 4, np.float32([1.5, 0, 0])))


WORDS = (
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "bad", "the", "film", "is", "was", "who"),
    *("wrote", "it", "kim", "lee", "in", "may", "."),
)


def vocabulary(folder: Path) -> Path:
    place = folder / "vocab.txt"
    place.write_text("\n".join(WORDS))
    return place


def text_model(length: int = 12) -> Model:
    """Says class 1 where there are more good words than bad ones."""
    values = np.zeros((len(WORDS), 2), np.float32)
    values[WORDS.index("good")] = (-1, 1)
    values[WORDS.index("bad")] = (1, -1)
    b = Builder()
    ids = b.input("input_ids", (1, length), dtype="int32")
    mask = b.input("attention_mask", (1, length), dtype="int32")
    found = b.op("GATHER", values, ids, axis=0)
    weights = b.op("RESHAPE", b.op("CAST", mask, dtype="float32"), [1, length, 1])
    return b.model(b.op("SUM", b.op("MUL", found, weights), [1]))


def question_model(length: int = 24) -> Model:
    """Marks the last word that is a name."""
    starts = np.zeros((len(WORDS), 1), np.float32)
    for name in ("kim", "lee"):
        starts[WORDS.index(name)] = 5
    b = Builder()
    ids = b.input("ids", (1, length), dtype="int32")
    types = b.input("segment_ids", (1, length), dtype="int32")
    found = b.op("RESHAPE", b.op("GATHER", starts, ids, axis=0), [1, length])
    told = b.op("MUL", found, b.op("CAST", types, dtype="float32"))
    places = np.linspace(0, 0.5, length, dtype=np.float32)
    ends = b.op("ADD", told, places, name="end_scores")
    return b.model(ends, b.op("ADD", told, places * 2, name="start_scores"))


def squad(folder: Path, questions: list[tuple[str, str, list[str]]]) -> Path:
    """Questions with a paragraph and answers each."""
    told = [
        {
            "context": paragraph,
            "qas": [{"id": str(n), "question": words, "answers": [{"text": a} for a in answers]}],
        }
        for n, (words, paragraph, answers) in enumerate(questions)
    ]
    place = folder / "questions.json"
    place.write_text(json.dumps({"version": "1", "data": [{"title": "t", "paragraphs": told}]}))
    return place


LETTERS = ("a", "b", "|", "<blank>")
_TONES = (500, 1000, 2000)
RATE, MOMENTS, BANDS = 8000, 120, 20


def spoken(text: str) -> np.ndarray:
    """A tone for each letter, with silence between."""
    moments = np.arange(int(0.06 * RATE)) / RATE
    quiet = np.zeros(int(0.04 * RATE))
    tones = {letter: _TONES[n] for n, letter in enumerate(("a", "b", " "))}
    parts = [p for c in text for p in (np.sin(2 * np.pi * tones[c] * moments), quiet)]
    return np.concatenate([quiet, *parts]) * 0.5


def save_wave(path: Path, values: np.ndarray, rate: int = RATE) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((values * 32767).astype("<i2").tobytes())


def speech(folder: Path, said: list[str], wanted: list[str] | None = None) -> Path:
    """Clips of tones, with what they are to be told as."""
    folder.mkdir(parents=True)
    rows = ["file\ttext"]
    for number, (text, told) in enumerate(zip(said, wanted or said, strict=True)):
        save_wave(folder / f"{number}.wav", spoken(text))
        rows.append(f"{number}.wav\t{told}")
    (folder / "transcripts.tsv").write_text("\n".join(rows))
    (folder / "letters.txt").write_text("\n".join(LETTERS))
    return folder


def listener() -> Model:
    """Tells the letter of every moment, by the loudest band."""
    features = Features("logmel", BANDS)
    rows, classes = [], []
    for number, letter in enumerate(("a", "b", " ", "")):
        heard = spoken(letter * 8) if letter else np.zeros(RATE)
        found = compute_features(heard, RATE, features)
        loud = found[found.max(axis=1) > -1] if letter else found
        rows.append(loud)
        classes += [number] * len(loud)
    given = np.concatenate(rows)
    wanted = np.eye(4)[classes]
    solved = np.linalg.lstsq(np.c_[given, np.ones(len(given))], wanted, rcond=None)[0]
    b = Builder()
    x = b.input("features", (1, MOMENTS, BANDS))
    flat = b.op("RESHAPE", x, [MOMENTS, BANDS])
    made = b.op(
        "FULLY_CONNECTED", flat, solved[:-1].T.astype(np.float32), solved[-1].astype(np.float32)
    )
    return b.model(b.op("RESHAPE", made, [1, MOMENTS, 4]))


def points(folder: Path, count: int = 12) -> Path:
    """Images with a red and a green dot, and where they are."""
    random = np.random.default_rng(2)
    (folder / "images").mkdir(parents=True)
    images, told = [], []
    for number in range(count):
        pixels = np.zeros((SIDE, SIDE, 3), np.uint8)
        marks: list[float] = []
        for kind in range(2):
            left, top = (4 * int(n) for n in random.integers(0, 8, 2))
            pixels[top : top + 4, left : left + 4, kind] = 255
            marks += [left + 2, top + 2, 2]
        Image.fromarray(pixels).save(folder / "images" / f"{number}.png")
        images.append({"id": number, "file_name": f"{number}.png", "width": SIDE, "height": SIDE})
        box = {"bbox": [0, 0, SIDE, SIDE], "area": SIDE * SIDE, "iscrowd": 0, "num_keypoints": 2}
        told.append({"id": number, "image_id": number, "category_id": 1, "keypoints": marks, **box})
    content = {"images": images, "annotations": told, "categories": [{"id": 1, "name": "dots"}]}
    (folder / "keypoints.json").write_text(json.dumps(content))
    return folder


def point_finder(shift: int = 0) -> Model:
    """Heat maps of the two colours; `shift` moves them by so many places."""
    b = Builder()
    x = b.input("image", (1, SIDE, SIDE, 3))
    pooled = b.op("AVERAGE_POOL_2D", x, filter_height=4, filter_width=4, stride_h=4, stride_w=4)
    weights = np.eye(2, 3, dtype=np.float32).reshape(2, 1, 1, 3) * 9
    heat = b.op("CONV_2D", pooled, weights, np.zeros(2, np.float32))
    if shift:
        kept = b.op("SLICE", heat, [0, 0, 0, 0], [1, 8, 8 - shift, 2])
        heat = b.op("PAD", kept, np.int32([[0, 0], [0, 0], [shift, 0], [0, 0]]))
    return b.model(heat)


def make_detection(folder: Path) -> None:
    save(detector(), folder / "model.tflite")
    scenes(folder / "data", 400)


def make_segmentation(folder: Path) -> None:
    save(segmenter(), folder / "model.tflite")
    masks(folder / "data", 200)


def make_keypoints(folder: Path) -> None:
    save(point_finder(), folder / "model.tflite")
    points(folder / "data", 200)


def make_speech(folder: Path) -> None:
    save(listener(), folder / "model.tflite")
    random = np.random.default_rng(0)
    said = ["".join(random.choice(list("ab "), 7)).strip() or "a" for _ in range(60)]
    speech(folder / "data", [" ".join(text.split()) for text in said])


def make_text(folder: Path) -> None:
    save(text_model(), folder / "model.tflite")
    vocabulary(folder)
    random = np.random.default_rng(0)
    rows = [random.choice(["good", "bad", "the", "film", "is", "was"], 9) for _ in range(200)]
    labels = [int((row == "good").sum() > (row == "bad").sum()) for row in rows]
    lines = [f"{' '.join(row)}\t{label}" for row, label in zip(rows, labels, strict=True)]
    (folder / "data.tsv").write_text("\n".join(["text\tlabel", *lines]))


def make_questions(folder: Path) -> None:
    save(question_model(), folder / "model.tflite")
    vocabulary(folder)
    told = [
        ("who wrote it", f"the film was {word}. {name} wrote it in may.", [name])
        for word in ("good", "bad")
        for name in ("Kim", "Lee")
    ]
    squad(folder, told * 10)


def make_classification(folder: Path) -> None:
    """Scenes with the colours in each: one label or two."""
    random = np.random.default_rng(3)
    (folder / "data").mkdir()
    rows = ["file,label"]
    for number in range(120):
        pixels, found = scene(random)
        Image.fromarray(pixels).save(folder / "data" / f"{number}.png")
        colours = sorted({COLOURS[kind] for kind, _, _ in found})
        rows.append(f"{number}.png,{'|'.join(colours)}")
    (folder / "data" / "labels.csv").write_text("\n".join(rows))
    (folder / "classes.txt").write_text("\n".join(COLOURS))
    b = Builder()
    x = b.input("image", (1, SIDE, SIDE, 3))
    weights = np.float32([[1, -1, 0], [-1, 1, 0]]).reshape(2, 1, 1, 3) * 9
    heat = b.op("CONV_2D", x, weights, np.full(2, -3, np.float32))
    save(b.model(b.op("LOGISTIC", b.op("REDUCE_MAX", heat, [1, 2]))), folder / "model.tflite")


def make_regression(folder: Path) -> None:
    """What three sensors tell, and the temperature that was meant."""
    random = np.random.default_rng(0)
    told = random.normal(20, 5, (150, 3))
    right = told @ [0.5, 0.3, 0.2] + random.normal(0, 0.25, 150)
    lines = [",".join(f"{v:.3f}" for v in (*row, y)) for row, y in zip(told, right, strict=True)]
    (folder / "data.csv").write_text("\n".join(["near,far,wall,target", *lines]))
    b = Builder()
    weights = np.float32([[0.5, 0.3, 0.2]])
    made = b.op("FULLY_CONNECTED", b.input("sensors", (1, 3)), weights, np.zeros(1, np.float32))
    save(b.model(made), folder / "model.tflite")


def make_anomaly(folder: Path) -> None:
    """Vibrations of three tones, and unusual ones with a fourth; the model knows the three."""
    random, moments = np.random.default_rng(0), np.arange(64) / 64
    tones = np.array([np.sin(2 * np.pi * f * moments) for f in (2, 3, 5, 11)]) / np.sqrt(32)
    is_odd = random.random(200) < 0.2
    loud = random.normal(0, 1, (200, 4)) * np.stack([*np.ones((3, 200)), is_odd], axis=1)
    x = loud @ tones + random.normal(0, 0.05, (200, 64))
    np.savez(folder / "data.npz", x=x.astype(np.float32), y=is_odd.astype(np.int64))
    known = tones[:3].astype(np.float32)
    b = Builder()
    inner = b.op("FULLY_CONNECTED", b.input("vibration", (1, 64)), known, np.zeros(3, np.float32))
    again = b.op("FULLY_CONNECTED", inner, known.T.copy(), np.zeros(64, np.float32))
    save(b.model(again), folder / "model.tflite")


def make_embedding(folder: Path) -> None:
    """Noisy views of twenty things; the model leaves out the places that are noise alone."""
    random = np.random.default_rng(0)
    things, y = random.normal(0, 1, (20, 8)), np.arange(160) % 20
    views = np.c_[things[y] + random.normal(0, 0.6, (160, 8)), random.normal(0, 3, (160, 24))]
    np.savez(folder / "data.npz", x=views.astype(np.float32), y=y)
    b = Builder()
    kept = np.eye(8, 32, dtype=np.float32)
    made = b.op("FULLY_CONNECTED", b.input("view", (1, 32)), kept, np.zeros(8, np.float32))
    save(b.model(b.op("L2_NORMALIZATION", made)), folder / "model.tflite")


MAKERS = {
    "anomaly": make_anomaly,
    "classification": make_classification,
    "detection": make_detection,
    "embedding": make_embedding,
    "keypoints": make_keypoints,
    "questions": make_questions,
    "regression": make_regression,
    "segmentation": make_segmentation,
    "speech": make_speech,
    "text": make_text,
}

if __name__ == "__main__":
    task, place = sys.argv[1], Path(sys.argv[2])
    place.mkdir(parents=True)
    MAKERS[task](place)
