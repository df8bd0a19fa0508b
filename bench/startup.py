"""How long commands take to start, in units of `import numpy`.

    python bench/startup.py

Each command takes turns with the import, in a process of its own; the ratio is that of the medians.
The names of a command line must cost less than two imports, a look at a small file less than three.
"""

import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import litesmith

TURNS = 15
UNIT = ["-c", "import numpy"]
LIMITS = {"--help": 2.0, "quantize --help": 2.0, "inspect MODEL": 3.0}


def main() -> int:
    with TemporaryDirectory() as folder:
        model = Path(folder) / "small.tflite"
        b = litesmith.Builder()
        weight = [[0.5] * 16] * 8
        litesmith.save(b.model(b.op("FULLY_CONNECTED", b.input("x", (1, 16)), weight, None)), model)
        lines = {name: _line(name, model) for name in LIMITS}
        ratios = measure(lines)
    for name, ratio in ratios.items():
        print(f"litesmith {name}: {ratio:.2f} × import numpy (at most {LIMITS[name]:g})")
    return int(any(ratio > LIMITS[name] for name, ratio in ratios.items()))


def _line(name: str, model: Path) -> list[str]:
    words = [str(model) if word == "MODEL" else word for word in name.split()]
    return ["-m", "litesmith", *words]


def measure(lines: dict[str, list[str]]) -> dict[str, float]:
    """The median time of each line over that of the import, taken in turns."""
    times: dict[str, list[float]] = {name: [] for name in (*lines, "")}
    for turn in range(TURNS + 1):
        for name, line in (*lines.items(), ("", UNIT)):
            began = perf_counter()
            subprocess.run([sys.executable, *line], check=True, capture_output=True)
            if turn:  # the first one fills caches
                times[name].append(perf_counter() - began)
    return {name: median(times[name]) / median(times[""]) for name in lines}


if __name__ == "__main__":
    sys.exit(main())
