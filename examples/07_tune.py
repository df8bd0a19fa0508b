"""Find the fastest file within a budget, on a model and data that ship with the package."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import litesmith
from litesmith import demo_files as demo

with TemporaryDirectory() as folder:
    model, data = demo.write(Path(folder))
    with np.load(data) as arrays:  # a part of it, in haste; all of it proves smaller drops
        some = {"x": arrays["x"][:400], "y": arrays["y"][:400]}
    found = litesmith.tune(model, some, max_drop="4pt", runs=12, out=Path(folder, "tuned"))
    print(found.verdict, found.sentence)
    for record in found.records:
        print(f"{record.name:10} {record.status:10} {record.trial.reason}")
    sys.exit(found.best is None)
