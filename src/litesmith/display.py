"""How results show themselves: a line for a shell, a small table for a notebook.

A result has a `sentence`, what it comes to, and `to_rows()`, what it consists of, one dictionary a
row. Names of columns tell what numbers are: `p50_us` is a time, `file_bytes` a size.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from litesmith.lang.language import say
from litesmith.phrases import phrase
from litesmith.units import bytes_text, count_text, number_text, percent_text, plain, time_text

Cell = str | int | float | bool | None
Row = Mapping[str, object]

# Colours are those around it, and a blue that stands out on white and on black.
_STYLE = """\
.litesmith{font-variant-numeric:tabular-nums;max-width:60em}\
.litesmith p{margin:.3em 0}\
.litesmith table{border-collapse:collapse;margin:.3em 0}\
.litesmith tbody tr{background:none!important;border-top:1px solid #8885}\
.litesmith th,.litesmith td{text-align:left;padding:.15em .7em .15em 0;vertical-align:top}\
.litesmith .n{text-align:right;white-space:nowrap}"""

_MOST_ROWS, _MOST_NOTES, _MOST_COLUMNS, _MOST_LETTERS = 12, 6, 9, 120


class Result(Protocol):
    """What a public function gives."""

    @property
    def sentence(self) -> str: ...
    def to_rows(self) -> Sequence[Row]: ...


def show_line(self: Result) -> str:
    """`<Inspection: 31 ops, 78.6 K parameters>`: the `__repr__` of a result."""
    return f"<{type(self).__name__}: {plain(self.sentence)}>"


def show_html(result: Result, notes: Iterable[str] = ()) -> str:
    """The sentence, the first rows as a table, and what is to be said of them: a few KB of markup
    that asks for nothing from the network."""
    rows = result.to_rows()
    told = [_escape(_short(say(note))) for note in notes][:_MOST_NOTES]
    more = len(rows) - _MOST_ROWS
    if more > 0:
        told.insert(0, say(phrase("and {more} more rows in .to_rows()", more)))
    title = f"<p><strong>{_escape(plain(say(result.sentence)))}</strong></p>"
    table = _table(rows[:_MOST_ROWS]) if rows else ""
    lines = "".join(f"<p>{text}</p>" for text in told)
    return f'<div class="litesmith"><style>{_STYLE}</style>{title}{table}{lines}</div>'


def _table(rows: Sequence[Row]) -> str:
    columns = [name for name in rows[0] if any(_is_cell(row.get(name)) for row in rows)]
    columns = columns[:_MOST_COLUMNS]
    right = {name for name in columns if any(_is_number(row.get(name)) for row in rows)}
    head = "".join(_element("th", _title(name), name in right) for name in columns)
    body = "".join(
        "<tr>"
        + "".join(_element("td", cell_text(n, row.get(n)), n in right) for n in columns)
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _element(name: str, text: str, is_number: bool) -> str:
    kind = ' class="n"' if is_number else ""
    return f"<{name}{kind}>{_escape(text)}</{name}>"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_cell(value: object) -> bool:
    """Whether a value says something in a table."""
    return value not in (None, "") and isinstance(value, str | int | float | bool)


def _title(column: str) -> str:
    return say(column.removesuffix("_us").replace("_", " "))


def cell_text(column: str, value: object) -> str:
    """A value as its column tells to show it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return _number(column, value)
    return _short(say(value)) if isinstance(value, str) else ""


def _short(text: str) -> str:
    shown = plain(text)
    return shown if len(shown) <= _MOST_LETTERS else f"{shown[: _MOST_LETTERS - 1]}…"


def _escape(text: str) -> str:
    from html import escape  # which a command that prints no page need not wait for

    return escape(text)


def _number(column: str, value: float) -> str:
    if column.endswith("_us") or column == "us":
        return time_text(value)
    if "bytes" in column:
        return bytes_text(int(value))
    if column in ("share", "overhead", "agreement") or column.endswith("_share"):
        return percent_text(value)
    if column in ("macs", "parameters", "elements", "zeros"):
        return count_text(int(value))
    return number_text(value)
