"""Choose between a model, its int8 form and a network of the catalogue, on data of the package."""

from pathlib import Path
from tempfile import TemporaryDirectory

import litesmith
from litesmith import demo_files as demo

with TemporaryDirectory() as folder:
    model, data = demo.write(Path(folder))
    candidates = [model, "resnet8"]
    out = Path(folder, "chosen")
    found = litesmith.choose(
        candidates, data, quantized=True, effort="quick", max_size="1MB", seconds=1, out=out
    )
    for row in found.candidates:
        known = "unknown" if row["value"] is None else f"{row['value']:.1%}"
        print(f"{row['model']:24} accuracy {known:8} {row['p50_us']:8.0f} µs {row['bytes']:9} B")
    print(found.reason)
