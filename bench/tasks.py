"""Tasks on real data: detectors, a segmenter and models of key points beside COCO's own tool, and
small models that are trained here on SST-2, SQuAD and spoken sentences, beside scorers written for
this check. What a float model of key points tells of the pets is taken for the truth, by which it
is right itself, and its int8 file nearly.

Bars: AP, AP50 and mean IoU within 0.3 points of what the plain interpreter and pycocotools give;
the others equal to the independent scorer.
"""

import gzip
import io
import json
import re
import shutil
import string
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from ai_edge_litert.interpreter import Interpreter
from PIL import Image
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from report import print_table, tell_figure, verdict_line
from stock import ASSETS, arguments
from tokenizers import BertWordPieceTokenizer

import litesmith
from litesmith.tasks.sound import Features, compute_features, read_sound

NEAR = 0.3
# Measured with the plain interpreter and pycocotools on all 320 pets.
KNOWN = (
    ("yolov2_tiny", "ap50", "unit", 79.1),
    ("yolov2_tiny", "ap", "unit", 26.6),
    ("ssd_mobilenet", "ap50", None, 79.6),
    ("ssd_mobilenet", "ap", None, 45.4),
    ("deeplabv3", "miou", "tf", 83.94),
)
Decode = Callable[[list[np.ndarray], int], np.ndarray]
LENGTH, WORDS, WIDTH = 48, 4000, 32
LETTERS = " abcdefghijklmnopqrstuvwxyz'"


def pets(data: Path, models: list[Path], only: str) -> Iterator[tuple[str, str, float, float]]:
    places = {path.stem: path for folder in models for path in folder.glob("*.tflite")}
    for name, metric, norm, known in KNOWN:
        if name in places and only in name:
            found = litesmith.evaluate(places[name], data / "pets", norm=norm, metric=metric)
            yield name, metric, 100 * found.value, known


def pose(outputs: list[np.ndarray], size: int) -> np.ndarray:
    """PoseNet's: the hottest place of each map, moved by its offset; across, down, how sure."""
    heat, offsets = (next(o[0] for o in outputs if o.shape[-1] == n) for n in (17, 34))
    rows, found = heat.shape[0], []
    for part in range(17):
        y, x = np.unravel_index(heat[..., part].argmax(), heat.shape[:2])
        step = (size - 1) / (rows - 1)
        down, across = y * step + offsets[y, x, part], x * step + offsets[y, x, 17 + part]
        found.append((across, down, 1 / (1 + np.exp(-heat[y, x, part]))))
    return np.array(found, np.float64)


def landmarks(outputs: list[np.ndarray], size: int) -> np.ndarray:
    """A list of points in pixels of the input, as MediaPipe's models have them."""
    del size
    most = max(outputs, key=lambda o: o.size if o.size == max(o.shape) else 0)
    values = most.reshape(-1, 3 if most.size % 5 else 5)
    return np.concatenate([values[:, :2], np.ones((len(values), 1))], axis=1, dtype=np.float64)


POINTS = (
    ("posenet_mv1_075_float_from_checkpoints", "tf", pose),
    ("hand_landmark_lite", "unit", landmarks),
    ("face_landmark", "unit", landmarks),
    ("pose_landmark_lite", "unit", landmarks),
)


def told_points(model: Path, files: list[Path], norm: str, decode: Decode) -> list[np.ndarray]:
    """What the plain interpreter tells of each image, in its pixels."""
    runner = Interpreter(str(model), num_threads=1)
    runner.allocate_tensors()
    given, told = runner.get_input_details()[0], runner.get_output_details()
    size, found = given["shape"][1], []
    for file in files:
        with Image.open(file) as image:
            wide, high = image.size
            pixels = np.asarray(image.convert("RGB").resize((size, size), 2), np.float32)
        scaled = (pixels - 127.5) / 127.5 if norm == "tf" else pixels / 255
        runner.set_tensor(given["index"], scaled[None].astype(np.float32))
        runner.invoke()
        points = decode([runner.get_tensor(one["index"]) for one in told], size)
        found.append(points * (wide / size, high / size, 1))
    return found


def annotations(files: list[Path], told: list[np.ndarray], folder: Path) -> Path:
    """The points as COCO has them: of one body that fills its image."""
    images, bodies = [], []
    for number, (file, points) in enumerate(zip(files, told, strict=True)):
        with Image.open(file) as image:
            wide, high = image.size
        shutil.copy(file, folder)
        images.append({"id": number, "file_name": file.name, "width": wide, "height": high})
        seen = [v for x, y, _ in points.tolist() for v in (x, y, 2)]
        body = {"id": number + 1, "image_id": number, "category_id": 1, "iscrowd": 0}
        body |= {"bbox": [0, 0, wide, high], "area": wide * high, "keypoints": seen}
        bodies.append(body | {"num_keypoints": len(points)})
    content = {"images": images, "annotations": bodies}
    content["categories"] = [{"id": 1, "name": "body"}]
    (folder / "points.json").write_text(json.dumps(content))
    return folder / "points.json"


def oks(truth: Path, told: list[np.ndarray]) -> float:
    """COCO's own tool; bodies other than people have one tolerance for all points."""
    with redirect_stdout(io.StringIO()):
        known = COCO(str(truth))
        rows = [
            {"image_id": n, "category_id": 1, "score": float(points[:, 2].mean())}
            | {"keypoints": [v for x, y, _ in points.tolist() for v in (x, y, 1)]}
            for n, points in enumerate(told)
        ]
        judge = COCOeval(known, known.loadRes(rows), "keypoints")
        if len(told[0]) != 17:
            judge.params.kpt_oks_sigmas = np.full(len(told[0]), 0.05)
        judge.evaluate()
        judge.accumulate()
        judge.summarize()
    return float(judge.stats[0])


def pck(truth: Path, told: list[np.ndarray]) -> float:
    """Of all points, those that are off by less than a tenth of the longer side."""
    content, near = json.loads(truth.read_text()), []
    for body, points in zip(content["annotations"], told, strict=True):
        right = np.array(body["keypoints"]).reshape(-1, 3)[:, :2]
        off = np.sqrt(np.square(points[:, :2] - right).sum(axis=1))
        near += (off < 0.1 * max(body["bbox"][2:])).tolist()
    return float(np.mean(near))


def key_points(
    data: Path, models: list[Path], only: str, count: int = 48
) -> Iterator[tuple[str, str, float, float]]:
    places = {path.stem: path for folder in models for path in folder.glob("*.tflite")}
    files = sorted((data / "pets" / "images").glob("*.jpg"))[:count]
    for name, norm, decode in POINTS:
        if name not in places or only not in name:
            continue
        with TemporaryDirectory() as made:
            folder = Path(made)
            truth = annotations(files, told_points(places[name], files, norm, decode), folder)
            options = {"norm": norm, "task": "keypoints"}
            small = folder / "int8.tflite"
            litesmith.quantize(places[name], truth, to="int8", out=small, effort="quick", **options)
            again = told_points(small, files, norm, decode)
            own = {"oks": oks(truth, again), "pck": pck(truth, again)}
            for metric, known in own.items():
                found = litesmith.evaluate(places[name], truth, metric=metric, **options)
                yield name, metric, 100 * found.value, 100.0
                found = litesmith.evaluate(small, truth, metric=metric, **options)
                yield f"{name} int8", metric, 100 * found.value, 100 * known


def vocabulary(texts: list[str], folder: Path) -> BertWordPieceTokenizer:
    made = BertWordPieceTokenizer(lowercase=True)
    made.train_from_iterator(texts, vocab_size=WORDS, show_progress=False)
    made.save_model(str(folder))
    return BertWordPieceTokenizer(str(folder / "vocab.txt"), lowercase=True)


def encoded(tokenizer: BertWordPieceTokenizer, text: str, length: int) -> list[int]:
    tokenizer.enable_truncation(length)
    ids = tokenizer.encode(text).ids
    return [*ids, *([0] * (length - len(ids)))]


def sst2(data: Path, folder: Path) -> tuple[float, float]:
    """A mean of word vectors, learned on the training part; top-1 on the other."""
    sets = {}
    for part in ("train", "dev"):
        lines = (data / "sst2" / f"{part}.tsv").read_text().splitlines()
        sets[part] = [line.rsplit("\t", 1) for line in lines]
    tokenizer = vocabulary([text for text, _ in sets["train"]], folder)
    x = {p: np.array([encoded(tokenizer, t, LENGTH) for t, _ in rows]) for p, rows in sets.items()}
    y = {p: np.array([int(label) for _, label in rows]) for p, rows in sets.items()}
    torch.manual_seed(0)
    table, head = torch.nn.Embedding(WORDS, WIDTH, padding_idx=0), torch.nn.Linear(WIDTH, 2)
    adam = torch.optim.Adam([*table.parameters(), *head.parameters()], 2e-3)
    given, wanted = torch.tensor(x["train"]), torch.tensor(y["train"])
    for _ in range(12):
        for some in torch.randperm(len(given)).split(64):
            loss = torch.nn.functional.cross_entropy(head(table(given[some]).mean(1)), wanted[some])
            adam.zero_grad()
            loss.backward()
            adam.step()
    b = litesmith.Builder()
    ids = b.input("input_ids", (1, LENGTH), dtype="int32")
    mean = b.op("MEAN", b.op("GATHER", table.weight.detach().numpy(), ids, axis=0), [1])
    weights = head.weight.detach().numpy(), head.bias.detach().numpy()
    litesmith.save(b.model(b.op("FULLY_CONNECTED", mean, *weights)), folder / "sst2.tflite")
    found = litesmith.evaluate(
        folder / "sst2.tflite", data / "sst2" / "dev.tsv", vocab=str(folder / "vocab.txt")
    )
    right = 0
    with litesmith.Session(folder / "sst2.tflite") as session:
        for row, label in zip(x["dev"], y["dev"], strict=True):
            answer = session(row[None].astype(np.int32))
            scores = next(iter(answer.values())) if isinstance(answer, dict) else answer
            right += int(np.asarray(scores).reshape(-1).argmax() == label)
    return 100 * found.value, 100 * right / len(y["dev"])


def bare(text: str) -> list[str]:
    kept = "".join(c for c in text.lower() if c not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", kept).split()


def f1(found: str, right: list[str]) -> float:
    best = 0.0
    for one in right:
        a, b = bare(found), bare(one)
        same = sum((Counter(a) & Counter(b)).values())
        best = max(best, 2 * same / (len(a) + len(b)) if a and b else float(a == b))
    return best


def windows(count: int, length: int, taken: int) -> Iterator[int]:
    """Where each part of a paragraph begins: a third of the length comes again in the next part, or
    half of what the question leaves."""
    room = length - taken
    step = room - min(length // 3, room // 2)
    first = 0
    while True:
        yield first
        if first + room >= count:
            return
        first += step


def questions(data: Path, folder: Path) -> tuple[float, float]:
    """Two convolutions over word vectors mark an answer; F1 on 300 questions."""
    length, width = 192, 48
    told = json.loads(gzip.decompress((data / "squad" / "train.json.gz").read_bytes()))
    rows = [
        (p["context"], q["question"], q["answers"])
        for article in told["data"]
        for p in article["paragraphs"]
        for q in p["qas"]
    ]
    tokenizer = vocabulary([c for c, _, _ in rows] + [q for _, q, _ in rows], folder)
    tokenizer.enable_truncation(length, strategy="only_second")
    items = []
    for context, question, answers in rows:
        made = tokenizer.encode(question, context)
        start, text = answers[0]["answer_start"], answers[0]["text"]
        spans = [
            n
            for n, (part, (a, z)) in enumerate(zip(made.sequence_ids, made.offsets, strict=True))
            if part == 1 and a < start + len(text) and z > start
        ]
        if spans:
            pad = [0] * (length - len(made.ids))
            items.append(([*made.ids, *pad], [*made.type_ids, *pad], spans[0], spans[-1]))
    ids, kinds, first, last = (torch.tensor([item[n] for item in items]) for n in range(4))
    torch.manual_seed(0)
    table = torch.nn.Embedding(WORDS, width)
    one, two = torch.nn.Conv1d(width + 1, 64, 5, padding=2), torch.nn.Conv1d(64, 2, 5, padding=2)
    adam = torch.optim.Adam([*table.parameters(), *one.parameters(), *two.parameters()], 2e-3)
    for _ in range(4):
        for some in torch.randperm(len(ids)).split(32):
            x = torch.cat([table(ids[some]), kinds[some][..., None].float()], -1)
            out = two(torch.relu(one(x.transpose(1, 2))))
            loss = sum(
                torch.nn.functional.cross_entropy(out[:, n], (first, last)[n][some]) for n in (0, 1)
            )
            adam.zero_grad()
            loss.backward()
            adam.step()
    b = litesmith.Builder()
    given = b.input("input_ids", (1, length), dtype="int32")
    types = b.input("token_type_ids", (1, length), dtype="int32")
    words = b.op("GATHER", table.weight.detach().numpy(), given, axis=0)
    part = b.op("RESHAPE", b.op("CAST", types, dtype="float32"), [1, length, 1])
    x = b.op("RESHAPE", b.op("CONCATENATION", words, part, axis=2), [1, 1, length, width + 1])
    for layer, activation in ((one, "RELU"), (two, "NONE")):
        weights = layer.weight.detach().numpy().transpose(0, 2, 1)[:, None]
        bias = layer.bias.detach().numpy()
        x = b.op("CONV_2D", x, weights, bias, padding="SAME", fused_activation_function=activation)
    litesmith.save(b.model(b.op("RESHAPE", x, [1, length, 2])), folder / "squad.tflite")
    judged = json.loads(gzip.decompress((data / "squad" / "dev.json.gz").read_bytes()))
    judged["data"] = judged["data"][:2]
    (folder / "dev.json").write_text(json.dumps(judged))
    found = litesmith.evaluate(
        folder / "squad.tflite", folder / "dev.json", vocab=str(folder / "vocab.txt"),
        task="questions",
    )  # fmt: skip
    own = []
    tokenizer.no_truncation()
    with litesmith.Session(folder / "squad.tflite") as session:
        for article in judged["data"]:
            for p in article["paragraphs"]:
                for q in p["qas"]:
                    best, text = -np.inf, ""
                    asked = tokenizer.encode(q["question"]).ids
                    told = tokenizer.encode(p["context"], add_special_tokens=False)
                    for first in windows(len(told.ids), length, len(asked) + 1):
                        room = length - len(asked) - 1
                        ids = [*asked, *told.ids[first : first + room], asked[-1]]
                        types = [0] * len(asked) + [1] * (len(ids) - len(asked))
                        pad = [0] * (length - len(ids))
                        session.inputs["input_ids"] = [[*ids, *pad]]
                        session.inputs["token_type_ids"] = [[*types, *pad]]
                        session.run()
                        scores = np.array(next(iter(session.outputs.values())))[0]
                        for s in range(len(asked), len(ids) - 1):
                            for e in range(s, min(s + 30, len(ids) - 1)):
                                total = float(scores[s, 0]) + float(scores[e, 1])
                                if total > best:
                                    a, z = (told.offsets[first + n - len(asked)] for n in (s, e))
                                    best, text = total, p["context"][a[0] : z[1]]
                    own.append(f1(text, [a["text"] for a in q["answers"]]))
    return 100 * found.value, 100 * float(np.mean(own))


def edits(found: list[str], wanted: list[str]) -> int:
    row = list(range(len(wanted) + 1))
    for n, one in enumerate(found, 1):
        last, row[0] = row[0], n
        for m, other in enumerate(wanted, 1):
            last, row[m] = row[m], min(row[m] + 1, row[m - 1] + 1, last + (one != other))
    return row[-1]


def speech(data: Path, folder: Path) -> tuple[float, float]:
    """Convolutions that learn the sentences by heart, as letters; the words that are wrong."""
    moments, bands = 1000, 40
    rows = [
        line.split("\t") for line in (data / "speech" / "transcripts.tsv").read_text().splitlines()
    ]
    texts = dict(rows[1:])
    plain = {
        name: " ".join("".join(c if c in LETTERS else " " for c in text.lower()).split())
        for name, text in texts.items()
    }
    heard = {}
    for name in texts:
        values, rate = read_sound(data / "speech" / name)
        made = compute_features(values, rate, Features("logmel", bands))[:moments]
        heard[name] = np.concatenate([made, np.tile(made.min(0), (moments - len(made), 1))])
    x = torch.tensor(np.stack(list(heard.values())), dtype=torch.float32)
    mean, spread = x.mean((0, 1)), x.std((0, 1))
    wanted = [torch.tensor([LETTERS.index(c) for c in plain[name]]) for name in texts]
    torch.manual_seed(0)
    layers = [(bands, 128, 2), (128, 128, 1), (128, 128, 1)]
    convs = [torch.nn.Conv1d(a, z, 9, stride=s, padding=4) for a, z, s in layers]
    head = torch.nn.Conv1d(128, len(LETTERS) + 1, 1)
    adam = torch.optim.Adam([p for m in (*convs, head) for p in m.parameters()], 2e-3)
    for _ in range(60):
        for some in torch.randperm(len(x)).split(10):
            h = ((x[some] - mean) / spread).transpose(1, 2)
            for conv in convs:
                h = torch.relu(conv(h))
            told = head(h).log_softmax(1).permute(2, 0, 1)
            sizes = torch.full((len(some),), told.shape[0])
            targets = [wanted[n] for n in some]
            lengths = torch.tensor([len(t) for t in targets])
            loss = torch.nn.functional.ctc_loss(
                told, torch.cat(targets), sizes, lengths, blank=len(LETTERS), zero_infinity=True
            )
            adam.zero_grad()
            loss.backward()
            adam.step()
    b = litesmith.Builder()
    given = b.input("features", (1, moments, bands))
    scaled = b.op("MUL", b.op("SUB", given, mean.numpy()), (1 / spread).numpy())
    h = b.op("RESHAPE", scaled, [1, moments, 1, bands])
    for conv in convs:
        h = b.op("PAD", h, np.int32([[0, 0], [4, 4], [0, 0], [0, 0]]))
        weights = conv.weight.detach().numpy().transpose(0, 2, 1)[:, :, None]
        h = b.op(
            "CONV_2D", h, weights, conv.bias.detach().numpy(), padding="VALID",
            stride_h=conv.stride[0], stride_w=1, fused_activation_function="RELU",
        )  # fmt: skip
    weights = head.weight.detach().numpy().transpose(0, 2, 1)[:, :, None]
    h = b.op("CONV_2D", h, weights, head.bias.detach().numpy())
    litesmith.save(b.model(b.op("RESHAPE", h, [1, moments // 2, -1])), folder / "speech.tflite")
    found = litesmith.evaluate(folder / "speech.tflite", data / "speech", features="logmel:40")
    wrong = total = 0
    with litesmith.Session(folder / "speech.tflite") as session:
        for name in texts:
            session.inputs["features"] = heard[name][None].astype(np.float32)
            session.run()
            best = np.array(next(iter(session.outputs.values())))[0].argmax(-1)
            kept = [n for n, before in zip(best, [-1, *best], strict=False) if n != before]
            said = "".join(LETTERS[n] for n in kept if n < len(LETTERS)).split()
            wrong += edits(said, plain[name].split())
            total += len(plain[name].split())
    return 100 * found.value, 100 * wrong / total


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--more", type=Path, nargs="*", default=[], help="more folders of models")
    parser.add_argument("--only", default="", help="the one model to look at")
    options = parser.parse_args()
    data = ASSETS / "data"
    lines: list[tuple[str, ...]] = []
    missed: list[str] = []
    for name, metric, found, known in pets(data, [ASSETS / "models", *options.more], options.only):
        lines.append((name, metric, f"{found:.2f}", f"{known:.2f}"))
        tell_figure(f"{name} {metric}", found)
        missed += [f"{name}: {metric} {found:.2f}"] if abs(found - known) > NEAR else []
    for name, metric, found, known in key_points(
        data, [ASSETS / "models", *options.more], options.only
    ):
        lines.append((name, metric, f"{found:.4f}", f"{known:.4f}"))
        missed += [f"{name}: {metric} {found:.4f}"] if abs(found - known) > 1e-6 else []
    for name, metric, measure in (
        ("sst2", "top1", sst2),
        ("squad", "f1", questions),
        ("speech", "wer", speech),
    ):
        if options.only not in name:
            continue
        with TemporaryDirectory() as folder:
            found, known = measure(data, Path(folder))
        lines.append((name, metric, f"{found:.4f}", f"{known:.4f}"))
        missed += [f"{name}: {metric} {found:.4f}"] if abs(found - known) > 1e-6 else []
    print_table(("model", "metric", "litesmith", "independent"), lines)
    return verdict_line(missed)


if __name__ == "__main__":
    sys.exit(main())
