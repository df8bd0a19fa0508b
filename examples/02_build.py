"""A model in ten lines, written to a file that LiteRT runs."""

import sys

import numpy as np

import litesmith

random = np.random.default_rng(0)
b = litesmith.Builder()
x = b.input("image", (1, 32, 32, 3))
filters = random.normal(0, 0.2, (8, 3, 3, 3)).astype(np.float32)
x = b.op("CONV_2D", x, filters, np.zeros(8, np.float32), stride_h=2, stride_w=2)
x = b.op("MEAN", b.op("RELU", x), [1, 2])
x = b.op(
    "FULLY_CONNECTED",
    x,
    random.normal(0, 0.5, (10, 8)).astype(np.float32),
    np.zeros(10, np.float32),
)
litesmith.save(b.model(b.op("SOFTMAX", x, name="scores"), signature="serving_default"), sys.argv[1])
