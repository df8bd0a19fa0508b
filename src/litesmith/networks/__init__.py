"""Mobile networks by name, as models: at any width, resolution and number of classes.

>>> from litesmith import networks
>>> networks.build("mobilenet_v1:0.25@128", classes=10).main.outputs[0].shape
(1, 10)
"""

from litesmith.known_networks import Published
from litesmith.networks.build_network import build
from litesmith.networks.load_weights import load_weights, save_weights
from litesmith.networks.network_table import ROWS, Row, families
from litesmith.networks.spec import Spec, at_size, is_name, parse

__all__ = [
    "ROWS",
    "Published",
    "Row",
    "Spec",
    "at_size",
    "build",
    "families",
    "is_name",
    "load_weights",
    "parse",
    "save_weights",
]
