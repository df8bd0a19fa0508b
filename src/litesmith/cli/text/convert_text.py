"""Prints the result of `convert`: the sentence, the differences of the outputs, the nodes that are
left.
"""

from pathlib import Path

from rich.text import Text

from litesmith.cli.text import printing as show
from litesmith.front.convert import Converted
from litesmith.operating_system import quote
from litesmith.phrases import phrase
from litesmith.units import number_text, plain


def print_converted(result: Converted) -> None:
    show.line(phrase("{source}: {sentence}", result.source, result.sentence), "bold")
    if result.made is None:
        _print_left(result)
    if result.turned:
        show.line(phrase("channels last now: {names}", ", ".join(sorted(result.turned))))
    for note in result.notes:
        show.line(note)
    if result.made is None:
        return
    _print_differences(result)
    if result.out is not None:
        show.line("next:")
        show.command(f"  litesmith inspect {quote(str(result.out))}")


def _print_differences(result: Converted) -> None:
    if not result.differences:
        return
    show.line(
        phrase(
            "run beside {judge} on {samples} inputs: largest difference of each output",
            result.judge,
            result.samples,
        )
    )
    table = show.table("output", "difference", "of the largest value", right=(1, 2))
    for one in result.differences:
        table.add_row(Text(plain(one.output)), _short(one.largest), _short(one.share))
    show.console.print(table)


def _short(value: float) -> str:
    return number_text(float(f"{value:.2g}"))


def _print_left(result: Converted) -> None:
    grouped: dict[tuple[str, str], list[str]] = {}
    for left in result.left:
        grouped.setdefault((left.kind, left.why), []).append(left.place)
    for (kind, why), places in grouped.items():
        more = phrase(" and {count} more", len(places) - 1) if len(places) > 1 else ""
        show.line(
            phrase(
                "{kind} (opset {opset}) {place}{more}: {why}",
                kind,
                result.opset,
                Path(places[0]).name,
                more,
                why,
            )
        )
