"""Prints the results of `prune`, `cluster` and `qat`: what was done, the training, and the costs of
the result.
"""

from litesmith.accuracy.evaluate import preparation_text
from litesmith.anatomy.source_file import SourceFile
from litesmith.cli.text import printing as show
from litesmith.cli.text.apply_text import print_done, print_left
from litesmith.cli.text.quantize_text import print_next, print_score
from litesmith.cli.text.size_text import print_shrunk, zero_lines
from litesmith.data.samples import Data
from litesmith.front.shrink import Shrinking
from litesmith.passes.core.recipe import text_of
from litesmith.phrases import phrase
from litesmith.units import plain, total_text


def print_shrinking(result: Shrinking) -> None:
    done = result.done
    show.line(phrase("recipe: {recipe}", text_of(result.done.recipe)))
    print_done(done.change.touched)
    print_left(done.change.skipped)
    for told in done.trained:
        show.line(told)
    if done.data is not None:
        _print_data(done.data, is_trained=done.change.steps > 0)
    show.heading(plain(SourceFile(result.model, result.out).name))
    if done.costs is not None:
        print_shrunk(done.costs, zero_lines(result.model) if result.prunes else ())
    if result.score is not None:
        print_score(result.score)
    print_next(result.out, result.source, result.next_data)


def _print_data(data: Data, *, is_trained: bool) -> None:
    text, count, source = preparation_text(data), total_text(len(data)), plain(data.source)
    if is_trained:
        told = phrase("trained on {count} samples of {source}", count, source)
    else:
        told = phrase("looked at {count} samples of {source}", count, source)
    show.line(phrase("{told} ({text})", told, text) if text else told)
