"""Which ops of a file run outside XNNPACK, seen in a profiled run in a process of its own: the
profiler's memory stays there, and so does a crash."""

from collections import Counter
from pathlib import Path

from litesmith.profiling.events import XNNPACK
from litesmith.profiling.op_times import gather
from litesmith.run.core.child_process import answer, ask
from litesmith.run.core.target import Target
from litesmith.units import plain

_SECONDS = 120.0


def outside_xnnpack(path: Path) -> dict[str, int] | None:
    """Kinds of ops and their number; None where the runtime reports nothing about this model.

    Raises CannotRun where it does not run, or has no profile.
    """
    told = ask("litesmith.calibration.outside_xnnpack", path, seconds=_SECONDS)
    assert told is None or isinstance(told, dict)
    return told  # pyright: ignore[reportUnknownVariableType]  # the program below prints it


def _outside(path: str) -> dict[str, int] | None:
    gathered = gather(path, Target("cpu", 1), 1)
    if not gathered.runs:
        return None
    slices = [part for part in gathered.runs[-1].slices if part.kernel != XNNPACK]
    places = dict.fromkeys((part.graph, part.index) for part in slices)
    graphs = gathered.model.graphs
    found = Counter(plain(graphs[g].ops[i].label) for g, i in places if i is not None)
    return dict(found.most_common())


if __name__ == "__main__":
    answer(_outside)
