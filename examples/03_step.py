"""A step of your own: a frozen dataclass that gives a new model and says what it touched."""

import sys
from dataclasses import dataclass, replace

import numpy as np

import litesmith
from litesmith.ir.edit import rewrite, with_graphs


@dataclass(frozen=True)
class Shorten:
    """Keep so many leading bits of float constants, so that the file compresses better."""

    bits: int = 18

    def apply(self, model, context):
        floats = [t for t in model.main.tensors if t.is_const and t.dtype == "float32"]
        shorter = {t: replace(t, data=self.shorten(t.data)) for t in floats}
        graphs = [rewrite(model.main, tensors=shorter)]
        return litesmith.Change(with_graphs(model, graphs), tuple(f"{t.name}" for t in floats))

    def shorten(self, values):
        return ((values.view(np.uint32) >> (32 - self.bits)) << (32 - self.bits)).view(np.float32)


change = litesmith.apply(litesmith.load(sys.argv[1]), (Shorten(bits=16),))
litesmith.save(change.model, sys.argv[2])
