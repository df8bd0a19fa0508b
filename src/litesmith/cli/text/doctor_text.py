"""Prints the result of `doctor`."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.cells import cell_len, set_cell_size

from litesmith.cli.text import printing as show
from litesmith.diagnosis.accelerator_fit import Fit, obstacles
from litesmith.front.doctor import Fitting, Inaccuracy, Slowness
from litesmith.lang import language
from litesmith.pages.overlay import opening_command
from litesmith.phrases import phrase
from litesmith.run.core.placement import PREDICTED
from litesmith.units import plain


def print_doctor(result: Slowness | Inaccuracy | Fitting) -> None:
    if isinstance(result, Fitting):
        _print_fitting(result)
        return
    if isinstance(result, Slowness):
        show.line(result.sentence, "bold")
        if not result.findings:
            show.line("nothing stands out")
    else:
        name = plain(result.model.name) if result.model is not None else ""
        show.line(phrase("{name} {verdict}", name, result.sentence), "bold")
    _print_rows(result.to_rows())
    if result.overlay is not None:
        show.heading(phrase("overlay: {out}", plain(str(result.overlay))))
        show.command(f"  {opening_command(result.model or Path('MODEL'), result.overlay)}")


def _print_fitting(result: Fitting) -> None:
    fit = result.fit
    show.line(result.sentence, "bold")
    if not result.findings:
        show.line("it takes the whole model")
    for one in result.findings:
        show.print_indented("- ", phrase("{what}: {where}", one.what, one.where), "bold")
        show.print_indented("  ", one.why)
        if one.command and not fit.recipe:
            show.command(f"  {one.command}")
    if fit.recipe:
        _print_recipe(fit, result.command)
    elif not fit.before.is_whole:
        _print_no_remedy(fit)
    if fit.hint:
        show.line("float16 weights make the file smaller, and it computes in float16 anyway:")
        show.command(f"  {result.hint}")


def _print_no_remedy(fit: Fit) -> None:
    """Prints that nothing helps, and the ops that stay after the best recipe."""
    if fit.vain is None:
        show.line("none of the recipes tried makes it take more")
        return
    best = phrase("{taken} of {count} ops", fit.vain.taken, len(fit.vain.homes))
    show.line(
        phrase(
            "none of the recipes tried makes it take most of the model; the best is {best}:", best
        )
    )
    for one in obstacles(fit.vain):
        show.line(phrase("- {what}: {where}", one.what, one.where))
        show.print_indented("  ", one.why)


def _print_recipe(fit: Fit, command: str) -> None:
    after = fit.after
    show.heading(
        "the recipe that helps" + (phrase(", where DATA is your data") if fit.needs_data else "")
    )
    show.command(f"  {command}")
    for note in fit.notes:
        show.print_indented("  ", note)
    known = phrase("by its documents") if after.how == PREDICTED else phrase("by its own compiler")
    tried = phrase("on random inputs in place of data; ") if fit.needs_data else ""
    show.line(
        phrase(
            "after it: {taken} of {count} ops, {how} {known} ({tried}no file was written)",
            after.taken,
            len(after.homes),
            after.how,
            known,
            tried,
        )
    )
    for one in obstacles(after):
        show.line(phrase("- stays: {what}: {where}", one.what, one.where))
        show.print_indented("  ", one.why)


def _print_rows(rows: Sequence[Mapping[str, object]]) -> None:
    for row in rows:
        show.heading(plain(str(row["what"])))
        names = {name: language.say(name) for name in ("where", "why", "costs")}
        room = max(map(cell_len, names.values()))
        for name, shown in names.items():
            show.print_indented(f"  {set_cell_size(shown, room)}  ", str(row[name]))
        if row["command"]:
            show.command(f"  {row['command']}")
