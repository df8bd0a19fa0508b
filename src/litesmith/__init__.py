"""Litesmith: a .tflite goes in; a better .tflite that stock LiteRT runs comes out.

>>> import litesmith
>>> model = litesmith.load("model.tflite")                          # doctest: +SKIP
>>> change = litesmith.apply(model, "cleanup | fold | fuse")        # doctest: +SKIP
>>> litesmith.save(change.model, "better.tflite")                   # doctest: +SKIP
"""

from litesmith._version import VERSION as __version__
from litesmith.errors import BadInput, BadModel, CannotApply, CannotRun, LitesmithError
from litesmith.ir.build import Builder
from litesmith.ir.types import Graph, Model, Op, Quant, Tensor
from litesmith.measure.accuracy import evaluate
from litesmith.measure.calibrate import apply
from litesmith.measure.latency import bench
from litesmith.measure.profile import profile
from litesmith.measure.spans import record, span
from litesmith.passes.step import Change, Skip
from litesmith.run.session import Session
from litesmith.run.target import Target
from litesmith.tflite.file import load, save

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
    "__version__",
    "apply",
    "bench",
    "evaluate",
    "load",
    "profile",
    "record",
    "save",
    "span",
]
