"""Prints the result of `targets`."""

from pathlib import Path

from litesmith.cli.text import printing as show
from litesmith.diagnosis.all_targets import Targets
from litesmith.operating_system import quote
from litesmith.phrases import phrase
from litesmith.units import bytes_text


def print_targets(result: Targets) -> None:
    if result.model is None:
        _print_usable(result)
    else:
        show.line(Path(result.model).name, "bold")
        _print_placed(result)
        _print_ways_out(result, result.model)
    _print_boards(result)


def _print_boards(result: Targets) -> None:
    """Prints the boards of --fits; with a model, whether each has room for it."""
    show.heading("microcontrollers, for --on micro --fits BOARD")
    words = {True: phrase("fits"), False: phrase("too small"), None: ""}
    rows = show.table("board", "core", "RAM", "flash", "", right=(2, 3))
    for board, fits in result.boards:
        sizes = bytes_text(board.ram), bytes_text(board.flash)
        rows.add_row(board.name, board.core, *sizes, words[fits])
    show.console.print(rows)


def _print_usable(result: Targets) -> None:
    rows = show.table("target", "here", "why, and what to do")
    for row in result.rows:
        found = row.usable
        told = f"{row.delegate.title}: {found.why}" + (
            phrase("; {how}", found.how) if found.how else ""
        )
        rows.add_row(
            row.delegate.name, phrase("yes") if found.usable else phrase("no"), show.localize(told)
        )
    show.console.print(rows)


def _print_placed(result: Targets) -> None:
    rows = show.table("target", "taken", "left", "parts", "how", "why left", right=(1, 2, 3))
    last = ""
    for row in result.rows:
        found = row.placement
        if found is None:
            rows.add_row(row.delegate.name, "all", "", "", "", "")
            continue
        why = found.main_reason
        counts = (str(found.taken), str(found.left or ""), str(found.partitions or ""))
        told = show.localize('"' if why and why == last else why)
        rows.add_row(row.delegate.name, *counts, found.how, told)
        last = why
    show.console.print(rows)
    show.heading("how")
    show.line("predicted: by rules from the makers' documents; --compile asks compilers instead")
    show.line(
        "parts: pieces of the model, with the CPU at work between them; --json has a "
        "reason for each op"
    )


def _print_ways_out(result: Targets, model: str) -> None:
    """Prints the commands for targets that refuse the model because of its types."""
    ways: dict[str, list[str]] = {}
    for row in result.rows:
        if row.placement is not None and "way_out" in row.placement.facts:
            ways.setdefault(str(row.placement.facts["way_out"]), []).append(row.delegate.name)
    for way, names in ways.items():
        show.line(phrase("for {names}:", ", ".join(names)))
        show.command(f"  {way.replace('MODEL', quote(model))}")
