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
    from litesmith.anatomy.inspection import inspect
    from litesmith.anatomy.model_diff import diff
    from litesmith.calibration.observed_cache import cache
    from litesmith.diagnosis.all_targets import targets
    from litesmith.errors import BadInput, BadModel, CannotApply, CannotRun, LitesmithError
    from litesmith.front.apply import apply
    from litesmith.front.bench import bench
    from litesmith.front.catalogue import catalogue
    from litesmith.front.choose import choose
    from litesmith.front.compare import compare
    from litesmith.front.convert import convert
    from litesmith.front.demo import demo
    from litesmith.front.doctor import doctor
    from litesmith.front.evaluate import evaluate
    from litesmith.front.export import export
    from litesmith.front.gate import gate, update_baseline
    from litesmith.front.profile import profile
    from litesmith.front.quantize import quantize
    from litesmith.front.report import report
    from litesmith.front.resize import resize
    from litesmith.front.retrain import retrain
    from litesmith.front.shrink import cluster, prune, qat
    from litesmith.front.tune import tune
    from litesmith.front.view import view
    from litesmith.ir.build import Builder
    from litesmith.ir.types import Graph, Model, Op, Quant, Tensor
    from litesmith.ops.registry import delegate, op
    from litesmith.passes.core.step import Change, Skip
    from litesmith.profiling.trace import record, span
    from litesmith.run.core.target import Target
    from litesmith.run.session import Session
    from litesmith.tflite.file import load, save
    from litesmith.training.settings import Training

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
    "cache",
    "catalogue",
    "choose",
    "cluster",
    "compare",
    "convert",
    "delegate",
    "demo",
    "diff",
    "doctor",
    "evaluate",
    "export",
    "gate",
    "inspect",
    "load",
    "op",
    "profile",
    "prune",
    "qat",
    "quantize",
    "record",
    "report",
    "resize",
    "retrain",
    "save",
    "span",
    "targets",
    "tune",
    "update_baseline",
    "view",
]

# module -> what it gives this one; imported when it is used, so that no program waits for the rest
_GIVEN = {
    "anatomy.inspection": "inspect",
    "anatomy.model_diff": "diff",
    "calibration.observed_cache": "cache",
    "diagnosis.all_targets": "targets",
    "errors": "BadInput BadModel CannotApply CannotRun LitesmithError",
    "front.apply": "apply",
    "front.bench": "bench",
    "front.catalogue": "catalogue",
    "front.choose": "choose",
    "front.compare": "compare",
    "front.convert": "convert",
    "front.demo": "demo",
    "front.doctor": "doctor",
    "front.evaluate": "evaluate",
    "front.export": "export",
    "front.gate": "gate update_baseline",
    "front.profile": "profile",
    "front.quantize": "quantize",
    "front.report": "report",
    "front.resize": "resize",
    "front.retrain": "retrain",
    "front.shrink": "cluster prune qat",
    "front.tune": "tune",
    "front.view": "view",
    "ir.build": "Builder",
    "ir.types": "Graph Model Op Quant Tensor",
    "ops.registry": "delegate op",
    "passes.core.step": "Change Skip",
    "profiling.trace": "record span",
    "run.core.target": "Target",
    "run.session": "Session",
    "tflite.file": "load save",
    "training.settings": "Training",
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


import_module("litesmith.training")  # which says how threads wait, before anyone imports torch

if "IPython" in sys.modules:  # a notebook shows a model as a table
    import_module("litesmith.front.notebook").register()
