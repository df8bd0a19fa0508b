"""The file that a gate holds models against: what was measured of one, and what is allowed."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import zstandard

from litesmith.accuracy.paired import Rows
from litesmith.errors import BadInput, os_reason
from litesmith.evidence.codec import (
    Bounds,
    Count,
    Malformed,
    Mark,
    Positive,
    decode,
    dump,
    is_object,
    parse,
)
from litesmith.evidence.records import Environment
from litesmith.regression.comparison import Size
from litesmith.regression.gate_measures import Delegation, Scores, Timing
from litesmith.regression.gate_rules import QUANTITIES, Allowed
from litesmith.run.core.target import Target
from litesmith.tflite.file import write_whole

SCHEMA, KIND = 1, "litesmith gate baseline"

FileBytes = Annotated[int, Bounds(least=1)]
Named = Annotated[float, Mark.NAMED]  # a score may be infinite

_MOST_BYTES = 1 << 30  # of a baseline; one of a model with a million ops has less


@dataclass(frozen=True, eq=False)
class Baseline:
    """A model as it was measured.

    workload    its graph with made-up weights; "" where it cannot be timed
    untimed     why, where there is no timing
    unscored    why, where there are no scores
    allowed     how much worse each quantity may get
    """

    model: str
    digest: str
    target: Target
    size: Size
    peak_bytes: int | None
    delegations: tuple[Delegation, ...]
    workload: str
    timing: Timing | None
    scores: Scores | None
    allowed: Mapping[str, Allowed]
    host: Environment
    untimed: str = ""
    unscored: str = ""


@dataclass(frozen=True)
class PackedRows:
    """Results sample by sample as text: a bit each where they are right or wrong."""

    form: Literal["bits", "float32"]
    shape: tuple[FileBytes, FileBytes]
    zstd: str


@dataclass(frozen=True)
class BaselineTimes:
    """The time of a model, and of the workload that it took turns with, block by block."""

    us: Positive
    reference_us: Positive
    ratio: float
    low: float
    high: float | None
    block_ratios: Mapping[str, tuple[Positive, ...]]


@dataclass(frozen=True)
class BaselineScores:
    """The score of a model, and what it scored on each sample."""

    metric: str
    unit: str
    better: Literal[1, 0, -1]
    value: Named
    low: Named
    high: Named
    n: Count
    data: str
    data_digest: str
    preparation: str
    reference_digest: str
    rows: PackedRows


@dataclass(frozen=True)
class BaselineFile:
    """A baseline as its file has it; `allow` as typed."""

    schema: Literal[1]
    kind: Literal["litesmith gate baseline"]
    model: str
    digest: str
    target: str
    allow: Mapping[str, str]
    bytes: FileBytes
    gzip_bytes: FileBytes
    peak_bytes: Count | None
    delegation: tuple[Delegation, ...]
    latency: BaselineTimes | None
    no_latency: str
    accuracy: BaselineScores | None
    no_accuracy: str
    host: Environment
    workload: str


def write_baseline(path: Path, baseline: Baseline) -> None:
    """Writes the file whole or not at all."""
    text = dump(_file(baseline), indent=1)  # ASCII: any name of a file fits
    write_whole(path, [f"{text}\n".encode()])


def read_baseline(path: Path) -> Baseline:
    """The baseline in a file, or BadInput with what is wrong with it."""
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
        return _baseline(decode(BaselineFile, shown))
    except Malformed as error:
        raise BadInput(
            "{path}: is damaged ({told}); write it anew with --update", path, str(error)
        ) from None
    except BadInput as error:
        raise BadInput("{path}: {error}; write it anew with --update", path, error) from None


def kept_baseline(path: Path) -> Baseline | None:
    """What an update goes on from: None where there is no file, or a baseline that is damaged or
    of another version. A file that is no baseline is refused, so that none is written over."""
    if not path.exists():
        return None
    _refuse_other(path, _content(path) or {})
    try:
        return read_baseline(path)
    except BadInput:
        return None


def _content(path: Path) -> Mapping[str, object] | None:
    """The object in a file; None where it has no JSON."""
    try:
        if path.is_file() and path.stat().st_size > _MOST_BYTES:
            raise BadInput("{path}: is far too large for a baseline", path)
        shown = parse(path.read_bytes())
    except FileNotFoundError:
        raise BadInput("{path}: no such file; `litesmith gate --update` writes one", path) from None
    except IsADirectoryError:
        raise BadInput("{path}: is a folder; give the file of a baseline", path) from None
    except OSError as error:
        raise BadInput("{path}: cannot be read ({why})", path, os_reason(error)) from None
    except Malformed:
        return None
    return shown if is_object(shown) else {}


def _refuse_other(path: Path, shown: Mapping[str, object]) -> None:
    if shown.get("kind") != KIND:
        raise BadInput("{path}: is no baseline of `litesmith gate`; name another file", path)


def _file(one: Baseline) -> BaselineFile:
    return BaselineFile(
        schema=SCHEMA,
        kind=KIND,
        model=one.model,
        digest=one.digest,
        target=str(one.target),
        allow={name: allowed.typed for name, allowed in one.allowed.items()},
        bytes=one.size.bytes,
        gzip_bytes=one.size.gzip_bytes,
        peak_bytes=one.peak_bytes,
        delegation=one.delegations,
        latency=None if one.timing is None else _baseline_times(one.timing),
        no_latency=one.untimed,
        accuracy=None if one.scores is None else _baseline_scores(one.scores),
        no_accuracy=one.unscored,
        host=one.host,
        workload=one.workload,
    )


def _baseline_times(timing: Timing) -> BaselineTimes:
    return BaselineTimes(
        timing.us,
        timing.reference_us,
        timing.ratio.value,
        *timing.ratio.interval,
        block_ratios=timing.clocks,
    )


def _baseline_scores(scores: Scores) -> BaselineScores:
    return BaselineScores(
        metric=scores.metric,
        unit=scores.unit,
        better=1 if scores.better > 0 else -1 if scores.better < 0 else 0,
        value=scores.value,
        low=scores.low,
        high=scores.high,
        n=scores.count,
        data=scores.source,
        data_digest=scores.data,
        preparation=scores.preparation,
        reference_digest=scores.reference,
        rows=pack_rows(scores.rows),
    )


def pack_rows(rows: Rows) -> PackedRows:
    """Results sample by sample as text."""
    is_binary = bool(np.isin(rows, (0, 1)).all())
    content = np.packbits(rows.astype(bool)) if is_binary else rows.astype("<f4")
    squeezed = zstandard.ZstdCompressor(level=19).compress(content.tobytes())
    count, columns = rows.shape
    form = "bits" if is_binary else "float32"
    return PackedRows(form, (count, columns), base64.b64encode(squeezed).decode())


def unpack_rows(packed: PackedRows) -> Rows:
    """The results that were packed: (samples, statistics)."""
    count, columns = packed.shape
    is_binary = packed.form == "bits"
    wanted = -(-count * columns // 8) if is_binary else 4 * count * columns
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


def _baseline(file: BaselineFile) -> Baseline:
    target = Target.parse(file.target)
    _refuse_delegation(file.delegation, target)
    missing = [name for name in QUANTITIES if name not in file.allow]
    if missing:
        raise Malformed("allow", f'has no "{missing[0]}"')
    return Baseline(
        model=file.model,
        digest=file.digest,
        target=target,
        size=Size(file.bytes, file.gzip_bytes),
        peak_bytes=file.peak_bytes,
        delegations=file.delegation,
        workload=file.workload,
        timing=None if file.latency is None else _timing(file.latency),
        scores=None if file.accuracy is None else _scores(file.accuracy),
        allowed={name: Allowed.parse(name, file.allow[name]) for name in QUANTITIES},
        host=file.host,
        untimed=file.no_latency,
        unscored=file.no_accuracy,
    )


def _refuse_delegation(found: tuple[Delegation, ...], target: Target) -> None:
    """On the target, then on others; none leaves more ops than there are."""
    if not found or found[0].target != str(target):
        raise Malformed("delegation", f"says nothing of {target}")
    for one in found:
        if one.left > one.ops:
            raise Malformed("delegation", f"leaves {one.left} of {one.ops} ops")


def _timing(times: BaselineTimes) -> Timing:
    if not times.block_ratios or not all(times.block_ratios.values()):
        raise Malformed("latency.block_ratios", "has no ratios")
    return Timing(dict(times.block_ratios), times.us, times.reference_us)


def _scores(kept: BaselineScores) -> Scores:
    return Scores(
        kept.metric,
        kept.unit,
        kept.better,
        kept.value,
        kept.low,
        kept.high,
        unpack_rows(kept.rows),
        kept.data_digest,
        kept.data,
        kept.preparation,
        kept.reference_digest,
    )
