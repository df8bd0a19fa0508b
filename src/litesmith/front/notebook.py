"""Tells a notebook how a model is shown: by the name of its type, since a model knows nothing of
what is counted in it. Results show themselves."""

# pyright: reportPrivateUsage=false
# IPython gives the method that draws a result its private name.

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from litesmith.anatomy.inspection import Inspection
    from litesmith.ir.types import Model


class Pretty(Protocol):
    """What IPython hands a function that prints."""

    def text(self, text: str) -> None: ...


def register() -> bool:
    """Tells the notebook, or the shell, that runs this, if one does."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None:
        return False
    formatters = shell.display_formatter.formatters
    formatters["text/html"].for_type_by_name("litesmith.ir.types", "Model", _html)
    formatters["text/plain"].for_type_by_name("litesmith.ir.types", "Model", _print)
    return True


def _inspect(model: "Model") -> "Inspection":
    return import_module("litesmith.anatomy.inspection").inspect(model)


def _html(model: "Model") -> str:
    return _inspect(model)._repr_html_()


def _print(model: "Model", out: Pretty, is_cycle: bool) -> None:
    """A line: the plain form travels with the other, and a model's own has all of its weights."""
    out.text(f"<Model: {_inspect(model).sentence}>")
