"""Mobile networks by name, as models: at any width, resolution and number of classes.

>>> from litesmith import catalogue
>>> catalogue.build("mobilenet_v1:0.25@128", classes=10).main.outputs[0].shape
(1, 10)
"""

from litesmith.catalogue.made import build
from litesmith.catalogue.rows import ROWS, Published, Row
from litesmith.catalogue.spec import Spec, is_name, parse
from litesmith.catalogue.weights import load_weights, save_weights

__all__ = [
    "ROWS",
    "Published",
    "Row",
    "Spec",
    "build",
    "is_name",
    "load_weights",
    "parse",
    "save_weights",
]
