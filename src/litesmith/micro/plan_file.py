"""A model with a plan of its own in the file: ordered, planned, proven, then written."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from litesmith.errors import BadInput, BadModel
from litesmith.ir.edit import OVERLAP_NOTE, drop_plan
from litesmith.ir.types import Model, frozen
from litesmith.micro.arena import DEVICE, list_requests
from litesmith.micro.buffers import Buffer, list_buffers, live_bytes
from litesmith.micro.greedy_plan import MemoryPlan, plan_greedily
from litesmith.micro.offline_plan import read_offsets, write_offsets
from litesmith.micro.op_order import reorder_ops
from litesmith.micro.tight_plan import Shared, find_clashes, list_shared, plan_tightly

OVERLAPS = ("none", "reference")


@dataclass(frozen=True, eq=False)
class PlannedModel:
    """A model with a plan, and the value of the plan.

    own    the bytes of the interpreter's own plan for the original file
    bytes  the bytes with this plan, including the scratch that the interpreter adds
    bound  the bytes live at one tick in this order: no plan without overlaps is smaller
    is_reorderedTrue where the ops are in another order
    overlapthe kernels whose order of reading and writing the plan relies on; "none" for any
    """

    model: Model
    own: int
    bytes: int
    bound: int
    is_reordered: bool
    overlap: str


def plan_model(model: Model, overlap: str = "none") -> PlannedModel:
    """The model in its best order, with a proven plan where that takes less than the interpreter's
    own.
    """
    if overlap not in OVERLAPS:
        raise BadInput("overlap {what!r}: there is {known}", overlap, ", ".join(OVERLAPS))
    given = drop_plan(model)
    own = plan_greedily(list_buffers(given, list_requests(given))).bytes
    ordered = reorder_ops(given)
    buffers = list_buffers(ordered, list_requests(ordered))
    shared = list_shared(ordered, buffers) if overlap == "reference" else {}
    plan = plan_tightly(buffers, shared)
    prove(plan, shared)
    bound = max(live_bytes(buffers).values(), default=0)
    followed = follow_plan(plan)
    stock = plan_greedily(buffers)
    if followed.bytes >= stock.bytes:
        return PlannedModel(ordered, own, stock.bytes, bound, ordered is not given, "none")
    prove(followed, shared)
    offsets = {b.tensor: at for b, at in zip(plan.buffers, plan.offsets, strict=True) if b.tensor}
    written = write_offsets(ordered, offsets)
    if find_clashes(plan):
        note = frozen(np.frombuffer(overlap.encode(), np.uint8).copy())
        written = replace(written, metadata=(*written.metadata, (OVERLAP_NOTE, note)))
    used = overlap if find_clashes(plan) else "none"
    return PlannedModel(written, own, followed.bytes, bound, ordered is not given, used)


def follow_plan(plan: MemoryPlan) -> MemoryPlan:
    """The interpreter's version of a plan: tensors at their places, scratch in the gaps."""
    return plan_greedily(plan.buffers, _fixed(plan))


def _fixed(plan: MemoryPlan) -> Mapping[Buffer, int]:
    placed = zip(plan.buffers, plan.offsets, strict=True)
    return MappingProxyType({one: at for one, at in placed if not one.is_scratch})


def prove(plan: MemoryPlan, shared: Shared) -> None:
    """Raises where two values that are both needed would share a byte."""
    clashes = find_clashes(plan, shared)
    if clashes:
        one, other = (c.tensor.name if c.tensor is not None else "scratch" for c in clashes[0])
        raise BadModel("the plan lets {one!r} and {other!r} share memory", one, other)


def check_file(model: Model) -> None:
    """Raises where a plan in the file would let values destroy each other: TensorFlow Lite Micro
    itself does not check.
    """
    offsets = read_offsets(model)
    if offsets is None:
        return
    buffers = list_buffers(model, list_requests(model, DEVICE))
    fixed = {b: offsets[b.tensor] for b in buffers if b.tensor is not None and b.tensor in offsets}
    prove(plan_greedily(buffers, fixed), list_shared(model, buffers))
