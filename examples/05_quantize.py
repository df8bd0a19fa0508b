"""Quantize a model on data of your own, and say what it cost against the float one."""

import sys

import numpy as np

import litesmith


def samples():
    """What your application feeds the model; here noise stands in for it."""
    random = np.random.default_rng(0)
    for _ in range(64):
        yield [random.normal(0, 1, tensor.shape).astype(np.float32) for tensor in model.main.inputs]


model = litesmith.load(sys.argv[1])
change = litesmith.apply(model, "fuse | quantize(to=int8) | correct", samples)
litesmith.save(change.model, sys.argv[2])
for skip in change.skipped:
    print(f"left alone: {skip.where}: {skip.why}")
found = litesmith.evaluate(sys.argv[2], samples, against=sys.argv[1], metric="snr")
print(f"{found.metric} {found.value:.1f} {found.unit} on {found.n} samples")
