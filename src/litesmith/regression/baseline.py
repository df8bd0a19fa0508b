"""The file that a gate holds models against: what was measured of one, and what is allowed."""

import base64
import binascii
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

import numpy as np
import zstandard

from litesmith.accuracy.paired import Rows
from litesmith.errors import BadInput, os_reason
from litesmith.phrases import phrase
from litesmith.regression.comparison import Size
from litesmith.regression.gate_measures import Delegation, Scores, Timing
from litesmith.regression.gate_rules import QUANTITIES, Allowed
from litesmith.run.core.target import Target
from litesmith.tflite.file import write_whole

SCHEMA, KIND = 1, "litesmith gate baseline"

Json = dict[str, object]
Facts = Mapping[str, object]

_MOST_BYTES = 1 << 30  # of a baseline; one of a model with a million ops has less
_MOST = 1 << 62  # of anything that is counted


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
    host: Facts
    untimed: str = ""
    unscored: str = ""


def write_baseline(path: Path, baseline: Baseline) -> None:
    """Writes the file whole or not at all."""
    text = json.dumps(_shown(baseline), indent=1, allow_nan=False)  # ASCII: any name of a file fits
    write_whole(path, [f"{text}\n".encode()])


def read_baseline(path: Path) -> Baseline:
    """The baseline in a file, or BadInput with what is wrong with it."""
    facts = _content(path)
    if facts is None:
        raise BadInput("{path}: is no JSON, so no baseline; --update writes one", path)
    _refuse_other(path, facts)
    if facts.get("schema") != SCHEMA:
        raise BadInput(
            "{path}: has the schema {schema}, and this version reads {schema2}; write it "
            "anew with --update",
            path,
            facts.get("schema"),
            SCHEMA,
        )
    try:
        return _baseline(facts)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        told = f"{type(error).__name__}: {error}"
        raise BadInput(
            "{path}: is damaged ({told}); write it anew with --update", path, told
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


def _content(path: Path) -> Json | None:
    """The object in a file; None where it has no JSON."""
    try:
        if path.is_file() and path.stat().st_size > _MOST_BYTES:
            raise BadInput("{path}: is far too large for a baseline", path)
        shown: object = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise BadInput("{path}: no such file; `litesmith gate --update` writes one", path) from None
    except IsADirectoryError:
        raise BadInput("{path}: is a folder; give the file of a baseline", path) from None
    except OSError as error:
        raise BadInput("{path}: cannot be read ({why})", path, os_reason(error)) from None
    except (ValueError, RecursionError):
        return None
    return cast(Json, shown) if isinstance(shown, dict) else {}


def _refuse_other(path: Path, facts: Facts) -> None:
    if facts.get("kind") != KIND:
        raise BadInput("{path}: is no baseline of `litesmith gate`; name another file", path)


def _shown(one: Baseline) -> Json:
    return {
        "schema": SCHEMA,
        "kind": KIND,
        "model": one.model,
        "digest": one.digest,
        "target": str(one.target),
        "allow": {name: allowed.typed for name, allowed in one.allowed.items()},
        "bytes": one.size.bytes,
        "gzip_bytes": one.size.gzip_bytes,
        "peak_bytes": one.peak_bytes,
        "delegation": [asdict(found) for found in one.delegations],
        "latency": None if one.timing is None else _shown_timing(one.timing),
        "no_latency": one.untimed,
        "accuracy": None if one.scores is None else _shown_scores(one.scores),
        "no_accuracy": one.unscored,
        "host": dict(one.host),
        "workload": one.workload,
    }


def _shown_timing(timing: Timing) -> Json:
    low, high = timing.ratio.interval
    return {
        "us": timing.us,
        "reference_us": timing.reference_us,
        "ratio": timing.ratio.value,
        "low": low,
        "high": high if math.isfinite(high) else None,
        "block_ratios": {clock: list(blocks) for clock, blocks in timing.clocks.items()},
    }


def _shown_scores(scores: Scores) -> Json:
    return {
        "metric": scores.metric,
        "unit": scores.unit,
        "better": scores.better,
        "value": _finite(scores.value),
        "low": _finite(scores.low),
        "high": _finite(scores.high),
        "n": scores.count,
        "data": scores.source,
        "data_digest": scores.data,
        "preparation": scores.preparation,
        "reference_digest": scores.reference,
        "rows": packed_rows(scores.rows),
    }


def _finite(value: float) -> float | str:
    """A number as JSON has it; the others by name."""
    return value if math.isfinite(value) else str(value)


def packed_rows(rows: Rows) -> Json:
    """Results sample by sample as text: a bit each where they are right or wrong."""
    is_binary = bool(np.isin(rows, (0, 1)).all())
    content = np.packbits(rows.astype(bool)) if is_binary else rows.astype("<f4")
    squeezed = zstandard.ZstdCompressor(level=19).compress(content.tobytes())
    return {
        "form": "bits" if is_binary else "float32",
        "shape": list(rows.shape),
        "zstd": base64.b64encode(squeezed).decode(),
    }


def unpacked_rows(shown: Facts) -> Rows:
    """The results that were packed: (samples, statistics)."""
    count, columns = (int(cast(int, number)) for number in cast(list[object], shown["shape"]))
    is_binary = shown["form"] == "bits"
    if count < 1 or columns < 1:
        raise ValueError(phrase("results of {count} × {columns}", count, columns))
    wanted = -(-count * columns // 8) if is_binary else 4 * count * columns
    try:
        squeezed = base64.b64decode(str(shown["zstd"]), validate=True)
        if zstandard.frame_content_size(squeezed) != wanted:
            raise ValueError(phrase("results of another size"))
        content = zstandard.ZstdDecompressor().decompress(squeezed)
    except (binascii.Error, zstandard.ZstdError) as error:
        raise ValueError(phrase("results that cannot be unpacked: {error}", error)) from None
    if is_binary:
        flat = np.unpackbits(np.frombuffer(content, np.uint8), count=count * columns)
    else:
        flat = np.frombuffer(content, "<f4")
    return flat.astype(np.float64).reshape(count, columns)


def _baseline(facts: Facts) -> Baseline:
    latency, accuracy = facts["latency"], facts["accuracy"]
    peak = facts["peak_bytes"]
    allow = cast(Mapping[str, str], facts["allow"])
    target = Target.parse(str(facts["target"]))
    return Baseline(
        model=str(facts["model"]),
        digest=str(facts["digest"]),
        target=target,
        size=Size(_whole(facts["bytes"], 1), _whole(facts["gzip_bytes"], 1)),
        peak_bytes=None if peak is None else _whole(peak),
        delegations=_delegations(cast(list[Facts], facts["delegation"]), target),
        workload=str(facts["workload"]),
        timing=None if latency is None else _timing(cast(Facts, latency)),
        scores=None if accuracy is None else _scores(cast(Facts, accuracy)),
        allowed={name: Allowed.parse(name, str(allow[name])) for name in QUANTITIES},
        host=dict(cast(Facts, facts["host"])),
        untimed=str(facts["no_latency"]),
        unscored=str(facts["no_accuracy"]),
    )


def _whole(value: object, least: int = 0) -> int:
    count = int(cast(int, value))
    if not least <= count <= _MOST:
        raise ValueError(phrase("a number of {count}", count))
    return count


def _share(value: object) -> float:
    share = float(cast(float, value))
    if not 0 <= share <= 1:
        raise ValueError(phrase("a share of {share}", share))
    return share


def _delegations(shown: list[Facts], target: Target) -> tuple[Delegation, ...]:
    """On the target, then on others."""
    found = tuple(_delegation(facts) for facts in shown)
    if not found or found[0].target != str(target):
        raise ValueError(phrase("no delegation on {target}", target))
    return found


def _delegation(facts: Facts) -> Delegation:
    kinds = cast(Mapping[str, object], facts["kinds"])
    ops, left, partitions = (_whole(facts[name]) for name in ("ops", "left", "partitions"))
    if left > ops:
        raise ValueError(phrase("{left} of {ops} ops", left, ops))
    return Delegation(
        str(facts["target"]),
        str(facts["how"]),
        ops,
        left,
        _share(facts["macs"]),
        partitions,
        {kind: _whole(count) for kind, count in kinds.items()},
        str(facts["why"]),
    )


def _timing(facts: Facts) -> Timing:
    shown = cast(Mapping[str, list[float]], facts["block_ratios"])
    clocks = {clock: tuple(float(b) for b in blocks) for clock, blocks in shown.items()}
    us, reference_us = (float(cast(float, facts[name])) for name in ("us", "reference_us"))
    numbers = [b for blocks in clocks.values() for b in (*blocks, len(blocks))]
    if not clocks or not all(0 < number < math.inf for number in (*numbers, us, reference_us)):
        raise ValueError(phrase("ratios that are none"))
    return Timing(clocks, us, reference_us)


def _scores(facts: Facts) -> Scores:
    value, low, high = (float(cast(float, facts[name])) for name in ("value", "low", "high"))
    better = int(cast(int, facts["better"]))
    if better not in (-1, 0, 1):
        raise ValueError(phrase("better is {better}", better))
    return Scores(
        str(facts["metric"]),
        str(facts["unit"]),
        better,
        value,
        low,
        high,
        unpacked_rows(cast(Facts, facts["rows"])),
        str(facts["data_digest"]),
        str(facts["data"]),
        str(facts["preparation"]),
        str(facts["reference_digest"]),
    )
