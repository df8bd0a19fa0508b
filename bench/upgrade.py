"""`upgrade` makes a legacy uint8 model much faster, and it still sees the same things.

Bar: MobileNet v2 uint8 runs at least 1.8 times as fast after `upgrade`, and its top class agrees
with the original's on at least 97 % of 200 validation images.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from PIL import Image
from report import print_table, tell_figure, verdict_line
from stock import ASSETS, MISSING, arguments, compare, prepared, want_folder

import litesmith
from litesmith.timing.statistics import Ratio
from litesmith.units import percent_text

MODEL = "mobilenet_v2_1.0_224_quant.tflite"
SIDE, CROP = 224, 0.875
IMAGES = 200
LEAST_SPEED, LEAST_AGREEMENT = 1.8, 0.97


def spread_images(folder: Path, count: int) -> list[tuple[Path, int]]:
    """So many images with their labels, evenly over the classes; class 0 is the background."""
    classes = sorted(path for path in folder.iterdir() if path.is_dir())
    images = [(image, int(c.name) + 1) for c in classes for image in sorted(c.glob("*.jpg"))]
    places = np.linspace(0, len(images), count, endpoint=False).astype(int)
    return [images[place] for place in places]


def pixels(path: Path) -> np.ndarray:
    """The centre of an image: uint8 of shape (1, 224, 224, 3)."""
    with Image.open(path) as opened:
        image = opened.convert("RGB")
    scale = SIDE / CROP / min(image.size)
    width, height = (round(length * scale) for length in image.size)
    image = image.resize((width, height), Image.Resampling.BILINEAR)
    left, top = (width - SIDE) // 2, (height - SIDE) // 2
    return np.asarray(image.crop((left, top, left + SIDE, top + SIDE)))[None]


def top_class(interpreter: Interpreter, image: np.ndarray) -> int:
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], image)
    interpreter.invoke()
    return int(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).argmax())


def top_classes(model: Path, images: list[tuple[Path, int]]) -> np.ndarray:
    """The class that the model gives each image: shape (images,)."""
    interpreter = prepared(model)
    return np.array([top_class(interpreter, pixels(path)) for path, _ in images])


def report(time: Ratio, old: np.ndarray, new: np.ndarray, labels: np.ndarray) -> int:
    low, high = (1 / end for end in reversed(time.interval))
    speed, agreement = 1 / time.value, float((old == new).mean())
    tell_figure("faster", speed, low, high)
    tell_figure("agreement", agreement)
    count = f"{len(labels)} images"
    rows = [
        ("times as fast", f"{speed:.2f}", f"{low:.2f} to {high:.2f}", f"at least {LEAST_SPEED}"),
        ("same top class", percent_text(agreement), count, f"at least {LEAST_AGREEMENT:.0%}"),
        ("top-1 before", percent_text(float((old == labels).mean())), count, ""),
        ("top-1 after", percent_text(float((new == labels).mean())), count, ""),
    ]
    print_table(("what", "value", "95 % interval, or of", "bar"), rows)
    missed: list[str] = []
    if speed < LEAST_SPEED:
        missed.append(f"{speed:.2f} times as fast")
    if agreement < LEAST_AGREEMENT:
        missed.append(f"{percent_text(agreement)} same top class")
    return verdict_line(missed)


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--data", type=Path, default=ASSETS / "data", help="holds imagenet_val")
    parser.add_argument("--seconds", type=float, default=20.0, help="of timing")
    options = parser.parse_args()
    source = want_folder(options.models, "--models") / MODEL
    images = spread_images(want_folder(options.data / "imagenet_val", "--data"), IMAGES)
    if not source.is_file():
        print(f"{source}: no such file; name its folder with --models", file=sys.stderr)
        return MISSING
    with TemporaryDirectory() as folder:
        better = Path(folder) / "better.tflite"
        litesmith.save(litesmith.apply(litesmith.load(source), "upgrade").model, better)
        time = compare(source, better, seconds=options.seconds)
        old, new = top_classes(source, images), top_classes(better, images)
    return report(time, old, new, np.array([label for _, label in images]))


if __name__ == "__main__":
    sys.exit(main())
