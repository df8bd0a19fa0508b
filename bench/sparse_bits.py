"""Random sparse int8 layers: our kernels beside the runtime's, bit by bit, on whatever CPU this is.

python -m bench.sparse_bits 300
tools/arm FOLDER --shell 'python -m bench.sparse_bits 300'
NUMBA_CPU_NAME=neoverse-n1 NUMBA_CPU_FEATURES=+neon,+dotprod python -m bench.sparse_bits 24
"""

import sys

import numpy as np

from litesmith.kernels.programs.prepare_sparse import sparse_layer
from litesmith.kernels.programs.program import Program
from litesmith.native.tiles import CPU
from litesmith.operating_system import cpu_name
from tests.kernels.one_op import numbers, runtime
from tests.kernels.test_sparse_int8_kernels import layer, pruned

KINDS = ("CONV_2D", "FULLY_CONNECTED")
ROWS = (5, 16, 70, 1)
ZEROS = (0.0, 0.5, 0.9)


def differences(seed: int) -> int:
    """Outputs of one random layer that are not the runtime's."""
    rng = np.random.default_rng(seed)
    shape = int(rng.integers(16, 60)), 4 * int(rng.integers(32, 60))
    weights = pruned(rng, shape, ZEROS[seed % 3])
    model = layer(KINDS[seed % 2], ROWS[seed // 2 % 4], weights, rng)
    program = Program((sparse_layer(model.main.ops[0]),), model.main.inputs, model.main.outputs)
    x = numbers(rng, program.inputs[0].shape, "int8")
    (expected,) = runtime(model, [x])
    return int((program.run([x], threads=1)[0] != expected).sum())


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    wrong = [seed for seed in range(count) if differences(seed)]
    print(f"{cpu_name()}, {CPU}: {count - len(wrong)} of {count} layers have the runtime's bits")
    if wrong:
        raise SystemExit(f"others: {wrong}")


if __name__ == "__main__":
    main()
