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

from litesmith._version import VERSION as __version__
from litesmith.errors import BadInput, BadModel, CannotApply, CannotRun, LitesmithError
from litesmith.ir.build import Builder
from litesmith.ir.types import Graph, Model, Op, Quant, Tensor
from litesmith.measure.accuracy import evaluate
from litesmith.measure.compare import compare
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
    "load",
    "op",
    "profile",
    "record",
    "retrain",
    "save",
    "span",
    "tune",
]
