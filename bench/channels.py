"""Channels removed for a speed: widths by measured time, beside random widths and one share for all
layers, of no greater time, with the same least squares on the same unlabelled samples.

Give the float model, the data to solve with and labelled data to judge by. Times of ops are
measured once; all choices are held to them.
"""

import argparse
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from report import print_table

from litesmith import Model
from litesmith.calibration.context import context_of
from litesmith.calibration.observe import tools
from litesmith.data.preparation import Preparation
from litesmith.data.samples import Data, as_stored
from litesmith.data.sources import open_data
from litesmith.passes.core.recipe import apply
from litesmith.passes.shrinking.channel_choice import choose_levels
from litesmith.passes.shrinking.channel_cut import without
from litesmith.passes.shrinking.channel_rules import channel_ids
from litesmith.passes.shrinking.channel_times import WidthTimes
from litesmith.passes.shrinking.channel_units import find_units
from litesmith.passes.shrinking.remove_channels import Knowledge, all_gone
from litesmith.tflite.file import load, save


def _right(model: Model, data: Data, count: int) -> np.ndarray:
    """Which samples a model gets right."""
    found: list[bool] = []
    with tools(data, threads=1).opened(model) as run:
        for sample in islice(data, count):
            arrays = tuple(map(as_stored, model.main.inputs, sample.inputs))
            assert sample.label is not None
            found.append(int(run(arrays)[0].argmax()) == int(sample.label.reshape(-1)[0]))
    return np.array(found)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("model", type=Path)
    options.add_argument("data", type=Path)
    options.add_argument("labelled", type=Path)
    options.add_argument("--speedup", type=float, default=1.3)
    options.add_argument("--random", type=int, default=200)
    options.add_argument("--samples", type=int, default=2048)
    options.add_argument("--judge", type=int, default=5000)
    options.add_argument("--norm", default="", help="how pixels are prepared, such as tf")
    options.add_argument("--on", default="cpu:1")
    options.add_argument("--save", type=Path)
    given = options.parse_args()
    model = apply(load(given.model), "cleanup | fold | fuse").model
    how = Preparation(norm=given.norm)
    data = open_data(given.data, model, preparation=how, samples=given.samples)
    labelled = open_data(given.labelled, model, preparation=how, samples=given.judge)
    whole = _right(model, labelled, given.judge)
    print(f"float: {100 * whole.mean():.2f} % of {len(whole)}", flush=True)

    context = context_of(data)
    assert context.clock is not None
    clock, channels = context.clock, channel_ids(model.main)
    seen = Knowledge(model, channels, context.tools, ())
    units = find_units(model.main, channels, seen.readers, finely=True)
    times = WidthTimes(model, channels, units, lambda one: clock.op_times(one, given.on))
    target = times.whole / given.speedup
    rows: list[list[str]] = []

    def judged(name: str, levels: Sequence[int]) -> float:
        made = seen.fitted(all_gone(units, levels))
        gained = _right(made, labelled, given.judge).astype(float) - whole
        drop, half = 100 * gained.mean(), 196 * gained.std() / len(gained) ** 0.5
        fast = times.whole / times.of(levels)
        rows.append(
            [name, f"{drop:+.2f} pt [{drop - half:+.2f}, {drop + half:+.2f}]", f"{fast:.3f}"]
        )
        print(*rows[-1], flush=True)
        if given.save and name == "by measured time":
            save(made, given.save)
        return drop

    def proof(levels: Sequence[int]) -> float:
        small = without(model, channels, all_gone(units, levels))
        measured = clock.times_as_fast(model, small, given.on)
        print(f"measured in turns: {measured:.3f} times as fast", flush=True)
        return times.whole / times.of(levels)  # all choices are held to the times of ops

    chosen = choose_levels(seen.costs(units), times, given.speedup, proof, *seen.judge(units))
    ours = judged("by measured time", chosen.levels)
    shares = np.linspace(0, 1, 401)
    even = ([round(s * (len(u.levels) - 1)) for u in units] for s in shares)
    uniform = judged("one share for all", next(v for v in even if times.of(v) <= target))
    random, others = np.random.default_rng(0), list[float]()
    while len(others) < given.random:
        levels = [int(random.integers(len(unit.levels))) for unit in units]
        # as few as the time asks for, in random order
        for place in random.permutation(len(units)):
            fits = np.flatnonzero(times.along(levels, int(place)) <= target)
            levels[place] = int(fits[0]) if len(fits) else levels[place]
        if times.of(levels) <= target:
            others.append(judged(f"random {len(others)}", levels))
    print_table(["widths", "drop", "times as fast"], rows[:2])
    if others:
        print(f"random: best {max(others):+.2f}, median {np.median(others):+.2f} of {len(others)}")
    return 0 if ours >= max([uniform, *others]) else 1


if __name__ == "__main__":
    sys.exit(main())
