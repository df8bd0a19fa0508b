"""The commands prune, cluster and qat: one step, tuned on data, and what the result costs."""

from pathlib import Path
from typing import Annotated

from litesmith.accuracy.evaluate import refuse_misfit
from litesmith.calibration.quantize_effort import tidying
from litesmith.cli.commands.model import MISSES_WHAT_WAS_ASKED, Json, ModelFile, refuse_place
from litesmith.cli.commands.quantize import (
    Evaluated,
    Io,
    Keep,
    Only,
    OutFile,
    PerTensor,
    op_names,
    scored,
)
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
    open_evaluation,
)
from litesmith.cli.options.declare import option
from litesmith.cli.options.training_options import (
    AugmentName,
    Batch,
    Device,
    Epochs,
    Job,
    LabelShare,
    Minutes,
    NoTune,
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
from litesmith.cli.text.shrink_text import Result, print_json, print_text
from litesmith.errors import BadInput
from litesmith.ir.types import Model
from litesmith.passes.core.schemes import SCHEMES
from litesmith.passes.quantizing.qat import Qat
from litesmith.passes.shrinking.cluster import Cluster
from litesmith.passes.shrinking.prune import Prune
from litesmith.passes.shrinking.sparsify import Sparsify
from litesmith.tflite.file import load
from litesmith.training.settings import RECORD_SECONDS, Training

Sparsity = Annotated[
    float, option("--sparsity", help="The share of zeros among all weights that are pruned.")
]
Block = Annotated[
    str,
    option(
        "--block",
        metavar="1x1|1x4|2:4|channels",
        help="Single weights, four neighbouring inputs, two of each four, or whole channels.",
    ),
]
Schedule = Annotated[
    str,
    option(
        "--schedule",
        metavar="gradual|constant",
        help="Zeros come during the training, or all before it.",
    ),
]
Clusters = Annotated[
    int, option("--clusters", "-k", metavar="K", help="Values that a layer has, 2 to 256.")
]
Own = Annotated[
    list[str] | None,
    option(
        "--own",
        metavar="NAME:K",
        help="Layers with a K of their own, named as in --keep: dense*:16.",
        show_default=False,
    ),
]

_TRAINED = [name for name, scheme in SCHEMES.items() if scheme.weights != "float16"]
TrainedTo = Annotated[str, option("--to", metavar="SCHEME", help=f"{', '.join(_TRAINED)}.")]


def prune(
    model: ModelFile,
    out: OutFile,
    sparsity: Sparsity = Prune.sparsity,
    block: Block = Prune.block,
    schedule: Schedule = Prune.schedule,
    keep: Keep = None,
    only: Only = None,
    no_tune: NoTune = False,
    data: DataSource = None,
    samples: TrainingCount = None,
    evaluation: Evaluated = None,
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
    as_json: Json = False,
) -> int:
    """Make the weights zero that matter least, and train those that are left."""
    names = op_names(keep), op_names(only)
    step = Prune(sparsity, block, schedule, *names, tune=False if no_tune else None)
    last = (Sparsify(),) if block == "1x4" else ()
    options = ImageOptions(mean, std, norm, resize, crop, label_offset)
    given = Calibration(data, options, samples, trusted=trust_data, quiet=as_json)
    training = Training(epochs, minutes, rate, batch, labels, augment, seed, device)
    content = _content(model, out)
    recipe = (*tidying(content, (*step.keep, *step.only)), step, *last)
    job = Job(content, out, recipe, given, training, resume, every=every, runs=runs)
    return _shrunk(model, job, evaluation)


def cluster(
    model: ModelFile,
    out: OutFile,
    clusters: Clusters = Cluster.k,
    own: Own = None,
    per_tensor: PerTensor = False,
    keep: Keep = None,
    only: Only = None,
    no_tune: NoTune = False,
    data: DataSource = None,
    samples: TrainingCount = None,
    evaluation: Evaluated = None,
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
    as_json: Json = False,
) -> int:
    """Have the weights of each layer share few values, and train these."""
    names = op_names(keep), op_names(only)
    owned = tuple(part.strip() for text in own or () for part in text.split(","))
    step = Cluster(clusters, owned, not per_tensor, *names, tune=False if no_tune else None)
    options = ImageOptions(mean, std, norm, resize, crop, label_offset)
    given = Calibration(data, options, samples, trusted=trust_data, quiet=as_json)
    training = Training(epochs, minutes, rate, batch, labels, augment, seed, device)
    content = _content(model, out)
    numbered = tuple(0 for text in owned if text.partition(":")[0].isdecimal())
    recipe = (*tidying(content, (*step.keep, *step.only, *numbered)), step)
    job = Job(content, out, recipe, given, training, resume, every=every, runs=runs)
    return _shrunk(model, job, evaluation)


def qat(
    model: ModelFile,
    out: OutFile,
    to: TrainedTo = Qat.to,
    data: DataSource = None,
    io: Io = Qat.io,
    per_tensor: PerTensor = False,
    keep: Keep = None,
    only: Only = None,
    samples: TrainingCount = None,
    evaluation: Evaluated = None,
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
    as_json: Json = False,
) -> int:
    """Quantize a model, and train what that has cost back into it."""
    if data is None:
        raise BadInput("qat trains on data: give --data, or take quantize, which trains nothing")
    step = Qat(to, io, op_names(keep), op_names(only), not per_tensor)
    options = ImageOptions(mean, std, norm, resize, crop, label_offset)
    given = Calibration(data, options, samples, trusted=trust_data, quiet=as_json)
    training = Training(epochs, minutes, rate, batch, labels, augment, seed, device)
    content = _content(model, out)
    recipe = (*tidying(content, (*step.keep, *step.only)), step)
    job = Job(content, out, recipe, given, training, resume, every=every, runs=runs)
    return _shrunk(model, job, evaluation)


def _content(path: Path, out: Path) -> Model:
    refuse_place(out, path)
    return load(path)


def _shrunk(path: Path, job: Job, evaluation: str | None) -> int:
    """Does a job, and prints what came of it; status 1 where zeros or codes were lost."""
    refuse_early(job)
    scored_on = None
    if evaluation is not None:
        scored_on = open_evaluation(evaluation, job.model, job.given.options)
        refuse_misfit(job.model, scored_on)
    done = carry_out(job, scored_on)
    record = weighed(path, job, done)
    score = None
    if scored_on is not None:
        score = scored(path, job.out, scored_on, quiet=job.given.quiet)
    result = Result(path, job, done, record, score, evaluation)
    (print_json if job.given.quiet else print_text)(result)
    return 0 if record.is_verified else MISSES_WHAT_WAS_ASKED
