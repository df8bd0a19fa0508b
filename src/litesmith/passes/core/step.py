"""What a step is: one frozen dataclass per technique; its fields are its whole configuration."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from litesmith.errors import BadInput, CannotApply
from litesmith.ir.edit import with_graphs
from litesmith.ir.model_text import OpName
from litesmith.ir.types import Array, Graph, Model, Tensor
from litesmith.phrases import phrase

if TYPE_CHECKING:
    from litesmith.numeric.ranges import Seen


class Skip(NamedTuple):
    """Something a step left alone, and why.

    >>> skip = litesmith.Skip("op 3", "its weights are shared")
    >>> skip.where, skip.why
    ('op 3', 'its weights are shared')
    """

    where: str
    why: str

    @property
    def kind(self) -> str:
        """The kind of the op that was left alone, or of whatever else was."""
        return self.where.kind if isinstance(self.where, OpName) else self.where


@dataclass(frozen=True)
class Change:
    """The result of a step: the new model, what the step touched, and what it left alone.

    >>> change = litesmith.apply("model.tflite", "quantize(to=float16)")
    >>> len(change.touched) > 0
    True

    notes  remarks on trainings
    steps  the number of training steps
    """

    model: Model
    touched: tuple[str, ...] = ()
    skipped: tuple[Skip, ...] = ()
    notes: tuple[str, ...] = ()
    steps: int = 0

    def after(self, earlier: "Change") -> "Change":
        """This change and an earlier one, which it began with, as one."""
        return Change(
            self.model,
            (*earlier.touched, *self.touched),
            (*earlier.skipped, *self.skipped),
            (*earlier.notes, *self.notes),
            earlier.steps + self.steps,
        )


# What was seen of some tensors of a model's main graph over all samples: "range", "channels",
# "mean" or "histogram" of each.
Observe = Callable[[Model, Sequence[Tensor], frozenset[str]], Mapping[Tensor, "Seen"]]

# One run of an opened model: arrays for its inputs in order -> arrays of its outputs.
Run = Callable[[Sequence[Array]], list[Array]]


class Samples(Protocol):
    """The inputs of every sample, in the types of the model's own inputs."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[tuple[Array, ...]]: ...


class Tools(NamedTuple):
    """The tools that the layers above hand down where there is data: a step never runs anything
    itself.

    samples  the data, for a model with these inputs; each iteration starts afresh
    observe  observes the values of a model's tensors on the data
    opened   opens any model, ready to run
    """

    samples: Callable[[Model], Samples]
    observe: Observe
    opened: Callable[[Model], AbstractContextManager[Run]]


class LearnedRounding(NamedTuple):
    """A quantized model with learned codes, what was learned, and what was left alone."""

    model: Model
    touched: tuple[str, ...] = ()
    skipped: tuple[Skip, ...] = ()


# Learns the codes of a quantized model, given the float model that it stands for.
Learn = Callable[[Model, Model, Tools], LearnedRounding]


class Clock(NamedTuple):
    """Times on a target, which the layers above hand down as well.

    op_times       microseconds of every op of a model's main graph, and last of a run outside them
    times_as_fast  how many times as fast as the first model the second runs, both in turns
    """

    op_times: Callable[[Model, str], Sequence[float]]
    times_as_fast: Callable[[Model, Model, str], float]


# The masks of weights at a point of the training between 0 and 1, given the weights' present
# values: True stays, False becomes zero. Keys are the weights of the model under training.
Masks = Callable[[float, Mapping[Tensor, Array]], Mapping[Tensor, Array]]


class Tuned(NamedTuple):
    """A model after training, remarks on the training, one sentence each, and the number of its
    steps."""

    model: Model
    notes: tuple[str, ...] = ()
    steps: int = 0


class Tune(Protocol):
    """Trains the weights of a model, float or quantized, to answer as the original model does.

    Weights that are zero stay zero, and codes stay codes of their codebook (see `structure`).
    `origin` is the float model that a quantized one was made from, for what its codes lost. The
    result is never worse on held-out samples than the given model with the final masks.
    """

    def __call__(
        self, model: Model, *, origin: Model | None = None, masks: Masks | None = None
    ) -> Tuned: ...


@dataclass(frozen=True)
class Context:
    """What a step may use besides the model.

    tools      None where no data was given
    reference  the last float model of the recipe, or the given one: the model that a quantized one
               should reproduce
    tune       None where weights cannot be trained
    why_fixed  why they cannot
    clock      None where nothing measures time
    learn      None where no rounding can be learned
    """

    tools: Tools | None = None
    reference: Model | None = None
    tune: Tune | None = None
    why_fixed: str = phrase("there is no data to train on; give --data")
    clock: Clock | None = None
    learn: Learn | None = None

    def need_tools(self, step: str) -> Tools:
        if self.tools is None:
            raise BadInput("{step}: needs data to see what the model computes; give it some", step)
        return self.tools

    def may_tune(self, step: str, wanted: bool | None) -> bool:
        """True where weights are to be trained; raises where they must be and cannot."""
        if wanted and self.tune is None:
            raise CannotApply("{step}(tune=true): {why_fixed}", step, self.why_fixed)
        return wanted is not False and self.tune is not None

    def why_not_tuned(self, step: str, wanted: bool | None) -> list[Skip]:
        """The reason that a report gives where nobody said no and nothing was tuned."""
        if wanted is not None or self.tune is not None:
            return []
        return [Skip(step, phrase("the weights were not tuned to it: {why_fixed}", self.why_fixed))]

    def tuned(self, model: Model, masks: Masks | None = None) -> Tuned:
        """The model after training, which there must be."""
        assert self.tune is not None
        return self.tune(model, masks=masks)


class Step(Protocol):
    """A technique with its settings. `apply` never changes the model it is given."""

    def apply(self, model: Model, context: Context) -> Change: ...


def settle(
    model: Model, edits: Sequence[Callable[[Model], Change]], most_rounds: int = 10_000
) -> Change:
    """Applies the edits in turn, again and again, until a round touches nothing.

    Only the last round's skips count: a reason may be gone once a neighbour has changed.
    """
    touched: list[str] = []
    skipped: list[Skip] = []
    for _ in range(most_rounds):
        before = len(touched)
        skipped = []
        for edit in edits:
            change = edit(model)
            model = change.model
            touched += change.touched
            skipped += change.skipped
        if len(touched) == before:
            break
    return Change(model, tuple(touched), tuple(skipped))


GraphEdit = Callable[[Graph], tuple[Graph, list[str], list[Skip]]]


def on_graphs(model: Model, edit: GraphEdit) -> Change:
    """Applies an edit to every graph. It must leave the graphs' own inputs and outputs in place."""
    graphs: list[Graph] = []
    touched: list[str] = []
    skipped: list[Skip] = []
    for graph in model.graphs:
        edited, did, left = edit(graph)
        graphs.append(edited if did else graph)
        touched += did
        skipped += left
    return Change(with_graphs(model, graphs) if touched else model, tuple(touched), tuple(skipped))
