"""What `retrain` prints, while it works and at the end."""

from rich.text import Text

from litesmith.cli.text import printing as show
from litesmith.operating_system import quote
from litesmith.phrases import phrase
from litesmith.training.teaching.picture_result import TaughtNetwork
from litesmith.training.teaching.retraining import Retrained
from litesmith.units import percent_text, plain, score_text, time_text, total_text

# The largest numbers of listed classes and mistakes; the page has all.
_LISTED, _MISTAKES = 12, 3

# The columns of the terminal without those of the name.
_OTHERS = 60


def print_retrained(result: Retrained | TaughtNetwork) -> None:
    """Prints the share that is right, the worst classes, and the next commands."""
    show.line(result.sentence, "bold")
    if isinstance(result, TaughtNetwork):
        _print_taught(result)
        return
    took = phrase("{time} in all", time_text(result.seconds * 1e6))
    learned = phrase("{count} items", total_text(sum(result.learned.counts)))
    if result.scratch is not None:
        show.line(
            phrase(
                "{name} trained from scratch on {learned}, {took}",
                result.scratch.name,
                learned,
                took,
            )
        )
    if result.head is not None and result.head.tried:
        share = percent_text(result.head.chosen.accuracy)
        show.line(
            phrase(
                "head of {count} classes solved on {learned} ({share} in cross-validation), {took}",
                len(result.classes),
                learned,
                share,
                took,
            )
        )
    if result.tuned is not None and result.head_alone is not None:
        alone = result.head_alone.value
        show.line(
            phrase(
                "the head alone: {score}", score_text(alone.value, "share", alone.low, alone.high)
            )
        )
    _print_classes(result)
    _print_mistakes(result)
    if result.report is not None:
        show.line(phrase("report: {page}", plain(str(result.report))))
    show.line("next:")
    source = quote(str(result.learned.data.source))
    out = quote(str(result.out))
    small = quote(str(result.out.with_name(f"{result.out.stem}-int8.tflite")))
    if result.embedding.tensor.dtype != "float32":  # the backbone computes with integers already
        show.command(f"litesmith bench {out}")
    elif result.learned.data.rows.words is not None:  # integers cost transformers too much
        small = quote(str(result.out.with_name(f"{result.out.stem}-dynamic.tflite")))
        show.command(f"litesmith quantize {out} --to dynamic -o {small}")
    else:
        show.command(f"litesmith quantize {out} --to int8 --data {source} -o {small}")


def _print_taught(result: TaughtNetwork) -> None:
    whole = result.found.whole
    if whole is not None:
        show.line(phrase("AP {value}", score_text(whole.value, "share", whole.low, whole.high)))
    show.line(
        phrase(
            "learned from {count} pictures, {time} in all",
            total_text(result.pictures),
            time_text(result.seconds * 1e6),
        )
    )
    if result.frozen is not None:
        alone = result.frozen.evaluation
        score = score_text(alone.value, "share", alone.low, alone.high)
        show.line(phrase("the head alone: {score}", score))
    counted = phrase("things") if whole is not None else phrase("pictures")
    score = "AP50" if whole is not None else "IoU"
    table = show.table("class", counted, score, "95 %", right=(1, 2))
    judged = [place for place, count in enumerate(result.found.wanted) if count]
    for place in judged[:_LISTED]:
        name = result.names[place]
        value = result.found.of_class(place)
        if value is not None:
            table.add_row(
                Text(plain(name)),
                total_text(result.found.wanted[place]),
                percent_text(value.value),
                phrase("{share}–{share2}", percent_text(value.low), percent_text(value.high)),
            )
    show.console.print(table)
    if result.report is not None:
        show.line(phrase("report: {page}", plain(str(result.report))))
    show.line("next:")
    out, source = quote(str(result.out)), quote(result.sources[0])
    small = quote(str(result.out.with_name(f"{result.out.stem}-int8.tflite")))
    show.command(f"litesmith quantize {out} --to int8 --data {source} -o {small}")


def _print_classes(result: Retrained) -> None:
    table = show.table("class", "items", "right", "95 %", "taken for", right=(1, 2))
    found = result.found
    names = show.shorten_names(found.names, _OTHERS)
    shares = [(found.of_class(place), place) for place in range(len(found.names))]
    known = [(value, place) for value, place in shares if value is not None]
    known.sort(key=lambda pair: (pair[0].value, pair[1]))
    for value, place in known[:_LISTED]:
        table.add_row(
            Text(names[found.names[place]]),
            total_text(int(found.table[place].sum())),
            percent_text(value.value),
            phrase("{share}–{share2}", percent_text(value.low), percent_text(value.high)),
            show.localize(_taken_for(result, place, names)),
        )
    show.console.print(table)
    if len(known) > _LISTED:
        show.line(
            phrase("and {count} classes that do better; the report has all", len(known) - _LISTED)
        )


def _taken_for(result: Retrained, place: int, names: dict[str, str]) -> str:
    row = result.found.table[place].copy()
    row[place] = 0
    if not row.any():
        return ""
    other = int(row.argmax())
    return f"{names[result.found.names[other]]} ({row[other]})"


def _print_mistakes(result: Retrained) -> None:
    for one in result.found.mistakes[:_MISTAKES]:
        show.line(
            phrase(
                "confident mistake: {name} taken for {said} ({share})",
                plain(one.name),
                plain(one.said),
                percent_text(one.confidence),
            )
        )
