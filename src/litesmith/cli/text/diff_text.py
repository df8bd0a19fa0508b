"""How diff prints."""

from litesmith.anatomy.model_diff import Diff
from litesmith.cli.text.printing import line
from litesmith.phrases import phrase

# How many lines of a list a person reads.
_MOST_DIFFERENCES = 60


def print_diff(result: Diff) -> None:
    found = result.differences
    line(result.sentence, "bold" if found else "")
    for difference in found[:_MOST_DIFFERENCES]:
        if difference.before and difference.after:
            line(
                phrase(
                    "{where}: {before} -> {after}",
                    difference.where,
                    difference.before,
                    difference.after,
                )
            )
        elif difference.kind == "op":
            sign, text = ("-", difference.before) if difference.before else ("+", difference.after)
            line(
                phrase("{sign} {where}: {text}", sign, difference.where, text),
                "red" if sign == "-" else "green",
            )
        else:
            line(phrase("{where}: {text}", difference.where, difference.before or difference.after))
    if len(found) > _MOST_DIFFERENCES:
        line(phrase("… and {count} more (--json lists all)", len(found) - _MOST_DIFFERENCES))
