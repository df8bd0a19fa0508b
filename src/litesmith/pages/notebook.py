"""Tells a notebook how results are shown: by the names of their types, so that no type knows of
notebooks, and nothing is imported before a result is there."""

import sys
from importlib import import_module
from typing import Any, Protocol

from litesmith.phrases import phrase

# What `report/results.py` has a function for.
TYPES = {
    "litesmith.ir.types": phrase("Model"),
    "litesmith.accuracy.evaluate": phrase("Evaluation"),
    "litesmith.regression.comparison": phrase("Compared"),
    "litesmith.timing.latency": phrase("Bench"),
    "litesmith.profiling.op_times": phrase("Profile"),
    "litesmith.diagnosis.verdict": phrase("Verdict"),
    "litesmith.passes.core.step": phrase("Change"),
    "litesmith.search.choosing.choose_models": phrase("Chosen"),
    "litesmith.search.tuning.tune_search": phrase("Found"),
    "litesmith.training.retrain_request": phrase("Retrained"),
}


class Pretty(Protocol):
    """What IPython hands a function that prints."""

    def text(self, text: str) -> None: ...


def register() -> bool:
    """Tells the notebook, or the shell, that runs this, if one does."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None:
        return False
    formatters = shell.display_formatter.formatters
    for module, name in TYPES.items():
        formatters["text/html"].for_type_by_name(module, name, _html)
        formatters["text/plain"].for_type_by_name(module, name, _print)
    return True


def _html(result: object) -> str:
    return import_module("litesmith.pages.result_html").html(result)


def _print(result: object, out: Pretty, is_cycle: bool) -> None:
    """A line: the plain form travels with the other, and a model's own has all of its weights."""
    out.text(import_module("litesmith.pages.result_html").text(result))
