"""The report as Markdown with two pictures, for a pull request."""

import re
from collections.abc import Sequence
from pathlib import Path

from litesmith.report.folder import read_folder
from litesmith.report.png import png
from litesmith.report.record import Entry, Record
from litesmith.report.tradeoff import Graph, graphs
from litesmith.report.trials import STATUSES, columns_of
from litesmith.report.verdict import asked_words, tiles, verdict_of
from litesmith.tflite.file import write_whole

# What Markdown, or the HTML in it, could take for more than a letter.
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~<>&@:-])")


def write_markdown(folder: Path, out: Path | None = None) -> Path:
    """Writes the report and its pictures, beside each other; gives the report's place."""
    record = read_folder(folder)
    place = out or folder / "report.md"
    drawn = graphs(record)
    for graph in drawn:
        write_whole(place.with_name(_picture(place, graph)), [png(graph)])
    write_whole(place, [markdown_text(record, drawn, place).encode()])
    return place


def markdown_text(record: Record, drawn: Sequence[Graph], place: Path) -> str:
    """The whole text; `place` is where it will be, and gives the pictures their names."""
    shown = verdict_of(record)
    parts = [
        f"# {escaped(record.model or 'model')}: {shown.title.lower()}",
        f"**{escaped(record.sentence)}**" if record.sentence else "",
        f"{shown.meaning} Asked for: {escaped(asked_words(record) or 'nothing')}.",
        _gains(record),
        "\n".join(f"![{escaped(g.title)}]({_address(_picture(place, g))})" for g in drawn),
        _trials(record),
        _commands(record),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def escaped(words: str) -> str:
    """Words as they are, whatever Markdown would make of them."""
    return _SPECIAL.sub(r"\\\1", words)


def code(words: str) -> str:
    """Words as code; the fence is longer than any in them."""
    longest = max((len(run) for run in re.findall(r"`+", words)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {words} {fence}" if longest else f"{fence}{words}{fence}"


def _picture(place: Path, graph: Graph) -> str:
    return f"{place.stem}-{graph.name}.png"


def _address(name: str) -> str:
    """A file's name as a link: what is not plain is written as bytes."""
    plain = re.compile(rb"[A-Za-z0-9._-]")
    letters = (bytes([byte]) for byte in name.encode("utf-8", "surrogateescape"))
    return "".join(b.decode() if plain.match(b) else f"%{b.hex().upper()}" for b in letters)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _gains(record: Record) -> str:
    rows = [
        [
            escaped(" ".join(cell.split()))
            for cell in (one.title, one.gain, one.interval, one.change)
        ]
        for one in tiles(record)
    ]
    return _table(("", "against float", "95 % interval", ""), rows) if rows else ""


def _trials(record: Record) -> str:
    if not record.entries:
        return ""
    columns = columns_of(record)
    head = ("model", "result", *(column.title.lower() for column in columns), "why")
    rows = [_row(record, entry) for entry in record.entries]
    count = f"All {len(rows)} models that were tried"
    return f"<details><summary>{count}</summary>\n\n{_table(head, rows)}\n\n</details>"


def _row(record: Record, entry: Entry) -> list[str]:
    is_best = record.best is not None and record.best.name == entry.name
    name = f"**{escaped(entry.name)}**" if is_best else escaped(entry.name)
    sign = STATUSES.get(entry.status, "")
    cells = [
        f"{column.words(entry)} {column.small(entry)}".strip() for column in columns_of(record)
    ]
    told = [*entry.reasons, entry.recipe]
    return [
        name,
        escaped(f"{sign} {entry.status}".strip()),
        *map(escaped, cells),
        escaped("; ".join(part for part in told if part)),
    ]


def _commands(record: Record) -> str:
    lines = [
        f"- {words}: {code(command)}"
        for words, command in (
            ("the same search", record.command),
            ("the same file", record.replay),
        )
        if command
    ]
    return "\n".join(lines)
