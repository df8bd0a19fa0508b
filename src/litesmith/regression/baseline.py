"""The baseline of a gate: the measurements of one model, and the allowances for later ones."""

import base64
import binascii
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import zstandard

from litesmith.accuracy.paired import Rows
from litesmith.errors import BadInput, os_reason
from litesmith.evidence.codec import (
    Bounds,
    Count,
    Key,
    Malformed,
    Mark,
    Positive,
    Share,
    Stored,
    decode,
    dump,
    is_object,
    parse,
)
from litesmith.evidence.records import Environment
from litesmith.operating_system import free_memory_bytes, is_folder_error
from litesmith.regression.comparison import FileBytes, Size
from litesmith.regression.gate_rules import QUANTITIES, Allowed, Clocks
from litesmith.run.core.target import Target
from litesmith.tflite.file import write_whole
from litesmith.timing.statistics import Ratio, relative_width

SCHEMA, KIND = 1, "litesmith gate baseline"

Named = Annotated[float, Mark.NAMED]  # a score may be infinite

_MOST_BYTES = 1 << 30  # bytes of a baseline; that of a model with a million ops is smaller
_MOST_OF_MEMORY = 0.5  # bytes that results may unpack to


@dataclass(frozen=True)
class Delegation:
    """The part of a model that a delegate takes.

    left    the ops that the delegate does not take, with their kinds
    macs    the share of multiply-accumulates that it takes; 1 where there are none
    why     why the delegation is unknown, if it is
    """

    target: str
    how: str = ""
    ops: Count = 0
    left: Count = 0
    macs: Share = 0.0
    partitions: Count = 0
    kinds: Mapping[str, Count] = field(default_factory=dict[str, int])
    why: str = ""


@dataclass(frozen=True)
class Timing:
    """The model's time as a ratio to its reference workload's, and both times."""

    clocks: Clocks
    us: float
    reference_us: float

    @property
    def ratio(self) -> Ratio:
        """The ratio by the steadier clock."""
        return Ratio(min(self.clocks.values(), key=relative_width))


@dataclass(frozen=True)
class BaselineTimes:
    """The times of a model, and of the workload that took turns with it, block by block."""

    us: Positive
    reference_us: Positive
    ratio: float
    low: float
    high: float | None
    block_ratios: Mapping[str, tuple[Positive, ...]]


def _baseline_times(timing: Timing) -> BaselineTimes:
    return BaselineTimes(
        timing.us,
        timing.reference_us,
        timing.ratio.value,
        *timing.ratio.interval,
        block_ratios=timing.clocks,
    )


def _timing(times: BaselineTimes) -> Timing:
    if not times.block_ratios or not all(times.block_ratios.values()):
        raise Malformed("latency.block_ratios", "has no ratios")
    return Timing(dict(times.block_ratios), times.us, times.reference_us)


@dataclass(frozen=True)
class PackedRows:
    """Results sample by sample as text: one bit for each sample where results are right or
    wrong.
    """

    form: Literal["bits", "float32"]
    shape: tuple[FileBytes, FileBytes]
    zstd: str


def pack_rows(rows: Rows) -> PackedRows:
    """Packs results sample by sample into text."""
    is_binary = bool(np.isin(rows, (0, 1)).all())
    content = np.packbits(rows.astype(bool)) if is_binary else rows.astype("<f4")
    squeezed = zstandard.ZstdCompressor(level=19).compress(content.tobytes())
    count, columns = rows.shape
    form = "bits" if is_binary else "float32"
    return PackedRows(form, (count, columns), base64.b64encode(squeezed).decode())


def unpack_rows(packed: PackedRows) -> Rows:
    """Unpacks results into an array (samples, statistics)."""
    count, columns = packed.shape
    is_binary = packed.form == "bits"
    wanted = -(-count * columns // 8) if is_binary else 4 * count * columns
    if 8 * count * columns > _MOST_OF_MEMORY * (free_memory_bytes() or math.inf):
        raise Malformed("accuracy.rows", "has more results than there is memory for")
    try:
        squeezed = base64.b64decode(packed.zstd, validate=True)
        if zstandard.frame_content_size(squeezed) != wanted:
            raise Malformed("accuracy.rows", "has results of another size")
        content = zstandard.ZstdDecompressor().decompress(squeezed)
    except (binascii.Error, zstandard.ZstdError, ValueError) as error:
        raise Malformed("accuracy.rows", f"cannot be unpacked: {error}") from None
    if is_binary:
        flat = np.unpackbits(np.frombuffer(content, np.uint8), count=count * columns)
    else:
        flat = np.frombuffer(content, "<f4")
    return flat.astype(np.float64).reshape(count, columns)


@dataclass(frozen=True, eq=False)
class Scores:
    """A metric with each sample's contribution, in an order that depends on the samples' contents
    alone.

    source     the name of the data
    data       a digest of the samples and their labels, whatever their order and preparation
    reference  a digest of the model compared with; "" where there are labels
    rows       (samples, statistics), rounded to float32 so that a file holds all of them
    """

    metric: str
    unit: str
    better: Annotated[int, Bounds(-1, 1)]
    value: Named
    low: Named
    high: Named
    count: Annotated[Count, Key("n")]
    source: Annotated[str, Key("data")]
    data: Annotated[str, Key("data_digest")]
    preparation: str
    reference: Annotated[str, Key("reference_digest")]
    rows: Annotated[Rows, Stored(PackedRows, pack_rows, unpack_rows)]


def _allowed_as_text(allowed: Mapping[str, Allowed]) -> dict[str, str]:
    return {name: one.typed for name, one in allowed.items()}


def _read_allowed(typed: Mapping[str, str]) -> dict[str, Allowed]:
    missing = [name for name in QUANTITIES if name not in typed]
    if missing:
        raise Malformed("allow", f'has no "{missing[0]}"')
    return {name: Allowed.parse(name, typed[name]) for name in QUANTITIES}


@dataclass(frozen=True, eq=False, kw_only=True)
class Baseline:
    """The measurements of a model.

    allowed     how much worse each quantity may get
    untimed     why there is no timing, if there is none
    unscored    why there are no scores, if there are none
    workload    the model's graph with made-up weights; "" where it cannot be timed
    """

    schema: Literal[1] = SCHEMA
    kind: Literal["litesmith gate baseline"] = KIND
    model: str
    digest: str
    target: Annotated[Target, Stored(str, str, Target.parse)]
    allowed: Annotated[
        Mapping[str, Allowed],
        Key("allow"),
        Stored(Mapping[str, str], _allowed_as_text, _read_allowed),
    ]
    size: Annotated[Size, Mark.FLAT]
    peak_bytes: Count | None
    delegations: Annotated[tuple[Delegation, ...], Key("delegation")]
    timing: Annotated[
        Timing | None, Key("latency"), Stored(BaselineTimes, _baseline_times, _timing)
    ]
    untimed: Annotated[str, Key("no_latency")] = ""
    scores: Annotated[Scores | None, Key("accuracy")]
    unscored: Annotated[str, Key("no_accuracy")] = ""
    host: Environment
    workload: str


def write_baseline(path: Path, baseline: Baseline) -> None:
    """Writes the file whole or not at all."""
    text = dump(baseline, indent=1)  # ASCII can hold any file name
    write_whole(path, [f"{text}\n".encode()])


def read_baseline(path: Path) -> Baseline:
    """Reads a baseline; raises BadInput with what is wrong with the file."""
    shown = _content(path)
    if shown is None:
        raise BadInput("{path}: is no JSON, so no baseline; --update writes one", path)
    _refuse_other(path, shown)
    if shown.get("schema") != SCHEMA:
        raise BadInput(
            "{path}: has the schema {schema}, and this version reads {schema2}; write it "
            "anew with --update",
            path,
            shown.get("schema"),
            SCHEMA,
        )
    try:
        found = decode(Baseline, shown)
        _refuse_delegation(found.delegations, found.target)
        return found
    except Malformed as error:
        raise BadInput(
            "{path}: is damaged ({told}); write it anew with --update", path, str(error)
        ) from None
    except BadInput as error:
        raise BadInput("{path}: {error}; write it anew with --update", path, error) from None


def baseline_to_update(path: Path) -> Baseline | None:
    """The baseline from which an update starts; None where the file is missing, damaged or of
    another version. A file that is no baseline is refused, so that it is not overwritten.
    """
    if not path.exists():
        return None
    _refuse_other(path, _content(path) or {})
    try:
        return read_baseline(path)
    except BadInput:
        return None


def _content(path: Path) -> Mapping[str, object] | None:
    """The object in a file; None where the file is not JSON."""
    try:
        if path.is_file() and path.stat().st_size > _MOST_BYTES:
            raise BadInput("{path}: is far too large for a baseline", path)
        shown = parse(path.read_bytes())
    except FileNotFoundError:
        raise BadInput("{path}: no such file; `litesmith gate --update` writes one", path) from None
    except OSError as error:
        if is_folder_error(error, path):
            raise BadInput("{path}: is a folder; give the file of a baseline", path) from None
        raise BadInput("{path}: cannot be read ({why})", path, os_reason(error)) from None
    except Malformed:
        return None
    return shown if is_object(shown) else {}


def _refuse_other(path: Path, shown: Mapping[str, object]) -> None:
    if shown.get("kind") != KIND:
        raise BadInput("{path}: is no baseline of `litesmith gate`; name another file", path)


def _refuse_delegation(found: tuple[Delegation, ...], target: Target) -> None:
    """Refuses records that do not begin with the target, or leave more ops than there are."""
    if not found or found[0].target != str(target):
        raise Malformed("delegation", f"says nothing of {target}")
    for one in found:
        if one.left > one.ops:
            raise Malformed("delegation", f"leaves {one.left} of {one.ops} ops")
