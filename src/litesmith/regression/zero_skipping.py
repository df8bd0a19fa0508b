"""Who skips the zeros of a model, op by op, for JSON."""

from litesmith.anatomy.sparse_speedup import skipping
from litesmith.ir.model_text import op_name
from litesmith.ir.types import Model
from litesmith.passes.shrinking.arm_sparse import arm_sparse
from litesmith.run.core.target import LITESMITH, Target
from litesmith.units import plain

Json = dict[str, object]

OURS = str(Target("cpu", 1, LITESMITH))


def arm_facts(model: Model) -> list[Json]:
    """For each convolution, whether XNNPACK on ARM skips its zeros, and why not."""
    return [
        {"op": plain(op_name(op)), "sparse": not why, "why": why}
        for op, why in arm_sparse(model.main).items()
    ]


def skipping_facts(model: Model) -> list[Json]:
    """For each layer, the zeros that make it faster with kernels of ours; `even` is None where it
    is never faster."""
    return [
        {
            "op": plain(op_name(one.op)),
            "index": one.place,
            "zero_blocks": one.facts.zeros,
            "even": one.facts.even,
            "gain": one.facts.gain,
            "target": OURS,
        }
        for one in skipping(model)
    ]
