"""Everything that a page of graphs shows, as one value."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from litesmith.anatomy.source_file import SourceFile
from litesmith.calibration.context import RandomSamples
from litesmith.data.sample_splits import take_some
from litesmith.data.samples import Data
from litesmith.graph_view.differing_samples import DifferingSample, differing_samples
from litesmith.graph_view.graph_rows import GraphRows, graph_rows
from litesmith.graph_view.keep_float import KeepFloat, find_choices
from litesmith.graph_view.loss_path import loss_path
from litesmith.graph_view.model_facts import ModelFacts, model_facts, pair_bars
from litesmith.graph_view.op_measures import OpErrors, Timing, error_ops, time_ops
from litesmith.graph_view.op_pairs import GraphPairs, graph_of, pair_graphs
from litesmith.ir.types import Model
from litesmith.phrases import phrase
from litesmith.progress import Note, Progress, Status, silent
from litesmith.run.core.target import Target

# The numbers of samples for errors, and of random samples where there is no data.
_SAMPLES, _RANDOM_SAMPLES = 32, 4


@dataclass(frozen=True, eq=False)
class GraphView:
    """One model, or two side by side.

    path   the ops of the second model along which it loses most; `worst` is the op that adds most
           of the loss
    keep   None where no op can be kept float
    notes  remarks on the numbers, one sentence each
    """

    models: tuple[ModelFacts, ...]
    graphs: tuple[GraphRows, ...]
    target: str
    errors: OpErrors = field(default_factory=OpErrors)
    path: tuple[int, ...] = ()
    worst: int | None = None
    samples: tuple[DifferingSample, ...] = ()
    keep: KeepFloat | None = None
    notes: tuple[str, ...] = ()

    @property
    def is_pair(self) -> bool:
        return len(self.models) == 2

    def count_changes(self) -> dict[str, int]:
        """The number of rows with each change, over all graphs."""
        counts = Counter(change for graph in self.graphs for change in graph.changes if change)
        return dict(counts.most_common())


@dataclass(frozen=True)
class ViewRequest:
    """What to measure for a page.

    seconds  how long to profile each model; None runs nothing
    source   the float model as a command names it; `options` are the options on data
    """

    target: Target
    seconds: float | None = None
    source: str = "FLOAT.tflite"
    options: str = "--data DATA"
    progress: Progress = silent


def gather_view(
    sources: Sequence[SourceFile], data: Data | None, request: ViewRequest
) -> GraphView:
    """Measures one model, or two side by side."""
    request.progress(Status(phrase("timing ops one by one")))
    timings = [time_ops(one, request.target, seconds=request.seconds) for one in sources]
    if len(sources) == 1 or request.seconds is None:
        return lay_out(sources, timings, OpErrors(), request)
    a, b = (one.model for one in sources)
    request.progress(Note(phrase("looking at every op")))
    seen = RandomSamples(a, _RANDOM_SAMPLES) if data is None else data
    errors = error_ops(a, b, take_some(seen, _SAMPLES))
    samples = () if data is None else differing_samples(a, b, data, request.target)
    return lay_out(sources, timings, errors, request, samples)


def lay_out(
    sources: Sequence[SourceFile],
    timings: Sequence[Timing],
    errors: OpErrors,
    request: ViewRequest,
    samples: tuple[DifferingSample, ...] = (),
) -> GraphView:
    """The view of models whose times and errors are known; runs nothing."""
    models = [one.model for one in sources]
    pairs = _pair_all(models)
    bars = pair_bars(models, pairs)
    facts = zip(sources, timings, bars, strict=True)
    noises = {place: one.noise for place, one in errors.ops.items()}
    path, worst = loss_path(models[-1].main, noises)
    return GraphView(
        models=tuple(model_facts(*one) for one in facts),
        graphs=tuple(
            graph_rows([graph_of(model, number) for model in models], known)
            for number, known in enumerate(pairs)
        ),
        target=str(request.target),
        errors=errors,
        path=path,
        worst=worst,
        samples=samples,
        keep=find_choices(models, pairs[0].before, request.source, request.options),
        notes=tuple(filter(None, (*(one.note for one in timings), errors.note))),
    )


def _pair_all(models: Sequence[Model]) -> list[GraphPairs]:
    """The pairs of each graph; none where there is one model."""
    count = max(len(model.graphs) for model in models)
    if len(models) == 1:
        return [GraphPairs({})] * count
    return [pair_graphs(models[0], models[1], number) for number in range(count)]
