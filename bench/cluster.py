"""A Ray cluster of two workers and a device on this machine, beside this machine alone.

* `tune` on ResNet-8 with CIFAR-10: the same best recipe and the same accuracy with the engine
  local, with ray, and with ray where a worker is killed in the middle; the device's own log has no
  two trials at once.
* `eval` of MobileNet v1 on 2,000 images by one worker and by two, in turns: the same result, at
  least 1.6 times faster.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

from ray.cluster_utils import Cluster
from report import print_table, tell_figure, verdict_line
from stock import ASSETS, arguments, want_folder

import litesmith
from litesmith.accuracy.evaluate import Evaluation, evaluate_all
from litesmith.data.preparation import Preparation
from litesmith.data.samples import Data
from litesmith.data.sources import open_data
from litesmith.ray_engine.device_log import RESOURCE, VARIABLE
from litesmith.search.tuning.tune_search import Found
from litesmith.tflite.file import digest
from litesmith.timing.host import host
from litesmith.units import percent_text, ratio_text, score_text, time_text, total_text
from litesmith.workers.engine import Engine, open_engine

RESNET, MOBILENET = "pretrainedResnet.tflite", "mobilenet_v1_1.0_224.tflite"
SEARCHED, IMAGES = 3000, 2000
FASTER, QUIET = 1.6, 0.15
TURNS, MOST_TURNS = 3, 9
STORE = 700_000_000


@contextmanager
def joined(log: Path, workers: int) -> Iterator[Engine]:
    """A cluster of this many workers with one core each, and a device."""
    os.environ[VARIABLE] = str(log)
    first = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": STORE}
    cluster = Cluster(initialize_head=True, head_node_args=first)
    for _ in range(workers - 1):
        cluster.add_node(num_cpus=1, object_store_memory=STORE)
    cluster.add_node(num_cpus=0, resources={RESOURCE: 1}, object_store_memory=STORE)
    os.environ["RAY_ADDRESS"] = cluster.address
    try:
        with open_engine("ray") as engine:
            assert engine is not None
            yield engine
    finally:
        cluster.shutdown()


class Folders(NamedTuple):
    models: Path
    data: Path


# tune


class Search(NamedTuple):
    name: str
    seconds: float
    found: Found


def searched(name: str, models: Path, data: Data, out: Path, engine: Engine | None) -> Search:
    start = time.perf_counter()
    model = models / RESNET
    found = litesmith.tune(model, data, max_drop="3pt", out=out / name, engine=engine)
    return Search(name, time.perf_counter() - start, found)


def outcome(search: Search) -> tuple[object, ...]:
    """The facts that must be equal in all searches: the best recipe, its bytes, and every score."""
    best = search.found.facts["best"]
    assert isinstance(best, dict) and search.found.best is not None
    scores = [(r.name, r.digest, r.status, r.accuracy) for r in search.found.records]
    return best["name"], best["recipe"], best["accuracy"], digest(search.found.best), scores


@contextmanager
def killing(after: float) -> Iterator[list[int]]:
    """Kills a busy worker of this cluster after this many seconds."""
    from ray import get_runtime_context

    own, killed, done = get_runtime_context().get_session_name().encode(), [], threading.Event()

    def at_work() -> Iterator[int]:
        for place in Path("/proc").glob("[0-9]*"):
            try:
                name = (place / "cmdline").read_bytes().split(b"\0")[0]
                parent = (place / "stat").read_text().rpartition(")")[2].split()[1]
                started_by = Path(f"/proc/{parent}/cmdline").read_bytes()
                if name == b"ray::called_task" and own in started_by:
                    yield int(place.name)
            except OSError:
                continue

    def kill() -> None:
        done.wait(after)
        while not done.is_set() and not killed:
            for pid in at_work():
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
                return
            time.sleep(0.005)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        done.set()
        thread.join()


def overlaps(log: Path) -> tuple[int, int]:
    """The number of trials in the device's log, and of those that began before the previous one had
    ended."""
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    times = sorted((line["start"], line["end"]) for line in lines)
    return len(times), sum(before[1] > after[0] for before, after in pairwise(times))


def search_rows(folders: Folders, out: Path) -> list[str]:
    """Searches three times, prints the results, and reports what differs."""
    models = folders.models
    model = litesmith.load(models / RESNET)
    raw = Preparation(norm="raw")
    given = folders.data / "cifar10_test.npz"
    data = open_data(given, model, preparation=raw, samples=SEARCHED)
    found = [searched("local", models, data, out, None)]
    log = out / "device.jsonl"
    with joined(log, 2) as engine:
        found.append(searched("ray", models, data, out, engine))
        with killing(10.0) as killed:
            found.append(searched("ray, a worker killed", models, data, out, engine))
    rows = [
        (s.name, time_text(1e6 * s.seconds), str(outcome(s)[0]), s.found.verdict) for s in found
    ]
    print_table(("engine", "took", "best", "verdict"), rows)
    for one in found:
        tell_figure(one.name, one.seconds)
    count, twice = overlaps(log)
    print(f"the device's log: {total_text(count)} trials, {twice} of them beside another")
    missed = [f"{s.name}: another result" for s in found if outcome(s) != outcome(found[0])]
    missed += [] if killed else ["no worker was killed"]
    return missed + ([f"{twice} trials overlap"] if twice else [])


# eval


def images(given: Path, place: Path) -> Path:
    """2,000 images; the available ones repeat."""
    files = sorted(path for path in given.rglob("*") if path.is_file())
    for number in range(IMAGES):
        path = files[number % len(files)].resolve()
        folder = place / path.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}-{path.name}").symlink_to(path)
    return place


def scored(model: Path, data: Data, engine: Engine | None) -> tuple[float, Evaluation]:
    start = time.perf_counter()
    (found,) = evaluate_all([model], data, engine=engine)
    return time.perf_counter() - start, found


def waits(began: Path, ended: Path) -> None:
    """Delays a worker without using its core."""
    began.touch()
    while not ended.exists():
        time.sleep(0.02)


@contextmanager
def one_held_back(engine: Engine, place: Path) -> Iterator[None]:
    """Holds back one of two workers, so that one is left."""
    began, ended = place / "began", place / "ended"
    for mark in (began, ended):
        mark.unlink(missing_ok=True)
    held = engine.call("waiting", waits, began, ended)
    while not began.exists():
        time.sleep(0.02)
    try:
        yield
    finally:
        ended.touch()
        list(engine.gathered([held]))


class Turn(NamedTuple):
    """Seconds with one worker and with two, and the largest share of the cores that other programs
    took."""

    one: float
    two: float
    busy: float


def turn(engine: Engine, score: Callable[[], float], place: Path, two_first: bool) -> Turn:
    looks = [host().busy]
    seconds = dict[int, float]()
    for workers in (2, 1) if two_first else (1, 2):
        with one_held_back(engine, place) if workers == 1 else nullcontext():
            seconds[workers] = score()
        looks.append(host().busy)
    return Turn(seconds[1], seconds[2], max(looks))


def score_rows(folders: Folders, out: Path) -> list[str]:
    """Scores with one worker and with two, in turns; says what is not the same, or not faster.

    A turn during which other programs take much of the two cores tells nothing about workers, and
    is taken anew; where none is free of them, that is said.
    """
    model = folders.models / MOBILENET
    place = images(folders.data / "imagenet_val", out / "images")
    data = open_data(
        place, litesmith.load(model), preparation=Preparation(norm="tf"), samples=IMAGES
    )
    _, wanted = scored(model, data, None)
    missed: list[str] = []
    turns: list[Turn] = []
    with joined(out / "device.jsonl", 2) as engine:

        def score() -> float:
            seconds, found = scored(model, data, engine)
            if told(found) != told(wanted):
                missed.append("another result than without a cluster")
            return seconds

        score()  # ships the data and opens the model
        while len(quiet(turns)) < TURNS and len(turns) < MOST_TURNS:
            turns.append(turn(engine, score, out, two_first=len(turns) % 2 == 1))
    rows = [
        (
            time_text(1e6 * t.one),
            time_text(1e6 * t.two),
            ratio_text(t.one / t.two),
            percent_text(t.busy),
        )
        for t in turns
    ]
    print_table(("one worker", "two", "faster", "others took"), rows)
    value = score_text(wanted.value, wanted.unit, wanted.low, wanted.high)
    print(f"{MOBILENET}: {value} on {total_text(wanted.n)} images, the same each time")
    if len(quiet(turns)) < TURNS:
        return [*missed, f"{len(quiet(turns))} of {TURNS} turns were free of other programs"]
    gain = median(t.one / t.two for t in quiet(turns))
    print(f"two workers are {ratio_text(gain)} as fast as one")
    tell_figure("two workers", gain)
    return missed + ([] if gain >= FASTER else [f"two workers are {ratio_text(gain)} as fast"])


def quiet(turns: Sequence[Turn]) -> list[Turn]:
    return [turn for turn in turns if turn.busy <= QUIET]


def told(found: Evaluation) -> tuple[object, ...]:
    return found.value, found.low, found.high, found.measurement.samples


PARTS = {"tune": search_rows, "eval": score_rows}


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--data", type=Path, default=ASSETS / "data", help="folder of data")
    parser.add_argument("--only", choices=PARTS, help="one part")
    options = parser.parse_args()
    folders = Folders(want_folder(options.models, "--models"), want_folder(options.data, "--data"))
    missed: list[str] = []
    for name, part in PARTS.items():
        if options.only in (None, name):
            with TemporaryDirectory() as place:
                missed += part(folders, Path(place))
    return verdict_line(missed)


if __name__ == "__main__":
    sys.exit(main())
