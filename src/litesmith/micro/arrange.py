"""`arrange`: less memory on a microcontroller, the same answers."""

from collections.abc import Iterator
from dataclasses import dataclass

from litesmith.errors import BadInput
from litesmith.ir.ops import op_macs
from litesmith.ir.types import Model
from litesmith.micro.arena import add_up_arena
from litesmith.micro.bands import Region, list_regions, split_region
from litesmith.micro.buffers import live_bytes
from litesmith.micro.plan_file import OVERLAPS, PlannedModel, plan_model
from litesmith.passes.core.step import Change, Context, Skip
from litesmith.phrases import phrase
from litesmith.units import bytes_text

# Limits for bands: the ops in a region, the numbers of bands to try, the number of regions.
# CONCATENATION joins ten tensors at most (kMaxInputNum of its kernel).
_MOST_OPS, _BANDS, _ROUNDS = 16, (2, 3, 4, 5, 6, 8, 10), 3


@dataclass(frozen=True)
class Arrange:
    """Order the ops, split layers into bands and plan the memory of a microcontroller.

    ram      bytes that the arena may take: layers are made in bands until it takes no more; 0
             splits none
    overlap  none, or `reference`: a layer's output may lie over its own input, which is right with
             the reference kernels alone
    """

    ram: int = 0
    overlap: str | None = None

    @property
    def _kernels(self) -> str:
        return self.overlap or OVERLAPS[0]

    def apply(self, model: Model, context: Context) -> Change:
        if self._kernels not in OVERLAPS or self.ram < 0:
            raise BadInput(
                "arrange(ram={ram}, overlap={overlap}): give bytes, and one of {known}",
                self.ram,
                self._kernels,
                ", ".join(OVERLAPS),
            )
        before = add_up_arena(model).needed
        changes: list[str] = []
        planned = plan_model(model, self._kernels)
        for _ in range(_ROUNDS):
            if not self.ram or add_up_arena(planned.model).needed <= self.ram:
                break
            found = self._split(planned)
            if found is None:
                break
            planned, words = found
            changes.append(words)
        after = add_up_arena(planned.model).needed
        if after >= before:
            why = phrase("no other order, plan or bands take less than {bytes}", bytes_text(before))
            return Change(model, (), (Skip("arrange", why),))
        arena = phrase("arena {was} to {now}", bytes_text(before), bytes_text(after))
        return Change(planned.model, (*changes, arena))

    def _split(self, planned: PlannedModel) -> "tuple[PlannedModel, str] | None":
        """The model with one more region in bands: the least work that meets the limit, otherwise
        the least memory; None where no split takes less.
        """
        model = planned.model
        now = add_up_arena(model).needed
        candidates = sorted(
            _candidates(model), key=lambda one: (one.bytes > self.ram, one.rank(self))
        )
        found: tuple[PlannedModel, str] | None = None
        for one in candidates[:_MOST_PLANNED]:
            made = plan_model(one.model, self._kernels)
            needed = add_up_arena(made.model).needed
            if needed < now:
                found, now = (made, one.words), needed
            if needed <= self.ram:
                break
        return found


_MOST_PLANNED = 8  # candidates that get a full plan


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A region in bands.

    bytes  the least arena: the memory that is live at once, and permanent memory
    macs   the multiplications of a run
    """

    model: Model
    bytes: int
    macs: int
    words: str

    def rank(self, settings: Arrange) -> int:
        return self.macs if self.bytes <= settings.ram else self.bytes


def _candidates(model: Model) -> Iterator[_Candidate]:
    account = add_up_arena(model)
    lives = live_bytes(account.plan.buffers)
    peak = max(lives, key=lives.__getitem__, default=0) - 1
    graph = model.main
    if len(model.graphs) > 1 or not 0 <= peak < len(graph.ops):
        return
    macs = sum(map(op_macs, graph.ops))
    for region in list_regions(graph, peak, _MOST_OPS):
        height = graph.ops[region.last].outputs[0].shape[1]
        for bands in _BANDS:
            if bands <= height:
                yield from _make(model, region, bands, macs)


def _make(model: Model, region: Region, bands: int, before: int) -> Iterator[_Candidate]:
    try:
        made = split_region(model, region, bands)
    except ValueError:  # a band without a row
        return
    account = add_up_arena(made)
    live = max(live_bytes(account.plan.buffers).values(), default=0)
    macs = sum(map(op_macs, made.main.ops))
    words = phrase(
        "ops {first} to {last} in {bands} bands, {share} of the multiplications",
        region.first,
        region.last,
        bands,
        f"{macs / max(1, before):.2f} ×",
    )
    yield _Candidate(made, live + account.lasting_bytes, macs, words)
