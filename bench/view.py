"""The page of two models of 2,000 ops in headless Chromium with software rendering: how long it
takes to open, how many frames a second it pans with, and how large it is."""

import argparse
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from report import print_table, verdict_line

import litesmith
from tests.pages.browser import WHY_NOT, Browser, browser

OPEN_SECONDS, LEAST_FRAMES, MOST_BYTES = 2.0, 30, 3_000_000
ROUNDS, PAN_FRAMES = 5, 90

# Milliseconds from the start of the navigation to the frame behind the first one with the graph.
OPENED = "window.litesmithGraph && window.litesmithGraph.opened || null"

# The name in the browser's trace of a frame that reached the screen.
DRAWN = "Display::DrawAndSwap"

# Pans by calling what a drag calls, one step per frame.
PAN = """(() => {
  const canvas = window.litesmithGraph.canvas;
  let steps = 0;
  window.panned = false;
  const step = () => {
    steps += 1;
    if (steps > %d) return void (window.panned = true);
    canvas.pan(3, steps %% 60 < 30 ? -40 : 40);
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
  return true;
})()"""

# The views to pan: the folded graph as it opens, and every op at two sizes.
SCENES = {
    "as it opens": "(litesmithGraph.root.scrollIntoView(), true)",
    "all ops, near": "(litesmithGraph.canvas.foldAll(true), true)",
    "all ops, all of them in sight": "(litesmithGraph.canvas.fit(true), true)",
}


def make_models(folder: Path, ops: int) -> tuple[Path, Path]:
    """A float model with this many ops in named blocks, and the same in int8."""
    random = np.random.default_rng(0)
    b = litesmith.Builder()
    x = b.input("x", (1, 8, 8, 8))
    for block in range(ops // 5):
        y, name = x, f"net/stage_{block // 50}/block_{block}"
        for layer in range(4):
            weights = random.normal(0, 0.2, (8, 1, 1, 8)).astype(np.float32)
            bias = np.zeros(8, np.float32)
            y = b.op("CONV_2D", y, weights, bias, name=f"{name}/conv_{layer}/out")
        x = b.op("ADD", x, y, name=f"{name}/add")
    whole, small = folder / "float.tflite", folder / "int8.tflite"
    litesmith.save(b.model(x), whole)
    litesmith.quantize(whole, random_data=True, samples=2, effort="quick", out=small)
    return whole, small


def open_seconds(shown: Browser, page: Path) -> float:
    shown.open(page, 1280)
    for _ in range(200):
        at = shown.ask(OPENED)
        if at is not None:
            return at / 1e3
        time.sleep(0.05)
    raise SystemExit("the page did not open within 10 s")


def traced(shown: Browser) -> list[dict[str, Any]]:
    """The whole trace so far, which arrives in parts."""
    found: list[dict[str, Any]] = []
    for _ in range(3):
        time.sleep(0.5)
        found += shown.traced()
    return found


def frames_a_second(shown: Browser) -> float:
    """Frames that reached the screen while the graph was panned, by the browser's own tracing."""
    traced(shown)
    shown.ask(PAN % PAN_FRAMES)
    for _ in range(400):
        if shown.ask("window.panned"):
            break
        time.sleep(0.05)
    times = sorted(one["ts"] for one in traced(shown) if one["name"] == DRAWN)
    return 1e6 * (len(times) - 1) / (times[-1] - times[0]) if len(times) > PAN_FRAMES / 2 else 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", type=int, default=2000, help="ops of each model")
    parser.add_argument("--make", type=Path, help="write the page to this file, and stop")
    parser.add_argument("--page", type=Path, help="measure this page rather than a new one")
    given = parser.parse_args()
    if WHY_NOT:
        print(WHY_NOT, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        page = given.page or given.make or folder / "page.html"
        if not given.page:
            litesmith.view(*make_models(folder, given.ops), out=page, seconds=0.3)
        if given.make:
            return 0
        size = page.stat().st_size
        with browser(folder, trace="viz") as shown:
            opened = median(open_seconds(shown, page) for _ in range(ROUNDS))
            rates: dict[str, float] = {}
            for scene, script in SCENES.items():
                shown.ask(script)
                time.sleep(0.5)
                rates[scene] = frames_a_second(shown)
    rows = [["opens, s", f"{opened:.2f}", f"{OPEN_SECONDS:.0f}"]]
    rows.append(["size, MB", f"{size / 1e6:.2f}", f"{MOST_BYTES / 1e6:.0f}"])
    rows += [
        [f"frames/s, {scene}", f"{rate:.0f}", str(LEAST_FRAMES)] for scene, rate in rates.items()
    ]
    print_table((f"a page of 2 × {given.ops} ops", "seen", "bar"), rows)
    missed = ["opens too slowly"] if opened > OPEN_SECONDS else []
    missed += ["too large"] if size > MOST_BYTES else []
    missed += [f"pans too slowly: {one}" for one, rate in rates.items() if rate < LEAST_FRAMES]
    return verdict_line(missed)


if __name__ == "__main__":
    sys.exit(main())
