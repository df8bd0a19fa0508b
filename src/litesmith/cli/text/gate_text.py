"""What `gate` prints for people."""

from litesmith.cli.text import printing as show
from litesmith.pages.gate_page import HEAD, cells
from litesmith.phrases import phrase
from litesmith.regression.gate_checks import Check
from litesmith.regression.gate_rules import FINE, OFF, UNCLEAR, WORSE
from litesmith.regression.gate_run import Gated, Renewed
from litesmith.units import plain

_STYLES = {WORSE: "red", UNCLEAR: "yellow", FINE: "green"}


def print_gate(found: Gated | Renewed) -> None:
    """Prints the verdict, every check, and the reason for each that is not fine; or the new
    baseline.
    """
    if isinstance(found, Renewed):
        _print_renewed(found)
        return
    show.line(found.sentence, "bold")
    rows = show.table(*HEAD, right=(1, 2))
    for check in found.checks:
        *words, verdict = cells(check)
        rows.add_row(
            *map(show.localize, words), show.localize(verdict, _STYLES.get(check.verdict, ""))
        )
    show.console.print()
    show.console.print(rows)
    for check in found.checks:
        if check.why and check.verdict != OFF:
            _print_reason(check)
    if found.report is not None:
        show.line(phrase("report: {page}", plain(str(found.report))))


def _print_reason(check: Check) -> None:
    show.heading(phrase("{title}: {verdict}", plain(check.title), check.verdict))
    show.line(check.why)
    if check.command and check.verdict in (WORSE, UNCLEAR):
        show.command(f"  {check.command}")


def _print_renewed(made: Renewed) -> None:
    """Prints the values of the baseline, what it allows, and the command for the next model."""
    show.line(made.sentence, "bold")
    rows = show.table("", "baseline", "may get worse by")
    for row in made.to_rows():
        rows.add_row(row["title"], show.localize(row["baseline"]), row["allowed"])
    show.console.print()
    show.console.print(rows)
    show.command(made.command)
