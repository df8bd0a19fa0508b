"""Cluster a model, quantize it to int8, and learn back from the float model what that cost."""

import sys

import numpy as np

import litesmith


def samples():
    """What your application feeds the model; here noise stands in for it."""
    random = np.random.default_rng(0)
    for _ in range(64):
        yield [random.normal(0, 1, tensor.shape).astype(np.float32) for tensor in model.main.inputs]


model = litesmith.load(sys.argv[1])
training = litesmith.Training(epochs=2, seed=1)
change = litesmith.apply(model, "cluster(k=16) | qat(to=int8)", samples, training=training)
litesmith.save(change.model, sys.argv[2])
print(*change.touched, *change.notes, sep="\n")
