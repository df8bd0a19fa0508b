"""Prints the costs of a model that was made smaller: all sizes and the time together."""

from collections import Counter
from collections.abc import Sequence

from rich.text import Text

from litesmith.anatomy.sparse_speedup import Skipping, expected_gain, skipping
from litesmith.anatomy.weights import WeightFacts, zero_share
from litesmith.cli.text import printing as show
from litesmith.ir.types import Model
from litesmith.pages.records.record_words import smaller_words
from litesmith.passes.shrinking.arm_sparse import arm_sparse
from litesmith.phrases import phrase
from litesmith.regression.size_report import OURS, Shrunk
from litesmith.timing.statistics import FASTER, SLOWER
from litesmith.units import (
    bytes_text,
    count_text,
    factor_text,
    percent_text,
    plain,
    time_text,
)

# The largest numbers of lines.
_MOST_WEIGHTS, _MOST_WARNINGS, _MOST_REASONS = 12, 6, 3

_LEAST_NAME = 8
_STYLES = {FASTER: "green", SLOWER: "red"}


def print_shrunk(record: Shrunk, zeros: Sequence[str] = ()) -> None:
    """Prints the costs of a file and of the one made from it; `zeros` are lines on which kernels
    skip zeros.
    """
    _print_costs(record)
    _print_weights(record.after.weights)
    for text in zeros:
        show.line(text)
    layers = record.promises.layers
    if layers and record.is_verified:
        show.line(
            phrase(
                "checked in the written file: {layers} layers keep their zeros and codes", layers
            )
        )
    broken = record.promises.broken
    for text in broken[:_MOST_WARNINGS]:
        show.line(phrase("WARNING: {text}", text), "bold red")
    if len(broken) > _MOST_WARNINGS:
        show.line(
            phrase("… and {count} more like it (--json lists all)", len(broken) - _MOST_WARNINGS)
        )


def zero_lines(model: Model) -> list[str]:
    """Lines on which kernels skip the zeros of a model."""
    return [*skipping_lines(model), *arm_lines(model)]


def arm_lines(model: Model) -> list[str]:
    """Whether ARM processors skip the zeros of convolutions, and why not, by reason."""
    reasons = arm_sparse(model.main)
    if not reasons:
        return []
    taken = sum(not why for why in reasons.values())
    against = Counter(why for why in reasons.values() if why)
    count = phrase("{taken} of the {count} convolutions", taken or phrase("none"), len(reasons))
    lines: list[str] = [
        phrase("on ARM, XNNPACK's sparse path takes {count}{colon}", count, ":" if against else "")
    ]
    lines += [
        phrase("  not {number}: {why}", number, why)
        for why, number in against.most_common(_MOST_REASONS)
    ]
    rest = sum(against.values()) - sum(n for _, n in against.most_common(_MOST_REASONS))
    return (
        [*lines, phrase("  not {rest}: for other reasons (--json lists all)", rest)]
        if rest
        else lines
    )


def skipping_lines(model: Model) -> list[str]:
    """Lines on the layers that our kernels should compute faster because of zeros, and the share
    from which on.
    """
    layers = skipping(model)
    if not layers:
        return []
    faster = [one for one in layers if one.is_faster]
    count = phrase(
        "{count} of {count2} layers should be faster for their zeros",
        len(faster) or phrase("none"),
        len(layers),
    )
    told = (
        phrase(": {factor}", factor_text(expected_gain(layers), phrase("faster together")))
        if faster
        else ""
    )
    lines = [phrase("on {ours}, {count}{told}", OURS, count, told)]
    longest = sorted(layers, key=lambda one: -one.facts.products)[:_MOST_WEIGHTS]
    lines += [_skipping_line(one) for one in sorted(longest)]
    rest = len(layers) - len(longest)
    return [*lines, phrase("  … and {rest} more (--json lists all)", rest)] if rest else lines


def _skipping_line(one: Skipping) -> str:
    even = one.facts.even
    told = "never faster" if even is None else phrase("breaks even at {share}", percent_text(even))
    gain = (
        phrase("expected {factor}", factor_text(one.facts.gain, phrase("faster")))
        if one.is_faster
        else "stays dense"
    )
    zeros = phrase("{share} zero blocks", percent_text(one.facts.zeros))
    return phrase(
        "  op {place} {kind}: {zeros}, {told}; {gain}", one.place, one.op.kind, zeros, told, gain
    )


def _print_costs(record: Shrunk) -> None:
    before, after, latency = record.before, record.after, record.latency
    rows = show.table("", "before", "after", "change", right=(1, 2))
    for name, sizes in (
        (phrase("disk"), (before.bytes, after.bytes)),
        ("gzip", (before.gzip_bytes, after.gzip_bytes)),
        ("zstd", (before.zstd_bytes, after.zstd_bytes)),
    ):
        rows.add_row(name, *map(bytes_text, sizes), _quotient(*sizes))
    macs = before.macs, after.macs
    rows.add_row("MACs", *map(count_text, macs), _quotient(*macs))
    rows.add_row("zeros", percent_text(before.zero_share), percent_text(after.zero_share))
    if latency is not None:
        times = time_text(latency.before_us), time_text(latency.after_us)
        words = show.localize(latency.ratio.words)
        rows.add_row(phrase("time on {target}", latency.target), *times, words)
    show.console.print(rows)
    verdict = "" if latency is None else latency.ratio.verdict
    show.line(record.verdict, _STYLES.get(verdict, "bold"))


def _quotient(before: int, after: int) -> str:
    return smaller_words(before, after) if before and after else ""


def _print_weights(weights: Sequence[WeightFacts]) -> None:
    largest = sorted(weights, key=lambda facts: -facts.elements)
    cells = [_cells(facts) for facts in largest[:_MOST_WEIGHTS]]
    if not cells:
        return
    titles = ("weight", "op", "type", "numbers", "zeros", "values")
    columns = zip(titles[1:], *(own[1:] for own in cells), strict=True)
    room = show.console.width - sum(max(map(len, column)) + 2 for column in columns)
    rows = show.table(*titles, right=(3, 4, 5))
    for name, *others in cells:
        rows.add_row(Text(_end(name, room)), *map(show.localize, others))
    show.heading("weights")
    show.console.print(rows)
    rest = largest[_MOST_WEIGHTS:]
    if rest:
        numbers = count_text(sum(facts.elements for facts in rest))
        zeros = percent_text(zero_share(rest))
        show.line(
            phrase(
                "… and {count} more: {numbers} numbers, {zeros} zeros (--json lists all)",
                len(rest),
                numbers,
                zeros,
            )
        )


def _cells(facts: WeightFacts) -> tuple[str, ...]:
    return (
        plain(facts.name),
        plain(facts.op),
        phrase("{dtype} sparse", facts.dtype) if facts.sparse else facts.dtype,
        count_text(facts.elements),
        percent_text(facts.zeros / facts.elements),
        count_text(facts.values),
    )


def _end(name: str, room: int) -> str:
    """The end of a long name, which says more than its start; of joined names, the first."""
    first, room = name.split(";")[0], max(room, _LEAST_NAME)
    return first if len(first) <= room else f"…{first[1 - room :]}"
