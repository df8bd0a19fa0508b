"""Whether a file that was quantized is faster than what it was made from, and who is to blame where
it is slower."""

from pathlib import Path
from typing import NamedTuple

from litesmith.anatomy.source_file import SourceFile
from litesmith.front.made_model import Json
from litesmith.ir.types import Model
from litesmith.passes.core.recipe import Recipe
from litesmith.passes.quantizing.quantize import Quantize
from litesmith.precision.fastest_forms import SlowKind, slower_kinds
from litesmith.progress import Progress, silent
from litesmith.regression.size_report import Latency, latency_facts, time_pair
from litesmith.run.core.target import Target
from litesmith.timing.latency import list_contenders
from litesmith.timing.statistics import SLOWER

# How long the file and what it was made from take turns: enough to tell which is faster.
_SECONDS = 0.5


class SpeedCheck(NamedTuple):
    """The time of a quantized file beside that of what it was made from.

    latency  None where `untimed` says why there is none
    blamed   where it is slower, the kinds of ops that are, the worst first
    """

    latency: Latency | None
    untimed: str = ""
    blamed: tuple[SlowKind, ...] = ()

    @property
    def is_slower(self) -> bool:
        """True where it takes longer than what it was made from, beyond the noise."""
        return self.latency is not None and self.latency.ratio.verdict == SLOWER

    def facts(self) -> Json:
        """For JSON."""
        return {
            "latency": latency_facts(self.latency, self.untimed),
            "slower_ops": [kind._asdict() for kind in self.blamed],
        }


class MadeFile(NamedTuple):
    """A file that a recipe with a step `quantize` made."""

    source: SourceFile
    recipe: Recipe
    model: Model
    path: Path

    @property
    def step(self) -> Quantize | None:
        """The step that quantizes; None where the recipe has none."""
        return next((step for step in self.recipe if isinstance(step, Quantize)), None)


def check_speed(
    made: MadeFile, target: Target, runs: int | None = None, progress: Progress = silent
) -> SpeedCheck:
    """Times the file in turns with its source; the ops of one that is slower are timed too."""
    before = made.source.path if made.source.is_file else None  # a pipe is read only once
    pair = list_contenders([before or made.source.model, made.path], target)
    timed = SpeedCheck(*time_pair(pair, runs, progress=progress, seconds=_SECONDS))
    return blame(made, target, timed, runs)


def blame(made: MadeFile, target: Target, speed: SpeedCheck, runs: int | None = None) -> SpeedCheck:
    """The same with the kinds of ops that make it slower, where it is."""
    if not speed.is_slower or target.kind != "cpu" or made.step is None:
        return speed
    blamed = slower_kinds(made.source.model, made.recipe, made.model, target, runs)
    return speed._replace(blamed=blamed)
