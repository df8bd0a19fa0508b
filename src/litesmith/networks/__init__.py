"""Mobile networks by name, as models: at any width, resolution and number of classes.

>>> from litesmith import catalogue
>>> catalogue.build("mobilenet_v1:0.25@128", classes=10).main.outputs[0].shape
(1, 10)
"""

from litesmith.networks.build_network import build
from litesmith.networks.load_weights import load_weights, save_weights
from litesmith.networks.network_table import ROWS, Published, Row
from litesmith.networks.spec import Spec, is_name, parse

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
