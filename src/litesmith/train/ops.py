"""The torch op table: what each op computes, differentiably, one row a kind.

OPS[kind](op, *inputs) gives one value or a list of them. An input is a torch tensor where it
stands for real numbers, a numpy array where it does not, None where it is left out; at least one
is a torch tensor. Quantized numbers are real here, so converting to and from them does nothing.
"""

from litesmith.train.ops_each import EACH
from litesmith.train.ops_layers import LAYERS
from litesmith.train.ops_recurrent import RECURRENT
from litesmith.train.ops_shape import SHAPE
from litesmith.train.ops_values import TorchOp

OPS: dict[str, TorchOp] = {**EACH, **LAYERS, **RECURRENT, **SHAPE}
