"""The measurements of a gate: delegation, results sample by sample, time against a workload.

A time is the ratio to a reference workload that takes turns with the model, by two clocks. The wall
clock is finer, but includes the time that other programs take. The processor's clock counts only
what this process received, so it holds on a busy machine, where a run of milliseconds is never left
alone; with several threads it would count their waiting too, and is not used.
"""

import base64
import binascii
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import groupby
from math import exp, log
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import zstandard

from litesmith.accuracy.evaluate import Evaluation, evaluate_all
from litesmith.accuracy.metrics import metric_named
from litesmith.accuracy.paired import Groups
from litesmith.anatomy.anonymous import anonymize
from litesmith.anatomy.footprint import op_macs
from litesmith.data.sample_splits import row_groups
from litesmith.data.samples import Data
from litesmith.diagnosis.accelerator_fit import place_on
from litesmith.errors import BadInput, BadModel, CannotRun
from litesmith.ir.dtype import DTYPES
from litesmith.ir.edit import rewrite, with_graphs
from litesmith.ir.types import Array, Model, Tensor, memory_place
from litesmith.operating_system import free_memory_bytes
from litesmith.phrases import phrase
from litesmith.profiling.events import CUSTOM, OWN
from litesmith.profiling.op_times import OpTime, profile_ops
from litesmith.progress import Progress, silent
from litesmith.regression.baseline import Delegation, Scores, Timing
from litesmith.regression.gate_rules import Allowed, Clocks, join_clocks
from litesmith.run.accelerators.targets import placed, with_custom
from litesmith.run.core.placement import MEASURED, Placement
from litesmith.run.core.target import LITESMITH, Target
from litesmith.tflite.file import digest, load
from litesmith.tflite.write import to_bytes
from litesmith.timing.latency import Bench, Result, Rule, list_contenders, measure, ratio
from litesmith.timing.memory import peak_bytes
from litesmith.timing.statistics import relative_width, turns_ratio
from litesmith.units import bytes_text

WALL, PROCESSOR = "wall", "processor"

# The rank of the run that represents a load: the least disturbed runs tell most about the model.
_RANK = 25
_CHUNK_SECONDS = 1.5
MOST_SECONDS = 60.0

# A baseline is timed until its interval has this relative width, or for this many seconds.
_WIDTH, _BASELINE_SECONDS = 0.01, 20.0

_MEMORY_TRIES = 3

# The weights of a workload repeat after this many values, so that they compress to almost nothing.
# A prime number fits no tile of a kernel.
_PERIOD = 61
_LEVEL = 19

# What is unpacked is copied later on. Windows does not tell how much memory is free.
_MOST_OF_MEMORY, _USUAL_MEMORY = 0.5, 8_000_000_000


@dataclass(frozen=True)
class GateSettings:
    """How a gate measures a model.

    on       the target; None for the baseline's target, or cpu:1 for a new baseline
    against  the model to compare with where there are no labels
    allow    the allowances from now on, by quantity
    places   accelerators whose delegation is reported too
    seconds  the longest time for timing the model
    """

    on: Target | None = None
    metric: str = "auto"
    against: Path | None = None
    allow: Mapping[str, Allowed] = field(default_factory=dict[str, Allowed])
    places: tuple[str, ...] = ()
    seconds: float = MOST_SECONDS
    progress: Progress = silent


def delegation(source: Path, model: Model, target: Target) -> Delegation:
    """The ops that XNNPACK takes, or the accelerator that the target names."""
    name = str(target)
    if target.kind == "numpy" or target.kernels in ("builtin", "reference"):
        return Delegation(name, why=phrase("{name} has no delegate", name))
    if target.kind == "cpu" and target.kernels != LITESMITH:
        return _by_profile(source, target)
    wanted = f"custom:{target.kernels}" if target.kind == "custom" else target.kind
    known = {one.name: one for one in with_custom()}
    delegate = known["cpu:1:litesmith" if target.kind == "cpu" else wanted]
    return _of_placement(name, model, placed(delegate, model))


def delegation_for(name: str, model: Model) -> Delegation:
    """The ops that an accelerator takes, by its compiler or by rules."""
    found = place_on(model, name)
    return _of_placement(found.target, model, found)


def _of_placement(name: str, model: Model, found: Placement | None) -> Delegation:
    if found is None:
        return Delegation(name, why=phrase("{name} takes whatever it is given", name))
    macs = [op_macs(op) for op in model.main.ops]
    return _count_delegated(
        Delegation(name, found.how, partitions=found.partitions),
        [(home.kind, home.taken, macs[home.place]) for home in found.homes],
    )


def _by_profile(source: Path, target: Target) -> Delegation:
    """The ops that XNNPACK takes, according to the runtime's own events."""
    name = str(target)
    try:
        found = profile_ops(source, target, runs=1)
    except CannotRun as error:
        return Delegation(name, why=str(error))
    ops = [op for op in found.ops if op.graph == found.entry]
    rows = [(op.kind, _is_taken(op, ops), op.macs) for op in ops]
    partitions = sum(taken for taken, _ in groupby(taken for _, taken, _ in rows))
    return _count_delegated(Delegation(name, MEASURED, partitions=partitions), rows)


def _is_taken(op: OpTime, ops: list[OpTime]) -> bool:
    """True where no kernel of the runtime itself runs the op; a fused op counts with the op that
    contains it."""
    home = op if op.fused_into is None else ops[op.fused_into]
    return home.kernel not in (OWN, CUSTOM)


def _count_delegated(found: Delegation, rows: list[tuple[str, bool, int]]) -> Delegation:
    left = Counter(kind for kind, taken, _ in rows if not taken)
    total = sum(macs for _, _, macs in rows)
    taken = sum(macs for _, is_taken, macs in rows if is_taken)
    return Delegation(
        found.target,
        found.how,
        ops=len(rows),
        left=left.total(),
        macs=taken / total if total else 1.0,
        partitions=found.partitions,
        kinds=dict(left.most_common()),
    )


def list_delegations(
    model: Path, content: Model, target: Target, places: tuple[str, ...]
) -> tuple[Delegation, ...]:
    """The delegation on the target first, then on the accelerators."""
    own = delegation(model, content, target)
    return own, *(delegation_for(name, content) for name in places)


def groups_by_contents(data: Data, count: int) -> Groups:
    """The group of each row of results, in the order of the rows of scores."""
    items, groups = _item_digests(data), row_groups(data, count)
    if groups is None or len(items) != count:
        return groups
    return groups[np.argsort(np.array(items), kind="stable")]


def _scores(found: Evaluation, data: Data, reference: str = "") -> Scores:
    """Converts an evaluation to scores that can be compared with another's."""
    assert found.rows is not None
    items = _item_digests(data)
    rows = found.rows.astype(np.float32).astype(np.float64)
    if len(items) == len(rows):
        rows = rows[np.argsort(np.array(items), kind="stable")]
    return Scores(
        found.metric,
        found.unit,
        metric_named(found.metric).better,
        found.value,
        found.low,
        found.high,
        len(rows),
        found.source,
        data_digest(data),
        found.preparation,
        reference,
        rows,
    )


def score_model(model: Path, data: Data, target: Target, manner: GateSettings) -> Scores:
    reference = manner.against
    (found,) = evaluate_all(
        [model],
        data,
        against=reference,
        metric=manner.metric,
        on=target,
        progress=manner.progress,
    )
    needs_reference = metric_named(found.metric).needs == "reference"
    held = digest(reference) if reference is not None and needs_reference else ""
    return _scores(found, data, held)


def _item_digests(data: Data) -> tuple[str, ...]:
    """A digest of each item and its label; none where the data does not know its items."""
    stored = data.items.stored
    return () if stored is None else stored.labelled_digests


def data_digest(data: Data) -> str:
    """A digest of all items and labels, independent of their order and preparation."""
    items = _item_digests(data)
    return sha256("\n".join(sorted(items)).encode()).hexdigest() if items else data.digest


def timing_chunks(
    reference: Path, model: Path, target: Target, seconds: float, progress: Progress = silent
) -> Iterator[Timing]:
    """Times the model in turns with the workload, chunk by chunk, each chunk with loads of
    its own."""
    start, seed = perf_counter(), 0
    while not seed or perf_counter() - start < seconds:
        group = list_contenders([reference, model], target)
        rule = Rule(seconds=min(_CHUNK_SECONDS, seconds), seed=seed)
        yield _timing(measure(group, rule, progress, memory=False), target)
        seed += 1


def _timing(done: Bench, target: Target) -> Timing:
    reference, model = done.results
    clocks = {WALL: ratio(reference, model, _RANK).blocks}
    if target.kind == "cpu" and target.threads == 1:
        clocks |= _processor_clock(reference, model)
    return Timing(clocks, model.percentile_us(50), reference.percentile_us(50))


def _processor_clock(reference: Result, model: Result) -> dict[str, tuple[float, ...]]:
    """The ratio of processor times for each pair of mirrored loads; none where that clock is
    coarse."""
    logs: list[float] = []
    for pair in zip(reference.loads, model.loads, strict=True):
        turns = list(zip(*(load.turns for load in pair), strict=True))
        a, b = ([turn[side].cpu_us for turn in turns] for side in (0, 1))
        if not all(us > 0 for us in (*a, *b)):
            return {}
        led = [first.position < second.position for first, second in turns]
        logs.append(log(turns_ratio(a, b, led)))
    pairs = zip(logs[::2], logs[1::2], strict=True)
    return {PROCESSOR: tuple(exp((first + second) / 2) for first, second in pairs)}


def join_timings(timings: list[Timing]) -> Timing:
    """Joins several timings into one."""
    clocks: Clocks = {}
    for timing in timings:
        clocks = join_clocks(clocks, timing.clocks)
    us, reference_us = (
        median(getattr(timing, name) for timing in timings) for name in ("us", "reference_us")
    )
    return Timing(clocks, us, reference_us)


def baseline_timing(
    reference: Path, model: Path, target: Target, seconds: float, progress: Progress = silent
) -> Timing:
    """Times until the interval is narrow, because every later gate compares with this timing."""
    timings: list[Timing] = []
    seconds = min(seconds, _BASELINE_SECONDS)
    for timing in timing_chunks(reference, model, target, seconds, progress):
        timings.append(timing)
        if relative_width(join_timings(timings).ratio.blocks) <= _WIDTH:
            break
    return join_timings(timings)


def least_peak_bytes(model: str | os.PathLike[str], target: Target, enough: float) -> int | None:
    """The least peak of a few tries; stops once a peak does not exceed `enough`."""
    peaks: list[int] = []
    for _ in range(_MEMORY_TRIES):
        peak = peak_bytes(model, target)
        if peak is None:
            return None
        peaks.append(peak)
        if peak <= enough:
            break
    return min(peaks)


# The work of a model as a small text: its graph with made-up weights. The runtime's kernels take
# the same time for any weights, so so the graph of a baseline, timed in turns with the present
# model, tells how long the baseline's model would take on the present machine.


def pack_workload(model: Model) -> str:
    """Packs the graph, with random constants of the same range that soon repeat."""
    content = to_bytes(_with_repeated_weights(anonymize(model, keep_custom_options=True)))
    squeezed = zstandard.ZstdCompressor(level=_LEVEL).compress(content)
    return base64.b64encode(squeezed).decode()


def unpack_workload(text: str) -> bytes:
    """Unpacks the .tflite."""
    try:
        squeezed = base64.b64decode(text, validate=True)
        size = zstandard.frame_content_size(squeezed)
        if size < 1:
            raise BadInput("the reference workload has no size")
        if size > _MOST_OF_MEMORY * (free_memory_bytes() or _USUAL_MEMORY):
            raise BadInput(
                "the reference workload unpacks to {size}, more than there is memory for",
                bytes_text(size),
            )
        content = zstandard.ZstdDecompressor().decompress(squeezed)
        load(content)
    except (binascii.Error, ValueError, zstandard.ZstdError, BadModel) as error:
        raise BadInput("the reference workload is damaged ({error})", error) from None
    return content


def _with_repeated_weights(model: Model) -> Model:
    made: dict[tuple[int, int], Array] = {}  # constants that share bytes share the new ones too
    tensors: dict[Tensor, Tensor] = {}
    for graph in model.graphs:
        for tensor in graph.tensors:
            if tensor.data is not None and _is_weight(tensor):
                place = memory_place(tensor.data)
                if place not in made:
                    made[place] = _tile(tensor.data)
                content = made[place].reshape(tensor.data.shape)
                tensors[tensor] = replace(tensor, data=content)
    graphs = [rewrite(graph, tensors=tensors) for graph in model.graphs]
    return with_graphs(model, graphs, tensors)


def _is_weight(tensor: Tensor) -> bool:
    """True for large real tensors; sparse tensors stay, because their pattern is what takes
    room."""
    is_real = DTYPES[tensor.dtype].is_float or tensor.quant is not None
    return is_real and tensor.sparsity is None and tensor.elements > _PERIOD


def _tile(values: Array) -> Array:
    """Repeats the first values over and over; the shape stays."""
    made = np.resize(values.reshape(-1)[:_PERIOD], values.shape)
    made.setflags(write=False)
    return made
