"""How apply prints."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from litesmith.cli.text.printing import Json, line
from litesmith.ir.types import Model
from litesmith.passes.core.step import Change
from litesmith.phrases import phrase
from litesmith.units import bytes_text, change_text, plain

Sizes = tuple[int, int | None]  # bytes on disk; after gzip, where that was asked

_MOST_LINES = 12


def apply_json(out: Path, sizes: Sizes, digest: str, change: Change) -> Json:
    return {
        "schema": 1,
        "out": str(out),
        "bytes": sizes[0],
        "gzip_bytes": sizes[1],
        "digest": digest,
        "touched": list(change.touched),
        "skipped": [skip._asdict() for skip in change.skipped],
    }


def apply_text(out: Path, sizes: Sequence[Sizes], before: Model, change: Change) -> None:
    counts = [sum(len(g.ops) for g in m.graphs) for m in (before, change.model)]
    (old, old_gzip), (new, new_gzip) = sizes
    _print_some(change.touched, "edits")
    kept = Counter((skip.where.split()[0], skip.why) for skip in change.skipped)
    for (kind, why), count in kept.most_common():
        line(phrase("left {count} {kind}: {why}", count, plain(kind), why))
    line(phrase("{out}: {counts} -> {counts2} ops", out, counts[0], counts[1]), "bold")
    disk = phrase("disk {size} {change}", bytes_text(new), change_text(old, new))
    if old_gzip is not None and new_gzip is not None:
        gzipped = change_text(old_gzip, new_gzip)
        disk += phrase(", gzip {size} {change}", bytes_text(new_gzip), gzipped)
    line(disk)


def _print_some(texts: Sequence[str], what: str) -> None:
    """The first lines of a list, and how many more there are."""
    for text in texts[:_MOST_LINES]:
        line(text)
    if len(texts) > _MOST_LINES:
        line(phrase("… and {count} more {what} (--json lists all)", len(texts) - _MOST_LINES, what))
