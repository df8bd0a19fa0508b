"""How prune, cluster and qat print: what was done, how it was trained, what the result costs."""

import json
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

import click

from litesmith.accuracy.evaluate import Evaluation, preparation_text
from litesmith.cli.commands.model import sizes_of
from litesmith.cli.commands.quantize import settled
from litesmith.cli.options.data_options import typed
from litesmith.cli.options.training_options import Done, Job
from litesmith.cli.text import printing as show
from litesmith.cli.text.apply_text import apply_json, print_done, print_left
from litesmith.cli.text.quantize_text import print_score, score_json
from litesmith.cli.text.size_text import (
    arm_json,
    print_shrunk,
    shrunk_json,
    skipping_json,
    zero_lines,
)
from litesmith.passes.core.recipe import text_of
from litesmith.phrases import phrase
from litesmith.regression.size_report import Shrunk
from litesmith.tflite.file import digest
from litesmith.units import plain, total_text


@dataclass(frozen=True, eq=False)
class Result:
    """All that is known of one file."""

    path: Path
    job: Job
    done: Done
    record: Shrunk
    score: Evaluation | None
    evaluation: str | None


def print_json(result: Result) -> None:
    out, data, change = result.job.out, result.done.data, result.done.change
    sizes = sizes_of(out, change.model, always_gzip=True)
    told = apply_json(out, sizes, digest(out), change) | shrunk_json(result.record)
    told |= {
        "recipe": text_of(result.job.recipe),
        "data": None if data is None else data.source,
        "samples": 0 if data is None else len(data),
        "preparation": "" if data is None else preparation_text(data),
        "trained": list(result.done.trained),
    }
    if result.job.prunes:
        told["arm"] = arm_json(change.model)
        told["litesmith"] = skipping_json(change.model)
    if result.score is not None:
        told["evaluation"] = score_json(result.score)
    click.echo(json.dumps(told))


def print_text(result: Result) -> None:
    job, done = result.job, result.done
    show.line(phrase("recipe: {text_of}", text_of(job.recipe)))
    print_done(done.change.touched)
    print_left(done.change.skipped)
    for told in done.trained:
        show.line(told)
    if done.data is not None:
        text = preparation_text(done.data)
        deed = phrase("trained on") if done.is_trained else phrase("looked at")
        prepared = phrase(" ({what})", text) if text else ""
        count = total_text(len(done.data))
        show.line(
            phrase(
                "{deed} {count} samples of {source}{prepared}",
                deed,
                count,
                plain(done.data.source),
                prepared,
            )
        )
    show.heading(plain(job.out.name))
    print_shrunk(result.record, zero_lines(done.change.model) if result.job.prunes else ())
    if result.score is not None:
        print_score(result.score)
    files = quote(str(job.out)), quote(str(result.path))
    words = f"--data {quote(result.evaluation or 'LABELLED_DATA')}"
    options = typed(settled(job.given.options, done.data))
    show.command(f"litesmith eval {files[0]} {words}{options} --against {files[1]}")
