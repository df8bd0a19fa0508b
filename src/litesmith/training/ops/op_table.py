"""The torch op table: what each op computes, differentiably, one row a kind.

TORCH_OPS[kind](op, *inputs) gives one value or a list of them. An input is a torch tensor where it
stands for real numbers, a numpy array where it does not, None where it is left out; at least one
is a torch tensor. Quantized numbers are real here, so converting to and from them does nothing.
"""

from litesmith.training.ops.elementwise_ops import EACH
from litesmith.training.ops.layer_ops import LAYERS
from litesmith.training.ops.op_values import TorchOp
from litesmith.training.ops.recurrent import RECURRENT
from litesmith.training.ops.shape_ops import SHAPE

TORCH_OPS: dict[str, TorchOp] = {**EACH, **LAYERS, **RECURRENT, **SHAPE}
