"""The command apply."""

import json
import os
from pathlib import Path
from typing import Annotated

import click

from litesmith.anatomy.footprint import gzip_bytes
from litesmith.cli.options.data_options import (
    DEFAULT_CROP,
    DEFAULT_RESIZE,
    Calibration,
    Crop,
    DataSource,
    ImageOptions,
    LabelOffset,
    Mean,
    NormName,
    Resize,
    Std,
    TrustData,
)
from litesmith.cli.options.declare import argument, option
from litesmith.cli.options.ops_option import Ops
from litesmith.cli.options.training_options import (
    AugmentName,
    Batch,
    Device,
    Epochs,
    Job,
    LabelShare,
    Minutes,
    Rate,
    RecordEvery,
    Resume,
    Seed,
    TimedRuns,
    TrainingCount,
    carry_out,
    refuse_early,
    weighed,
)
from litesmith.cli.text import printing as show
from litesmith.cli.text.apply_text import apply_json, apply_text
from litesmith.cli.text.size_text import (
    arm_json,
    print_shrunk,
    shrunk_json,
    skipping_json,
    zero_lines,
)
from litesmith.errors import BadInput
from litesmith.ir.types import Model
from litesmith.passes import STEPS
from litesmith.passes.core import recipe
from litesmith.phrases import phrase
from litesmith.search.tuning.replay import replay
from litesmith.tflite.file import digest, load, pieces, refuse_unwritable, save
from litesmith.tflite.write import chunks
from litesmith.training.settings import RECORD_SECONDS, Training

ModelFile = Annotated[Path, argument(metavar="MODEL", help="A .tflite file.", show_default=False)]
Json = Annotated[bool, option("--json", help="Print one JSON object.")]

MISSES_WHAT_WAS_ASKED = 1

# Bytes that gzip takes no longer than a second or two for.
_QUICKLY_GZIPPED = 40_000_000


def apply(
    model: ModelFile,
    recipe_text: Annotated[
        str,
        argument(
            metavar="RECIPE",
            help=f'Steps, as in "cleanup | fuse": {", ".join(STEPS)}. "" copies; '
            "the recipe.json of a search makes its result again.",
        ),
    ],
    out: Annotated[
        Path, option("-o", "--output", help="The .tflite file to write.", show_default=False)
    ],
    data: DataSource = None,
    reference: Annotated[
        Path | None,
        option(
            "--reference",
            metavar="FLOAT",
            help="The float model that a quantized MODEL was made from, for correct and round.",
            show_default=False,
        ),
    ] = None,
    samples: TrainingCount = None,
    epochs: Epochs = Training.epochs,
    minutes: Minutes = Training.minutes,
    rate: Rate = Training.rate,
    batch: Batch = Training.batch,
    labels: LabelShare = Training.labels,
    augment: AugmentName = Training.augment,
    seed: Seed = Training.seed,
    device: Device = Training.device,
    resume: Resume = False,
    every: RecordEvery = RECORD_SECONDS,
    runs: TimedRuns = None,
    trust_data: TrustData = False,
    mean: Mean = None,
    std: Std = None,
    norm: NormName = None,
    resize: Resize = DEFAULT_RESIZE,
    crop: Crop = DEFAULT_CROP,
    label_offset: LabelOffset = None,
    ops: Ops = None,
    as_json: Json = False,
) -> int:
    """Apply a recipe to a model and write the result; the empty recipe is a faithful copy."""
    refuse_place(out, model)
    if recipe_text.endswith(".json"):
        return _replayed(Path(recipe_text), model, out, as_json)
    steps = recipe.parse(recipe_text)
    source = load(model)
    options = ImageOptions(mean, std, norm, resize, crop, label_offset)
    given = Calibration(data, options, samples, trusted=trust_data, quiet=as_json)
    training = Training(epochs, minutes, rate, batch, labels, augment, seed, device)
    job = Job(source, out, steps, given, training, resume, reference, every, runs)
    refuse_early(job)
    return _applied(model, job, as_json)


def _applied(model: Path, job: Job, as_json: bool) -> int:
    """Carries a recipe out, and says what it did; the exit status."""
    source, out = job.model, job.out
    done = carry_out(job)
    before, after = sizes_of(model, source, as_json), sizes_of(out, done.change.model, as_json)
    record = weighed(model, job, done) if job.shrinks else None
    status = 0 if record is None or record.is_verified else MISSES_WHAT_WAS_ASKED
    if as_json:
        facts = apply_json(out, after, digest(out), done.change)
        if record is not None:
            facts |= shrunk_json(record) | {"trained": list(done.trained)}
        if job.prunes:
            facts["arm"] = arm_json(done.change.model)
            facts["litesmith"] = skipping_json(done.change.model)
        click.echo(json.dumps(facts))
        return status
    apply_text(out, (before, after), source, done.change)
    for told in done.trained:
        show.line(told)
    if record is not None:
        print_shrunk(record, zero_lines(done.change.model) if job.prunes else ())
    return status


def _replayed(place: Path, model: Path, out: Path, as_json: bool) -> int:
    """The result of a search, made again; says whether it is the same to the byte."""
    change, wanted = replay(place, model)
    save(change.model, out)
    made, source = digest(out), load(model)
    if as_json:
        after = sizes_of(out, change.model, as_json)
        click.echo(json.dumps(apply_json(out, after, made, change) | {"same": made == wanted}))
    else:
        sizes = [
            sizes_of(path, content, False)
            for path, content in ((model, source), (out, change.model))
        ]
        apply_text(out, sizes, source, change)
        show.line(
            phrase("the same bytes as then")
            if made == wanted
            else phrase("NOT the same bytes as then")
        )
    return 0 if made == wanted else MISSES_WHAT_WAS_ASKED


def sizes_of(path: Path, model: Model, always_gzip: bool) -> tuple[int, int | None]:
    """Bytes on disk and after gzip; a large file is squeezed only where a program asks."""
    content = pieces(path) if path.is_file() else chunks(model)  # a pipe is read only once
    size = path.stat().st_size if path.is_file() else sum(map(len, chunks(model)))
    return size, gzip_bytes(content) if always_gzip or size <= _QUICKLY_GZIPPED else None


def refuse_place(path: Path, model: Path) -> None:
    """Raises before the work where a result could not, or must not, be written after it."""
    if os.path.exists(path) and os.path.exists(model) and path.samefile(model):
        raise BadInput(
            "{path}: is the input, and an input file is never changed; choose another", path
        )
    refuse_unwritable(path)
