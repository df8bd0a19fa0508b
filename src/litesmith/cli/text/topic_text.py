"""The output of `litesmith` alone, and its pages of help."""

import click

from litesmith.cli.options.topics import FIRST, TOPICS, Topic
from litesmith.cli.options.wrapping import write_rows
from litesmith.lang.language import say
from litesmith.phrases import phrase

_WIDTH = 80


def print_first_steps() -> None:
    """Prints ten lines for `litesmith` without a command."""
    click.echo(say(phrase("Litesmith makes .tflite models small and fast, and proves it.")))
    for words, purpose in FIRST:
        click.echo(f"  {words}\n      {say(purpose)}")
    click.echo(say(phrase("all commands: litesmith --help; one of them: litesmith tune --help")))
    click.echo(say(phrase("data, recipes, targets: litesmith help {topics}", "|".join(TOPICS))))


def print_topic(topic: Topic) -> None:
    """Prints a page of help, 80 columns wide."""
    formatter = click.HelpFormatter(width=_WIDTH)
    formatter.write_text(say(topic.about))
    formatter.write_paragraph()
    formatter.indent()
    write_rows(formatter, [(words, say(meaning)) for words, meaning in topic.rows])
    formatter.dedent()
    formatter.write_paragraph()
    formatter.write_text(say(phrase("more: {pages}", topic.pages)))
    click.echo(formatter.getvalue().rstrip("\n"))
