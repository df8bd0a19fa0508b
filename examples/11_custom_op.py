"""An operator of your own: numpy says what it means, loops that numba compiles make it fast."""

import numpy as np

import litesmith


@litesmith.op("HardMish")
def hard_mish(x):
    return x / 2 * np.clip(x + 2, 0, 2)


@hard_mish.native  # used where numba is installed: pip install litesmith[jit]
def _(x, out):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] / 2 * min(max(x[i, j] + 2, 0), 2)


b = litesmith.Builder()
model = b.model(hard_mish.add(b, b.op("NEG", b.input("x", (1, 3)))))
with litesmith.Session(model) as session:
    session.inputs["x"] = [[3, 1, -1]]
    session.run()
    print(session.note or "as machine code", *session.outputs.values())
