"""From a float file to a C array that fits 44 KB of RAM and 256 KB of flash.

`litesmith tune MODEL --data DATA --max-drop 1pt --fits BOARD` looks for such a file by itself and
proves it with TensorFlow Lite Micro's kernels; here its steps are taken one by one.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import litesmith
from litesmith import demo_files as demo

RAM, FLASH = 44 * 1024, 256 * 1024

with TemporaryDirectory() as folder:
    model, data = demo.write(Path(folder))
    int8, small = Path(folder, "int8.tflite"), Path(folder, "small.tflite")
    litesmith.quantize(model, to="int8", data=data, samples=100, io="int8", out=int8)
    # Another order of ops, layers in bands, a plan of the arena: less memory, the same bits.
    change = litesmith.apply(int8, f"arrange(ram={RAM})", out=small)
    print(*change.touched, sep="\n")
    made = litesmith.export(small, Path(folder, "firmware"), ram=RAM, flash=FLASH)
    print(made.sentence)
    for path in made.files:
        print(f"{path.name:20} {path.stat().st_size:8,} bytes")
    sys.exit(not made.is_as_asked)
