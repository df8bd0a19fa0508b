"""Mobile networks by name, as models: at any width, resolution and number of classes.

build_network.py      a network as a model
ds_cnn.py             DS-CNN
efficientnet_lite.py  EfficientNet-Lite
layer_builder.py      layers as papers write them
load_weights.py       the user's weights in a network (`READERS`)
loose_weights.py      layers of a weight file matched with those of a network
mobilenet.py          MobileNet v1, v2 and v3
network_table.py      the table (`ROWS`): defaults, and what was published
plug.py               what this room offers the rest of the package
resnet.py             ResNet
spec.py               `mobilenet_v2:0.5@160/10` as a value
weight_files.py       weights of an .npz, a .tflite or a torch state dict

Every network is float32 with batch normalization folded and ends in a mean (`embedding`), a fully
connected layer (`logits`) and a softmax (`scores`). TensorFlow pads an even image by one more
behind than before, torch by as much on both sides: a graph has a style, which the weights decide.
In torch's style paddings are ops of their own and the end is the logits.

This room can be taken away: the rest of the package knows `plug.py` alone, through one row of
`plugins.py`.

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
