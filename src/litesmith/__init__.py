"""Litesmith: a .tflite goes in; a better .tflite that stock LiteRT runs comes out.

>>> import litesmith, numpy as np
>>> model = litesmith.load("model.tflite")                          # doctest: +SKIP
>>> change = litesmith.apply(model, "cleanup | fold | fuse")        # doctest: +SKIP
>>> litesmith.save(change.model, "better.tflite")                   # doctest: +SKIP

Steps that train take data, and how to train:

>>> b = litesmith.Builder()
>>> weight = np.random.default_rng(0).normal(size=(32, 64)).astype(np.float32)
>>> model = b.model(b.op("FULLY_CONNECTED", b.input("x", (1, 64)), weight, None))
>>> data = np.random.default_rng(1).normal(size=(64, 64)).astype(np.float32)
>>> training = litesmith.Training(epochs=2)
>>> change = litesmith.apply(model, "prune(sparsity=0.8) | qat", data, training=training)
>>> change.model.main.ops[1].inputs[1].dtype
'int8'
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from litesmith._version import VERSION as __version__

if TYPE_CHECKING:
    from litesmith.errors import BadInput, BadModel, CannotApply, CannotRun, LitesmithError
    from litesmith.ir.build import Builder
    from litesmith.ir.types import Graph, Model, Op, Quant, Tensor
    from litesmith.measure.accuracy import evaluate
    from litesmith.measure.compare import compare
    from litesmith.measure.gate import gate, update_baseline
    from litesmith.measure.latency import bench
    from litesmith.measure.profile import profile
    from litesmith.measure.spans import record, span
    from litesmith.ops.registry import delegate, op
    from litesmith.passes.step import Change, Skip
    from litesmith.run.session import Session
    from litesmith.run.target import Target
    from litesmith.search.choose import choose
    from litesmith.search.tune import tune
    from litesmith.tflite.file import load, save
    from litesmith.train.apply import apply
    from litesmith.train.retrain import retrain
    from litesmith.train.settings import Training

__all__ = [
    "BadInput",
    "BadModel",
    "Builder",
    "CannotApply",
    "CannotRun",
    "Change",
    "Graph",
    "LitesmithError",
    "Model",
    "Op",
    "Quant",
    "Session",
    "Skip",
    "Target",
    "Tensor",
    "Training",
    "__version__",
    "apply",
    "bench",
    "choose",
    "compare",
    "delegate",
    "evaluate",
    "gate",
    "load",
    "op",
    "profile",
    "record",
    "retrain",
    "save",
    "span",
    "tune",
    "update_baseline",
]

# module -> what it gives this one; imported when it is used, so that no program waits for the rest
_GIVEN = {
    "errors": "BadInput BadModel CannotApply CannotRun LitesmithError",
    "ir.build": "Builder",
    "ir.types": "Graph Model Op Quant Tensor",
    "measure.accuracy": "evaluate",
    "measure.compare": "compare",
    "measure.gate": "gate update_baseline",
    "measure.latency": "bench",
    "measure.profile": "profile",
    "measure.spans": "record span",
    "ops.registry": "delegate op",
    "passes.step": "Change Skip",
    "run.session": "Session",
    "run.target": "Target",
    "search.choose": "choose",
    "search.tune": "tune",
    "tflite.file": "load save",
    "train.apply": "apply",
    "train.retrain": "retrain",
    "train.settings": "Training",
}
_MODULES = {name: module for module, names in _GIVEN.items() for name in names.split()}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module 'litesmith' has no attribute {name!r}")
        globals()[name] = getattr(import_module(f"litesmith.{_MODULES[name]}"), name)
        return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


import_module("litesmith.train")  # which says how threads wait, before anyone imports torch

if "IPython" in sys.modules:  # a notebook shows results as tables
    import_module("litesmith.report.notebook").register()
